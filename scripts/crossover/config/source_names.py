"""What a name in a Python file stands for: assignments, imports and base classes are followed without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path

from crossover.config.own_batches import last_name
from crossover.errors import UserError
from crossover.files import relative_path, working_folder

Place = tuple[Path, ast.AST]
"""A statement or expression and the file that contains it."""
Lineage = list[tuple[Path, ast.ClassDef] | None]
"""A class and its base classes in the order in which Python searches them; None for one that is not found."""

WITHOUT_METHODS = ("object", "Generic", "ABC")
"""Base classes that change neither how a class is called nor its instances, by the last part of their name."""
TORCH_MODULE = ("torch", "nn", "modules", "module.py")
"""The last parts of the path of the file that defines torch.nn.Module."""


def resolved(file: Path, name: str, steps: int) -> Place | None:
    """The definition, import or value that a top-level name stands for, after at most `steps` other names; or None."""
    statements = parsed(file).body
    nodes = [node for node in statements if name in names_bound_by(node)]
    if not steps:
        return None
    if not nodes:
        stars = [
            node for node in reversed(statements) if isinstance(node, ast.ImportFrom) and "*" in names_bound_by(node)
        ]
        return next(filter(None, (_of_import(file, star, name, steps - 1) for star in stars)), None)
    node = nodes[-1]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import):
        return file, node
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_whole = any(getattr(target, "id", "") == name for target in targets)
        return resolved_value(file, node.value, steps - 1) if is_whole else None
    return _of_import(file, node, name, steps - 1) if isinstance(node, ast.ImportFrom) else None


def resolved_value(file: Path, value: ast.expr, steps: int) -> Place | None:
    """What an expression stands for: that of a name or of a module's attribute, else the expression itself; or None."""
    if isinstance(value, ast.Name):
        return resolved(file, value.id, steps)
    if isinstance(value, ast.Attribute):
        path = ast.unparse(value.value).split(".")
        module = _imported_module(file, path[0])
        source = module_file(".".join([module[0], *path[1:]]), module[1]) if module else None
        if source is not None:
            return resolved(source, value.attr, steps)
    return file, value


def _imported_module(file: Path, name: str) -> tuple[str, list[Path]] | None:
    """The module that a name may stand for, by the last statement that binds it, and the folders that may have it."""
    nodes = [node for node in parsed(file).body if name in names_bound_by(node)]
    if not nodes or not isinstance(nodes[-1], ast.Import | ast.ImportFrom):
        return None
    node = nodes[-1]
    alias = next(alias for alias in node.names if name in binds(alias))
    if isinstance(node, ast.Import):
        return alias.name if alias.asname else name, _folders(file, 0)
    return ".".join(filter(None, [node.module, alias.name])), _folders(file, node.level)


def _folders(file: Path, level: int) -> list[Path]:
    """The folders from which a file imports; `level` is the number of dots of a relative import."""
    return [file.parents[level - 1]] if level else [file.resolve().parent, file.parent]


def _of_import(file: Path, statement: ast.ImportFrom, name: str, steps: int) -> Place | None:
    """What a statement imports from a Python file, or itself if it imports a module; None if there is no such file."""
    imported = next((alias.name for alias in statement.names if name in binds(alias)), name)
    folders = _folders(file, statement.level)
    source = module_file(statement.module, folders) if statement.module else folders[0] / "__init__.py"
    place = resolved(source, imported, steps) if source is not None and source.is_file() else None
    module = ".".join(filter(None, [statement.module, imported]))
    is_module = (place is None or isinstance(place[1], ast.ImportFrom)) and module_file(module, folders)
    return (file, statement) if is_module else place


def lineage_of(file: Path, node: ast.ClassDef, steps: int) -> Lineage:
    """The lineage of a class, with base classes that are reached several times at their last position."""
    order: Lineage = [(file, node)]
    for base in node.bases:
        expression = base.value if isinstance(base, ast.Subscript) else base
        if last_name(expression) in WITHOUT_METHODS:
            continue
        place = resolved_value(file, expression, steps - 1) if steps else None
        if place is not None and isinstance(place[1], ast.ClassDef):
            order += lineage_of(place[0], place[1], steps - 1)
        else:
            order.append(None)
    keys = [place and (place[0], place[1].lineno) for place in order]
    return [place for number, place in enumerate(order) if place is None or keys[number] not in keys[number + 1 :]]


def is_torch_module(file: Path, node: ast.ClassDef) -> bool:
    return node.name == "Module" and file.parts[-len(TORCH_MODULE) :] == TORCH_MODULE


def makes_models(lineage: Lineage) -> bool:
    """Whether a class is a subclass of torch.nn.Module."""
    return any(place is not None and is_torch_module(*place) for place in lineage)


def bound_in(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """The last statement of a class that binds a name."""
    return next((part for part in reversed(node.body) if name in names_bound_by(part)), None)


def module_file(module: str, folders: Sequence[Path] = ()) -> Path | None:
    """The source file of a module in these folders, the working directory or on Python's path, without importing it."""
    searched = [*map(str, folders), str(working_folder()), *sys.path]
    origin = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, searched)
        if spec is None:
            return None
        searched, origin = list(spec.submodule_search_locations or ()), spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None


def names_bound_by(node: ast.stmt) -> list[str]:
    """The names that a statement binds, other than those within functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return list(chain.from_iterable(map(binds, ast.walk(node))))


def binds(node: ast.AST) -> list[str]:
    """The name that a node binds itself; `*` for an import of all names."""
    if isinstance(node, ast.alias):
        return [node.asname or node.name.partition(".")[0]]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a Python file; raises UserError."""
    shown = relative_path(file)
    try:
        return _tree(file.read_bytes())
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not valid Python ({error.msg}); fix the file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown}: cannot be read ({error}); give a Python file") from None


@lru_cache(maxsize=64)
def _tree(code: bytes) -> ast.Module:
    return ast.parse(code)

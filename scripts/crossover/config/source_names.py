"""What a name in a Python file stands for: assignments and imports are followed without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path
from typing import Any

from crossover.errors import UserError
from crossover.files import relative_path, working_folder

Place = tuple[Path, ast.AST]
"""A definition, an expression or a whole module, and the file that contains it."""

MOST_STEPS = 20
"""Number of names, from `build = make` or an import to the next, that are followed to a definition."""


def resolved(file: Path, value: ast.expr, steps: int = MOST_STEPS) -> Place | None:
    """What an expression of a file stands for: that of a name or of a module's attribute, else itself; or None."""
    if isinstance(value, ast.Name):
        return _in_module(file, value.id, steps)
    if isinstance(value, ast.Attribute):
        place = resolved(file, value.value, steps)
        return _in_module(place[0], value.attr, steps) if place and isinstance(place[1], ast.Module) else None
    return file, value


def _in_module(file: Path, name: str, steps: int) -> Place | None:
    """What a name at the top level of a file stands for, by the last statement that binds it; or None."""
    statements = parsed(file).body
    nodes = [node for node in statements if name in names_bound_by(node)]
    nodes = nodes or [node for node in statements if "*" in names_bound_by(node)]
    if not nodes or not steps:
        return _module(name, [file.parent]) if file.name == "__init__.py" else None
    node = nodes[-1]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return file, node
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_whole = any(getattr(target, "id", "") == name for target in targets)
        return resolved(file, node.value, steps - 1) if is_whole else None
    if isinstance(node, ast.Import):
        alias = next(alias for alias in node.names if name in binds(alias))
        return _module(alias.name if alias.asname else name, _folders(file))
    return _imported(file, node, name, steps - 1) if isinstance(node, ast.ImportFrom) else None


def _imported(file: Path, node: ast.ImportFrom, name: str, steps: int) -> Place | None:
    """What `from ... import` binds to a name: that of the other file, or a module."""
    name = next((alias.name for alias in node.names if name in binds(alias)), name)
    folders = [file.parents[node.level - 1]] if node.level else _folders(file)
    source = module_file(node.module, folders) if node.module else folders[0] / "__init__.py"
    place = _in_module(source, name, steps) if source is not None and source.is_file() else None
    return place or _module(".".join(filter(None, [node.module, name])), folders)


def _folders(file: Path) -> list[Path]:
    """The folders from which a file imports: its own, and that of a link to it."""
    return [file.resolve().parent, file.parent]


def _module(name: str, folders: Sequence[Path]) -> Place | None:
    file = module_file(name, folders)
    return None if file is None else (file, parsed(file))


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


def constants(file: Path, names: Collection[str]) -> dict[str, tuple[str, Any]]:
    """Of these constants of a file, where each is assigned, for messages, and its literal value; raises UserError."""
    found: dict[str, tuple[str, Any]] = {}
    for node in parsed(file).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in (target.id for target in targets if isinstance(target, ast.Name) and target.id in names):
            shown = f"{relative_path(file)}: line {node.lineno}: {name}"
            try:
                found[name] = shown, ast.literal_eval(node.value)
            except (ValueError, TypeError):
                raise UserError(f"{shown} is computed, but read without running the file; write a literal") from None
    return found


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

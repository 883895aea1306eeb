"""Digest, imports and string literals of a Python file, which is neither run nor imported."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

Import = tuple[int, str, tuple[str, ...]]
"""An import: the number of its leading dots, its module, and the names taken from it."""

LONGEST_NAME = 300

IMPORTERS = {"import_module", "__import__"}
READERS = {
    *("exec", "run_path", "run_module", "spec_from_file_location", "SourceFileLoader", "load_source", "load_module"),
    *("iter_modules", "walk_packages", "glob", "iglob", "rglob", "iterdir", "listdir", "scandir", "walk"),
    *("open", "fopen", "memmap", "fromfile", "loadtxt", "genfromtxt", "load_file", "safe_open", "load_library", "CDLL"),
    *("read_csv", "read_table", "read_parquet", "read_json", "read_excel", "read_feather", "read_pickle", "read_hdf"),
    *("read_text", "read_bytes", "imread", "scan_csv", "scan_parquet", "read_image", "connect", "File", "load"),
    *("load_dataset", "ImageFolder", "from_pretrained", "from_file", "from_json_file", "get_data", "files"),
}
"""Functions and methods that read, list or run a file or module, named by their first argument or their object."""
STREAM_READERS = {"json", "pickle", "yaml", "tomllib"}
"""Modules whose `load` takes an open file."""
PATHS = {
    *("Path", "PurePath", "PosixPath", "str", "fspath", "abspath", "realpath", "normpath", "expanduser", "dirname"),
    *("cwd", "getcwd", "join", "joinpath", "with_name", "resolve", "absolute", "as_posix"),
}
"""Functions and methods whose result may be a path."""
PATH_OPTION = re.compile("root|path|file|folder|dir")
"""Part of the name of an argument that takes a path."""
ENVIRONMENT = (b"environ", b"getenv", b"expandvars")


@dataclass(frozen=True)
class Source:
    digest: str
    """Digest of the syntax tree, or of the content if it cannot be parsed.

    The tree is hashed without docstrings, unless the code may read them.
    """
    imports: tuple[Import, ...] = ()
    """Also by a literal, as in `import_module("part")`; in Crossover's files only absolute names, since the relative
    ones of `measurement.workloads` must not be part of every workload's key."""
    texts: tuple[str, ...] = ()
    """String literals that may name files, folders or environment variables."""
    paths: frozenset[str] = frozenset()
    """Those literals that the code uses as a path or a part of one, as in `HERE / "conf"`."""
    reads_environment: bool = False
    computes_names: bool = False
    """True if the file imports, runs or reads something by a computed name."""


def read_source(file: Path, of_user: bool = True) -> Source:
    """The facts about a file, cached until the file changes; raises OSError if it cannot be read."""
    state = file.stat()
    return _read_once(file, of_user, state.st_size, state.st_mtime_ns)


@cache
def _read_once(file: Path, of_user: bool, _size: int, _changed_ns: int) -> Source:
    content = file.read_bytes()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):  # importing the file fails with a better message
        return Source(hashlib.sha256(content).hexdigest())
    reads_docstrings = any(word in content for word in (b"__doc__", b"getsource", b"getdoc"))
    statements: list[ast.Import | ast.ImportFrom] = []
    text = _serialised(tree, reads_docstrings, statements)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    imports = list(_imports(statements))
    if not of_user and not any(name.encode() in content for name in IMPORTERS):
        return Source(digest, tuple(imports))
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    imported = [_imported_by(call) for call in calls if _name(call.func) in IMPORTERS]
    imports += [entry for entry in imported if entry and (of_user or not entry[0])]
    return Source(
        digest,
        tuple(imports),
        texts=tuple(dict.fromkeys(filter(_may_name, _texts(nodes)))),
        paths=frozenset(_used_as_paths(nodes)),
        reads_environment=any(word in content for word in ENVIRONMENT),
        computes_names=None in imported or _reads_computed(nodes, calls),
    )


def _serialised(node: object, keeps_docstrings: bool, imports: list[ast.Import | ast.ImportFrom]) -> str:
    """Serialise a syntax tree without empty fields, which differ between versions of Python.

    Removes docstrings from the tree, unless `keeps_docstrings`, and adds import statements to `imports`.
    """
    if isinstance(node, list):
        return "[" + ",".join([_serialised(item, keeps_docstrings, imports) for item in node]) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        imports.append(node)
    filled = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(value, list) and not keeps_docstrings:
            value[:] = [statement for statement in value if not _is_text(statement)]
        if value is not None and value != [] and name != "ctx":
            filled.append(f"{name}={_serialised(value, keeps_docstrings, imports)}")
    return f"{type(node).__name__}({','.join(filled)})"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _imports(statements: Iterable[ast.Import | ast.ImportFrom]) -> Iterator[Import]:
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from ((0, alias.name, ()) for alias in statement.names)
        else:
            yield statement.level, statement.module or "", tuple(alias.name for alias in statement.names)


def _imported_by(call: ast.Call) -> Import | None:
    """The import by an `import_module` call; None if the module's name is computed."""
    text = getattr(call.args[0], "value", None) if call.args else None
    if not isinstance(text, str) or not text:
        return None
    module = text.lstrip(".")
    return len(text) - len(module), module, ()


def _reads_computed(nodes: Iterable[ast.AST], calls: Iterable[ast.Call]) -> bool:
    """True if a computed name may be read, run or imported, as in `open(name)` or `map(open, names)`."""
    renamed = [node for node in nodes if isinstance(node, ast.alias) and node.asname]
    if any(alias.name.rpartition(".")[2] in READERS | IMPORTERS for alias in renamed):
        return True
    passed = [argument for call in calls for argument in (*call.args, *(word.value for word in call.keywords))]
    passed += [node.value for node in nodes if isinstance(node, ast.Assign)]
    called = [call.func for call in calls if not _names_file(call)]
    return any(map(_is_reader, [*called, *passed])) or any(_name(node) in IMPORTERS for node in passed)


def _is_reader(node: ast.expr) -> bool:
    is_stream = _name(node) == "load" and _name(getattr(node, "value", None)) in STREAM_READERS
    return _name(node) in READERS and not is_stream


def _names_file(call: ast.Call) -> bool:
    """True if the first argument of a call, or the object of a method, is a literal file or folder name."""
    if _name(call.func) == "exec":
        return False
    nodes = [getattr(call.func, "value", None), *(call.args[:1] or [word.value for word in call.keywords])]
    parts = [part for node in nodes for part in _parts(node)]
    return None not in parts and any(re.fullmatch(r"[\w~./-]*\w[^:*?$]*", part) for part in parts if part)


def _parts(node: ast.AST | None) -> list[str | None]:
    """The string literals in a path expression; a computed part gives None, a variable nothing."""
    if isinstance(node, ast.Constant):
        return list(_texts([node]))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*_parts(node.left), *_parts(node.right)]
    if isinstance(node, ast.Attribute | ast.Subscript):
        return _parts(node.value)
    if isinstance(node, ast.Call) and _name(node.func) in PATHS:
        return [part for argument in (getattr(node.func, "value", None), *node.args) for part in _parts(argument)]
    return [] if node is None or isinstance(node, ast.Name) else [None]


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield os.fsdecode(node.value)


def _name(node: ast.AST | None) -> str:
    """The last part of a dotted name; empty for other nodes."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _used_as_paths(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        used: list[ast.AST | None] = []
        if isinstance(node, ast.BinOp):
            used = [node]
        elif isinstance(node, ast.Call):
            used = [word.value for word in node.keywords if PATH_OPTION.search(word.arg or "")]
            target = getattr(node.func, "value", None)
            if _name(node.func) in PATHS or _name(target) == "path":  # as in `sys.path.append`
                used += [target, *node.args]
            elif _name(node.func) in READERS:
                used += [target, *node.args[:1]]
        yield from (part for expression in used for part in _parts(expression) if part is not None)


def looks_like_path(text: str) -> bool:
    """True for a text with a slash or a suffix; any other may be just a word."""
    return "/" in text or bool(PurePath(text).suffix)


def _may_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and bool(re.search(r"\w", text)) and not re.search(r"[\0\r\n]", text)

"""What a Python file does, imports and reads, from its text alone; nothing is run or imported.

A path counts as known if it is written out: texts, `__file__`, folders above it, and variables assigned once, joined by
`/`, `Path` or `os.path`. Of any other path nothing is known.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossover.machine.named_files import CODE, DATA

Import = tuple[int, str, tuple[str, ...]]
"""An import statement: its leading dots, its module, and the names taken from it."""

LONGEST_NAME = 300
DEEPEST = 20
"""Expressions within each other that are followed."""

IMPORTERS = {"import_module", "__import__"}
RUNNERS = {
    *("exec", "compile", "run_path", "run_module", "spec_from_file_location", "SourceFileLoader", "load_source"),
    *("load_module", "iter_modules", "walk_packages"),
}
"""They import or run code that their arguments name."""
BUILTINS = {"exec", "compile", "__import__"}
"""Whose names as methods mean something else, as `torch.compile` and `re.compile`."""
LISTERS = {"glob", "iglob", "rglob"}
READERS = LISTERS | {
    *("open", "fopen", "memmap", "fromfile", "loadtxt", "genfromtxt", "load_file", "safe_open", "load_library", "CDLL"),
    *("read_csv", "read_table", "read_parquet", "read_json", "read_excel", "read_feather", "read_pickle", "read_hdf"),
    *("read_text", "read_bytes", "imread", "iterdir", "listdir", "scandir", "walk"),
    *("scan_csv", "scan_parquet", "read_image", "connect", "File", "load_dataset", "ImageFolder"),
    *("from_pretrained", "from_file", "from_json_file", "get_data", "files"),
}
LOADERS = {"torch", "np", "numpy", "jnp", "joblib", "hub", "jit", "cpp_extension", "toml", "ctypes", "OmegaConf"}
"""Modules whose `load` takes a path; that of json, pickle and yaml takes an open file."""
ENVIRONMENT = (b"environ", b"getenv", b"expandvars")
PATHS = {
    *("Path", "PurePath", "PosixPath", "str", "fspath", "abspath", "realpath", "normpath", "expanduser", "dirname"),
    *("cwd", "getcwd", "join", "joinpath", "with_name", "resolve", "absolute", "as_posix"),
}
"""Functions and methods that make a path of the parts of another."""


@dataclass(frozen=True)
class Source:
    """What the text of a file says."""

    digest: str
    """Of what it does: comments, docstrings and layout do not count, unless it reads them."""
    imports: tuple[Import, ...] = ()
    by_name: tuple[Import, ...] = ()
    """Imports by a text, as `import_module` takes it."""
    names: tuple[str, ...] = ()
    """Texts that may name files or environment variables."""
    path: tuple[str, ...] = ()
    """Folders that it may put on Python's path."""
    reads_environment: bool = False
    runs_any: bool = False
    """Whether it imports or runs code of which nothing is known."""
    reads_any: bool = False
    """Whether it reads files of which nothing is known."""


def read_source(file: Path, of_user: bool = True) -> Source:
    """What a file says now; of one that is not the user's, its imports alone.

    Raises OSError where it cannot be read.
    """
    state = file.stat()
    return _read_once(file, of_user, state.st_size, state.st_mtime_ns)


@cache
def _read_once(file: Path, of_user: bool, _size: int, _changed_ns: int) -> Source:
    """The content of a file, read again when its size or time changes, as Python itself does."""
    text = file.read_bytes()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # the import will fail with a better message
        return Source(hashlib.sha256(text).hexdigest())
    nodes = list(ast.walk(tree))
    if not any(word in text for word in (b"__doc__", b"getsource", b"getdoc")):
        for node in nodes:
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
        nodes = list(ast.walk(tree))
    digest = hashlib.sha256(_serialised(tree).encode("utf-8", "surrogatepass")).hexdigest()
    if of_user or any(name.encode() in text for name in IMPORTERS):
        return _Reading(nodes).source(digest, any(word in text for word in ENVIRONMENT))
    return Source(digest, tuple(dict.fromkeys(_imports(nodes))))


def _imports(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple(alias.name for alias in node.names)


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is only a text, as a docstring is."""
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _serialised(node: object) -> str:
    """Serialise a syntax tree without empty fields, which differ between versions of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name != "ctx")
        filled = [f"{name}={_serialised(value)}" for name, value in fields if value is not None and value != []]
        return f"{type(node).__name__}({','.join(filled)})"
    return f"[{','.join(map(_serialised, node))}]" if isinstance(node, list) else repr(node)


class _Reading:
    """One file's syntax tree, with what its variables are assigned."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.nodes = nodes
        self.imports = tuple(dict.fromkeys(_imports(nodes)))
        self.modules = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        """Names of what is imported, and of classes: as owners of a function they are no path."""
        self.aliases: dict[str, str] = {}
        """Functions and modules by the names given here, as in `from importlib import import_module as get`."""
        self.assigned: dict[str, ast.expr] = {}
        """The value of each variable that is assigned once."""
        bindings: Counter[str] = Counter()
        for node in nodes:
            bindings.update(_bound(node))
            if isinstance(node, ast.alias):
                self.modules.add((node.asname or node.name).partition(".")[0])
                self.aliases[node.asname or node.name] = node.name
            elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
                self.assigned[target.id] = node.value
                if _named(node.value) in IMPORTERS | RUNNERS | READERS:
                    self.aliases[target.id] = _named(node.value)
        self.assigned = {name: value for name, value in self.assigned.items() if bindings[name] == 1}
        if "*" in bindings:
            self.assigned = {}

    def source(self, digest: str, reads_environment: bool) -> Source:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        by_name = [self._imported_by(call) for call in calls if self._function(call) in IMPORTERS]
        return Source(
            digest,
            imports=self.imports,
            by_name=tuple(dict.fromkeys(name for name in by_name if name)),
            names=tuple(dict.fromkeys(filter(_may_name, self._names()))),
            path=tuple(dict.fromkeys(self._path(calls))),
            reads_environment=reads_environment,
            runs_any=None in by_name or any(map(self._runs_any, calls)),
            reads_any=any(map(self._reads_any, calls)) or any(map(_computes_name, self.nodes)),
        )

    def _imported_by(self, call: ast.Call) -> Import | None:
        """What `import_module` imports; None if its name is computed."""
        parts = self._parts(call.args[0]) if call.args else None
        if not parts or len(parts) > 1:
            return None
        module = parts[0].lstrip(".")
        return len(parts[0]) - len(module), module, ()

    def _runs_any(self, call: ast.Call) -> bool:
        function = self._function(call)
        if function in BUILTINS - IMPORTERS:
            return True
        if function == "load" and _named(getattr(call.func, "value", None)) == "hub":
            return not self._are_known(_given(call)[:1])
        return function in RUNNERS and not self._are_known(_given(call))

    def _reads_any(self, call: ast.Call) -> bool:
        """Whether a call reads what nothing is known of, as `open(name)`, or `map(open, names)`."""
        handed_on = [ast.Call(given, [], []) for given in _given(call) if isinstance(given, ast.Name | ast.Attribute)]
        if any(self._is_reader(reader) for reader in handed_on):
            return True
        if not self._is_reader(call):
            return False
        owner = getattr(call.func, "value", None)
        path = [] if owner is None or self._is_module(owner) else [owner]
        first = call.args[:1] or ([] if path else _given(call))
        return self._function(call) in LISTERS or not self._are_known([*path, *first])

    def _is_reader(self, call: ast.Call) -> bool:
        function = self._function(call)
        if function == "load" and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            name = self.aliases.get(owner.id, "") if isinstance(owner, ast.Name) else _named(owner)
            return name.rpartition(".")[2] in LOADERS
        reads_config = function == "read" and any(module == "configparser" for _, module, _ in self.imports)
        return function in READERS or function == "load" or reads_config

    def _function(self, call: ast.Call) -> str:
        """The name of what is called, without its module; of a builtin's name, only the builtin itself."""
        name = _named(call.func)
        if isinstance(call.func, ast.Name):
            return self.aliases.get(name, name).rpartition(".")[2]
        return "" if name in BUILTINS and _named(getattr(call.func, "value", None)) != "builtins" else name

    def _is_module(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules

    def _names(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Constant | ast.BinOp | ast.Call):
                yield "/".join(self._parts(node) or ())

    def _path(self, calls: Iterable[ast.Call]) -> Iterator[str]:
        """What `sys.path.insert`, `append`, `extend`, an assignment to it and `site.addsitedir` put there."""
        given: list[ast.AST] = []
        for call in calls:
            if self._function(call) == "addsitedir" or _is_sys_path(getattr(call.func, "value", None)):
                given += call.args
        for node in self.nodes:
            if isinstance(node, ast.Assign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(_is_sys_path(getattr(target, "value", None)) or _is_sys_path(target) for target in targets):
                    given.append(node.value)
        for node in given:
            for inner in ast.walk(node):
                if isinstance(inner, ast.expr) and (parts := self._parts(inner)) is not None:
                    yield "/".join(parts) or "."

    def _are_known(self, paths: Sequence[ast.expr]) -> bool:
        """Whether these expressions name files or folders, as far as their text says."""
        parts = [self._parts(node) for node in paths]
        texts = [text for texts in parts for text in texts or ()]
        return None not in parts and any(re.fullmatch(r"[\w~][^:*?$]*|[./]+\w[^:*?$]*", text) for text in texts)

    def _parts(self, node: ast.AST, depth: int = 0) -> list[str] | None:
        """The texts that a path is made of, in their order, without the folder it starts from; None if not known."""
        if isinstance(node, ast.Constant):
            text = os.fsdecode(node.value) if isinstance(node.value, bytes) else node.value
            return [text] if isinstance(text, str) else []
        inner: list[ast.expr] = []
        if isinstance(node, ast.Subscript):  # of `path.parents[1]`
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.assigned:
            inner = [self.assigned[node.id]]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            inner = [node.left, node.right]
        elif isinstance(node, ast.Attribute) and node.attr in ("parent", "parents"):
            inner = [node.value]
        elif isinstance(node, ast.Call) and self._function(node) in PATHS and not node.keywords:
            owner = getattr(node.func, "value", None)
            inner = [*([] if owner is None or self._is_module(owner) else [owner]), *node.args]
        elif not (isinstance(node, ast.Name) and node.id == "__file__"):
            return None
        parts = [self._parts(part, depth + 1) if depth < DEEPEST else None for part in inner]
        return None if None in parts else [text for texts in parts for text in texts or ()]


def _bound(node: ast.AST) -> list[str]:
    """The variables that a node sets."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.alias):
        return [node.asname or node.name]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    return [node.rest] if isinstance(node, ast.MatchMapping) and node.rest else []


def _computes_name(node: ast.AST) -> bool:
    """Whether a text is computed whose end looks like that of a file's name, as in `f"weights_{size}.pt"`."""
    is_text = isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod)
    )
    is_format = isinstance(node, ast.Call) and _named(node.func) == "format"
    is_grown = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    if not (is_text or is_format or is_grown):
        return False
    texts = [str(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
    return any(f".{text.rpartition('.')[2]}" in DATA | CODE for text in texts if "." in text)


def _given(call: ast.Call) -> list[ast.expr]:
    return call.args or [word.value for word in call.keywords]


def _named(node: ast.AST | None) -> str:
    """The name of a function or module, without that of its module."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _is_sys_path(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", None) == "sys"


def _may_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and bool(re.search(r"\w", text)) and not re.search(r"[\0\r\n]", text)

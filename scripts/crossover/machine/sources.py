"""What a Python file does, imports and reads, found from its text alone; nothing is run or imported.

A name that is computed is known as far as its text says: `f"weights_{size}.pt"` is `weights_*.pt`, `HERE / name` is
`folder/*`, and `*` is a name of which nothing is known.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path

Import = tuple[int, str, tuple[str, ...]]
"""An import statement: its leading dots, its module, and the names taken from it."""

ANY = "*"
LONGEST_NAME = 300
MOST_VALUES = 8
"""Of a variable that is assigned several times; with more, nothing is known of it."""
MOST_TEXTS = 64
"""Of an expression with several such variables."""
DEEPEST = 20
"""Expressions within each other that are followed."""

IMPORTERS = {"import_module", "__import__"}
RUNNERS = {
    *("exec", "compile", "run_path", "run_module", "spec_from_file_location", "SourceFileLoader", "load_source"),
    *("load_module", "iter_modules", "walk_packages"),
}
"""They import or run code that their first argument, or what they find, names."""
BUILTINS = {"exec", "compile", "__import__", "open"}
"""Whose names as methods mean something else, as `torch.compile` and `re.compile`; but for `Path.open`."""
READERS = {
    *("open", "fopen", "memmap", "fromfile", "loadtxt", "genfromtxt", "load_file", "safe_open", "load_library", "CDLL"),
    *("read_csv", "read_table", "read_parquet", "read_json", "read_excel", "read_feather", "read_pickle", "read_hdf"),
    *("read_text", "read_bytes", "imread", "glob", "iglob", "rglob", "iterdir", "listdir", "scandir", "walk"),
    *("scan_csv", "scan_parquet", "read_image", "connect", "File", "load_dataset", "ImageFolder"),
    *("from_pretrained", "from_file", "from_json_file", "get_data", "files"),
}
LOADERS = {"torch", "np", "numpy", "jnp", "joblib", "hub", "jit", "cpp_extension", "toml", "ctypes", "OmegaConf"}
"""Modules whose `load` takes a path; that of json, pickle and yaml takes an open file."""
OPENERS = {"os", "io", "gzip", "glob", "codecs", "bz2", "lzma", "tarfile"}
"""Modules whose functions have the names of a path's methods."""
METHODS = {"read_text", "read_bytes", "iterdir", "open"}
"""Of a path, without an argument that names a file."""
SAME = {"Path", "PurePath", "PosixPath", "str", "fspath", "abspath", "realpath", "normpath", "expanduser", "expandvars"}
SAME_METHODS = {"resolve", "absolute", "as_posix", "expanduser", "__str__", "strip"}


@dataclass(frozen=True)
class Source:
    """What the text of a file says."""

    digest: str
    """Of what it does: comments, docstrings and layout do not count, unless it reads them."""
    imports: tuple[Import, ...] = ()
    by_name: tuple[Import, ...] = ()
    """Imports by a text, as `import_module` takes it."""
    names: tuple[str, ...] = ()
    """Texts that may name files; `*` stands for what is computed."""
    path: tuple[str, ...] = ()
    """Folders that it puts on Python's path."""
    variables: tuple[str, ...] = ()
    """Environment variables that it reads."""
    runs_any: bool = False
    """Whether it imports or runs code by a name of which nothing is known."""
    reads_any: bool = False
    """Whether it reads by a name of which nothing is known."""


def read_source(file: Path, of_user: bool = True) -> Source:
    """What a file says now; of one that is not the user's own, its imports alone.

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
    digest = hashlib.sha256(_text(tree).encode("utf-8", "surrogatepass")).hexdigest()
    if of_user or any(name.encode() in text for name in IMPORTERS):
        return _Reading(nodes, file).source(digest)
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


def _text(node: object) -> str:
    """A syntax tree as a text, without its empty fields, of which each version of Python has others."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name != "ctx")
        known = [f"{name}={_text(value)}" for name, value in fields if value is not None and value != []]
        return f"{type(node).__name__}({','.join(known)})"
    return f"[{','.join(map(_text, node))}]" if isinstance(node, list) else repr(node)


class _Reading:
    """One file's syntax tree, with what its variables are assigned."""

    def __init__(self, nodes: Sequence[ast.AST], file: Path) -> None:
        self.nodes = nodes
        self.file = file
        self.values: dict[str, list[str]] = {}
        """What variables may be, as far as it was asked."""
        self.aliases: dict[str, str] = {}
        """Functions by the names that they are given here, as `from importlib import import_module as load` does."""
        self.assigned: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom):
                self.aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
            for name, value in _assignments(node):
                self.assigned.setdefault(name, []).append(value)
                if isinstance(value, ast.Name | ast.Attribute) and (_named(value) in IMPORTERS | RUNNERS | READERS):
                    self.aliases[name] = _named(value)

    def source(self, digest: str) -> Source:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return Source(
            digest,
            imports=tuple(dict.fromkeys(_imports(self.nodes))),
            by_name=tuple(dict.fromkeys(self._by_name(calls))),
            names=tuple(dict.fromkeys(filter(_may_name, self._names()))),
            path=tuple(dict.fromkeys(self._path(calls))),
            variables=tuple(sorted(self._variables(calls))),
            runs_any=any(self._runs_any(call) for call in calls),
            reads_any=any(self._reads_any(call) for call in calls if self._is_reader(call)),
        )

    def _by_name(self, calls: Iterable[ast.Call]) -> Iterator[Import]:
        for call in calls:
            if self._function(call) in IMPORTERS and call.args:
                for text in self.texts(call.args[0]):
                    module = text.lstrip(".")
                    known, computed, _ = module.partition(ANY)
                    # Of a computed name the package is known, and any of its modules may be meant.
                    yield (
                        len(text) - len(module),
                        known.rpartition(".")[0] if computed else known,
                        (ANY,) * bool(computed),
                    )

    def _runs_any(self, call: ast.Call) -> bool:
        function = self._function(call)
        if function in IMPORTERS:
            return not call.args or any(ANY in text for text in self.texts(call.args[0]))
        if function in ("exec", "compile"):
            return True
        if function not in RUNNERS and not (function == "load" and _named(getattr(call.func, "value", None)) == "hub"):
            return False
        place = 1 if function in ("spec_from_file_location", "SourceFileLoader") else 0
        given = call.args[place : place + 1] or [
            word.value for word in call.keywords if word.arg in ("location", "path")
        ]
        return not given or any(_is_unknown(text) for code in given for text in self.texts(code))

    def _function(self, call: ast.Call) -> str:
        """The name of what is called, without its module; of a builtin's name, only the builtin itself."""
        name = _named(call.func)
        if isinstance(call.func, ast.Name):
            return self.aliases.get(name, name)
        return "" if name in BUILTINS - {"open"} and _named(call.func.value) != "builtins" else name  # type: ignore[attr-defined]

    def _is_reader(self, call: ast.Call) -> bool:
        function = self._function(call)
        if function == "load" and isinstance(call.func, ast.Attribute):
            return _named(call.func.value) in LOADERS
        return function in READERS or function == "load"

    def _reads_any(self, call: ast.Call) -> bool:
        """Whether nothing is known of what is read, or it is the file's own folder or one above."""
        texts = self.texts(_read_by(call))
        return any(_is_unknown(text) or Path(text) in self.file.parents for text in texts)

    def _names(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call):
                yield from self.texts(node)

    def _path(self, calls: Iterable[ast.Call]) -> Iterator[str]:
        """What `sys.path.insert`, `append`, `extend`, an assignment to it and `site.addsitedir` put there."""
        for call in calls:
            owner = getattr(call.func, "value", None)
            if self._function(call) == "addsitedir" or (owner is not None and _is_sys_path(owner)):
                for argument in call.args:
                    yield from self._folders(argument)
        for node in self.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AugAssign) and any(
                _is_sys_path(target.value if isinstance(target, ast.Subscript) else target) for target in targets
            ):
                yield from self._folders(node.value)

    def _folders(self, node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.List | ast.Tuple):
            for element in node.elts:
                yield from self._folders(element)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._folders(node.left)
            yield from self._folders(node.right)
        elif not isinstance(node, ast.Constant) or isinstance(node.value, str):
            yield from self.texts(node)

    def _variables(self, calls: Iterable[ast.Call]) -> set[str]:
        keys = [call.args[0] for call in calls if call.args and _is_environment(call.func)]
        keys += [node.slice for node in self.nodes if isinstance(node, ast.Subscript) and _is_environ(node.value)]
        return {text for key in keys for text in self.texts(key) if ANY not in text}

    def texts(self, node: ast.AST | None, depth: int = 0) -> list[str]:
        """What a text or path may be."""
        if node is None or depth > DEEPEST:
            return [ANY]
        texts = list(dict.fromkeys(self._texts(node, depth + 1)))
        return texts if 0 < len(texts) <= MOST_TEXTS else [ANY]

    def _variable(self, name: str) -> list[str]:
        if name not in self.values:
            self.values[name] = [ANY]  # while its own values are looked at, which may name it
            texts = list(dict.fromkeys(text for value in self.assigned.get(name, []) for text in self.texts(value)))
            self.values[name] = texts if 0 < len(texts) <= MOST_VALUES else [ANY]
        return self.values[name]

    def _texts(self, node: ast.AST, depth: int) -> Iterator[str]:
        if isinstance(node, ast.Constant):
            yield str(node.value) if isinstance(node.value, str | int) else ANY
        elif isinstance(node, ast.Name):
            yield from [str(self.file)] if node.id == "__file__" else self._variable(node.id)
        elif isinstance(node, ast.JoinedStr):
            yield from map("".join, self._each(node.values, depth))
        elif isinstance(node, ast.FormattedValue):
            yield from self.texts(node.value, depth) if node.format_spec is None else [ANY]
        elif isinstance(node, ast.IfExp):
            yield from [*self.texts(node.body, depth), *self.texts(node.orelse, depth)]
        elif isinstance(node, ast.BoolOp):
            yield from (text for value in node.values for text in self.texts(value, depth))
        elif isinstance(node, ast.BinOp):
            yield from self._joined(node, depth)
        elif isinstance(node, ast.Attribute):
            own = {"curdir": ".", "pardir": "..", "sep": "/"}
            parents = map(_above, self.texts(node.value, depth)) if node.attr == "parent" else ()
            yield from [own[node.attr]] if node.attr in own else parents
        elif isinstance(node, ast.Subscript):
            if getattr(node.value, "attr", None) == "parents" and isinstance(node.slice, ast.Constant):
                for text in self.texts(node.value.value, depth):  # type: ignore[attr-defined]
                    yield str(Path(text, *[".."] * (int(node.slice.value) + 1))) if text != ANY else ANY  # type: ignore[arg-type]
        elif isinstance(node, ast.Call):
            yield from self._called(node, depth)

    def _joined(self, node: ast.BinOp, depth: int) -> Iterator[str]:
        if isinstance(node.op, ast.Mod):
            yield from (re.sub(r"%(\(\w+\))?[-+ #0-9.]*[a-zA-Z]", ANY, text) for text in self.texts(node.left, depth))
        elif isinstance(node.op, ast.Add | ast.Div):
            between = "/" if isinstance(node.op, ast.Div) else ""
            for left, right in self._each([node.left, node.right], depth):
                yield right if between and right.startswith("/") else f"{left}{between}{right}"

    def _called(self, call: ast.Call, depth: int) -> Iterator[str]:
        function = self._function(call)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if function in SAME:
            yield from map(_path_of, self._each(call.args, depth)) if call.args else ["."]
        elif function in ("cwd", "getcwd"):
            yield "."
        elif function == "dirname":
            yield from map(_above, self.texts(_first(call), depth))
        elif function == "join" and not isinstance(owner, ast.Constant):
            yield from map(_path_of, self._each(call.args, depth))
        elif owner is not None and function in SAME_METHODS:
            yield from self.texts(owner, depth)
        elif owner is not None and function in ("joinpath", "glob", "rglob"):
            between = ["**"] if function == "rglob" else []
            for first, *others in self._each([owner, *call.args], depth):
                yield _path_of([first, *between, *others])
        elif owner is not None and function in ("with_name", "with_suffix"):
            for text, new in self._each([owner, _first(call) or owner], depth):
                yield f"{_above(text)}/{new}" if function == "with_name" else re.sub(r"\.[^./]*$", "", text) + new
        elif owner is not None and function == "format":
            yield from (re.sub(r"\{[^}]*\}", ANY, text) for text in self.texts(owner, depth))

    def _each(self, nodes: Iterable[ast.AST], depth: int) -> Iterator[tuple[str, ...]]:
        """Every combination of what some expressions may be; one more than MOST_TEXTS at most."""
        return islice(product(*(self.texts(node, depth) for node in nodes)), MOST_TEXTS + 1)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The variables that a statement or expression sets, with their values; those of a loop over a written list."""
    if isinstance(node, ast.Assign):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        if isinstance(node.target, ast.Name) and isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
            yield from ((node.target.id, element) for element in node.iter.elts)
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        yield node.optional_vars.id, node.context_expr


def _named(node: ast.AST | None) -> str:
    """The name of a function or module, without that of its own module."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _first(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((word.value for word in call.keywords), None)


def _read_by(call: ast.Call) -> ast.expr | None:
    """What a reader is given: a path as its argument, or as the object whose method it is."""
    if isinstance(call.func, ast.Attribute):
        module = getattr(call.func.value, "id", None) in (
            "os",
            "io",
            "gzip",
            "glob",
            "codecs",
            "bz2",
            "lzma",
            "tarfile",
        )
        first = getattr(_first(call), "value", "r")
        mode = isinstance(first, str) and re.fullmatch("[rwxabtU+]+", first) is not None
        if call.func.attr in METHODS and not module and (call.func.attr != "open" or mode):
            return call.func.value
        if call.func.attr in ("glob", "rglob") and not module:
            return call
    return _first(call)


def _is_sys_path(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", None) == "sys"


def _is_environ(node: ast.AST) -> bool:
    return _named(node) == "environ"


def _is_environment(function: ast.AST) -> bool:
    """Whether a function reads an environment variable: `os.getenv`, `os.environ.get`."""
    name = _named(function)
    return name == "getenv" or (
        name in ("get", "pop", "setdefault") and _is_environ(getattr(function, "value", function))
    )


def _above(text: str) -> str:
    """The folder of a path."""
    if "/" in text:
        return text.rpartition("/")[0] or "/"
    return text if text == ANY else "."


def _path_of(parts: Iterable[str]) -> str:
    joined = ""
    for part in parts:
        joined = part if part.startswith("/") or not joined else f"{joined}/{part}"
    return joined


def _is_unknown(text: str) -> bool:
    return not re.search(r"\w", text)


def _may_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and bool(re.search(r"\w", text)) and not re.search(r"[\0\r\n]", text)

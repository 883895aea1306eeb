"""What a Python file does, imports and reads, found from its text alone; nothing is run or imported.

A name that is computed is known as far as its text says: `f"weights_{size}.pt"` is `weights_*.pt`, `HERE / name` is
`folder/*`, and `*` is a name of which nothing is known.
"""

from __future__ import annotations

import ast
import hashlib
import os
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
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}
SAME = {"Path", "PurePath", "PosixPath", "str", "fspath", "abspath", "realpath", "normpath", "expanduser"}
SAME_METHODS = {"resolve", "absolute", "as_posix", "expanduser", "__str__"}


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
    reads: tuple[str, ...] = ()
    """Texts that a reader of files is given."""
    path: tuple[str, ...] = ()
    """Folders that it puts on Python's path."""
    variables: tuple[str, ...] = ()
    """Environment variables that it reads; `*` stands for what is computed."""
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
        self.imports = tuple(dict.fromkeys(_imports(nodes)))
        self.reads_config = any(module == "configparser" for _, module, _ in self.imports)
        """Whether a method `read` may take a path, not a number of bytes."""
        self.values: dict[str, list[str]] = {}
        """What variables may be, as far as it was asked."""
        self.aliases: dict[str, str] = {}
        """Functions and modules by the names given here, as in `from importlib import import_module as get`."""
        self.assigned: dict[str, list[ast.expr | None]] = {}
        """By variable; None stands for a value of which nothing is known."""
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
            for name, value in _assignments(node):
                self.assigned.setdefault(name, []).append(value)
                if _named(value) in IMPORTERS | RUNNERS | READERS | ENVIRONMENT:
                    self.aliases[name] = _named(value)

    def source(self, digest: str) -> Source:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        reads = [_without_scheme(text) for call in calls for text in self._reads(call)]
        return Source(
            digest,
            imports=self.imports,
            by_name=tuple(dict.fromkeys(self._by_name(calls))),
            names=tuple(dict.fromkeys(filter(_may_name, map(_without_scheme, self._names())))),
            reads=tuple(dict.fromkeys(filter(_may_name, reads))),
            path=tuple(dict.fromkeys(self._path(calls))),
            variables=tuple(sorted(self._variables(calls))),
            runs_any=any(self._runs_any(call) for call in calls),
            # The file's own folder, or one above, tells no more than a name of which nothing is known.
            reads_any=any(_is_unknown(text) or Path(text) in self.file.parents for text in reads),
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
            return self._origin(call.func.value) in LOADERS
        return function in READERS or function == "load" or (function == "read" and self.reads_config)

    def _reads(self, call: ast.Call) -> Iterator[str]:
        """What a call reads; `map(open, names)` reads what nobody knows."""
        if self._is_reader(call):
            yield from self._read_by(call)
        for given in (*call.args, *(word.value for word in call.keywords)):
            is_open = isinstance(given, ast.Name) and self._origin(given) == "open"
            if is_open or (isinstance(given, ast.Attribute) and self._is_reader(ast.Call(given, [], []))):
                yield ANY

    def _read_by(self, call: ast.Call) -> Iterator[str]:
        """What a reader is given: a path as its argument, or as the object whose method it is."""
        given: list[ast.expr | None] = [*call.args[:1]] or [word.value for word in call.keywords] or [None]
        if isinstance(call.func, ast.Attribute) and self._origin(call.func.value) not in OPENERS:
            first = getattr(_first(call), "value", "r")
            mode = isinstance(first, str) and re.fullmatch("[rwxabtU+]+", first) is not None
            if call.func.attr in METHODS and (call.func.attr != "open" or mode):
                given = [call.func.value]
            elif call.func.attr in ("glob", "rglob"):
                given = [call]
        for node in given:
            yield from self.texts(node)

    def _names(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call | ast.Name):
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
        keys = [_first(call) for call in calls if self._origin(call.func) in ("getenv", "getenvb")]
        by_key: list[tuple[ast.AST | None, ast.expr | None]] = []
        for node in self.nodes:
            if isinstance(node, ast.Call) and _named(node.func) in ("get", "pop", "setdefault"):
                by_key.append((getattr(node.func, "value", None), _first(node)))
            elif isinstance(node, ast.Subscript):
                by_key.append((node.value, node.slice))
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                by_key.append((node.comparators[0], node.left))
        keys += [key for owner, key in by_key if self._is_environ(owner)]
        owners = {owner for owner, _ in by_key}
        if any(self._is_environ(node) and node not in owners for node in self.nodes):
            keys.append(None)  # handed on as a whole
        expanded = [text for call in calls if self._function(call) == "expandvars" for text in self.texts(_first(call))]
        return {text for key in keys for text in self.texts(key)} | {*re.findall(r"\$\{?(\w+)", " ".join(expanded))}

    def _origin(self, node: ast.AST | None) -> str:
        """What a function or object is called where it was made."""
        name = _named(node)
        return self.aliases.get(name, name) if isinstance(node, ast.Name) else name

    def _is_environ(self, node: ast.AST | None) -> bool:
        return self._origin(node) in ("environ", "environb") and isinstance(getattr(node, "ctx", None), ast.Load)

    def texts(self, node: ast.AST | None, depth: int = 0) -> list[str]:
        """What a text or path may be."""
        if node is None or depth > DEEPEST:
            return [ANY]
        texts = list(dict.fromkeys(self._texts(node, depth + 1)))
        return texts if 0 < len(texts) <= MOST_TEXTS else [ANY]

    def _variable(self, name: str) -> list[str]:
        if name not in self.values:
            self.values[name] = [ANY]  # while its own values are looked at, which may name it
            values = self.assigned.get(name, []) + self.assigned.get(ANY, [])
            texts = list(dict.fromkeys(text for value in values for text in self.texts(value)))
            self.values[name] = texts if 0 < len(texts) <= MOST_VALUES else [ANY]
        return self.values[name]

    def _texts(self, node: ast.AST, depth: int) -> Iterator[str]:
        if isinstance(node, ast.Constant):
            value = os.fsdecode(node.value) if isinstance(node.value, bytes) else node.value
            yield str(value) if isinstance(value, str | int) else ANY
        elif isinstance(node, ast.Name):
            yield from [str(self.file)] if node.id == "__file__" else self._variable(node.id)
        elif isinstance(node, ast.JoinedStr):
            yield from map("".join, self._each(node.values, depth))
        elif isinstance(node, ast.FormattedValue):
            is_plain = node.format_spec is None and node.conversion in (-1, ord("s"))
            yield from self.texts(node.value, depth) if is_plain else [ANY]
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
            for text in self.texts(node.left, depth):
                yield ANY if text.isdigit() else re.sub(r"%(\([^)]*\))?[^a-zA-Z%]*[hlL]?[a-zA-Z%]", ANY, text)
        elif isinstance(node.op, ast.Add | ast.Div):
            between = "/" if isinstance(node.op, ast.Div) else ""
            for left, right in self._each([node.left, node.right], depth):
                yield right if between and right.startswith("/") else f"{left}{between}{right}"
                if left.isdigit() or right.isdigit():
                    yield ANY  # of numbers, another number

    def _called(self, call: ast.Call, depth: int) -> Iterator[str]:
        function = self._function(call)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if function == "expandvars":
            yield from (re.sub(r"\$(\w+|\{[^}]*\})", ANY, text) for text in self.texts(_first(call), depth))
        elif function in SAME:
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
            yield from (re.sub(r"\{.*\}", ANY, text) for text in self.texts(owner, depth))

    def _each(self, nodes: Iterable[ast.AST], depth: int) -> Iterator[tuple[str, ...]]:
        """Every combination of what some expressions may be; one more than MOST_TEXTS at most."""
        return islice(product(*(self.texts(node, depth) for node in nodes)), MOST_TEXTS + 1)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The variables that a node sets, each with its value, or None; those of a loop over a written list.

    A statement's own targets are its business; a target met anywhere else is set to what nobody knows.
    """
    for target, value in _known_targets(node):
        target.known = True  # type: ignore[attr-defined] # the walk comes to it after its statement
        yield target.id, value
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not hasattr(node, "known"):
        yield node.id, None
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.alias):
        yield node.asname or node.name, None
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping):
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        yield from [(name, None)] if name else []


def _known_targets(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.AugAssign):
        pairs = [(node.target, ast.BinOp(node.target, node.op, node.value))]
    elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
        pairs = [(node.target, element) for element in node.iter.elts]
    elif isinstance(node, ast.withitem):
        pairs = [(node.optional_vars, node.context_expr)]
    yield from ((target, value) for target, value in pairs if isinstance(target, ast.Name) and value is not None)


def _named(node: ast.AST | None) -> str:
    """The name of a function or module, without that of its own module."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _first(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((word.value for word in call.keywords), None)


def _is_sys_path(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", None) == "sys"


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


def _without_scheme(text: str) -> str:
    """The path of an address such as `file:rows.db?mode=ro`."""
    scheme = re.match(r"(file|sqlite):(///(?=[^/])|//)?", text)
    if scheme is None:
        return text
    root = "/" if scheme[0] == "file:///" else ""
    return root + re.sub(r"[?#].*", "", text[scheme.end() :])


def _is_unknown(text: str) -> bool:
    return not re.search(r"\w", text)


def _may_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and bool(re.search(r"\w", text)) and not re.search(r"[\0\r\n]", text)

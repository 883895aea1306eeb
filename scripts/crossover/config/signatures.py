"""The arguments of a user's builder: its signature, read without running the file, and what is passed to each argument.

The same rule applies to the signature as read here and to that of the imported function.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from crossover.config.own_batches import Function, last_name, own_batch, own_nodes
from crossover.errors import UserError, allowed_names
from crossover.files import relative_path, working_folder

SIGNATURE = "build(size, batch_size), or fewer of these arguments"
DEVICE = "device"
FUNCTION_ARGUMENTS = ("batch_size", DEVICE, "variant", "protocol")
"""Arguments that a function with an argument `device` may have besides its size."""
FUNCTION_SIGNATURE = "build(size, device), also with batch_size, variant or protocol"
BATCH_NAMES = ("batch_size", "batchsize", "batch", "bs")
"""Names of an argument that takes the batch size, wherever it stands."""

KEEPING = ("cache", "lru_cache", "no_grad", "inference_mode", "enable_grad")
"""Decorators that keep a function's signature, by the last part of their name."""
LITERALS = (
    *(ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Compare),
)
MOST_STEPS = 20
"""Number of names, from `build = make` or an import to the next, that are followed to a definition."""


@dataclass(frozen=True)
class Arguments:
    """What a builder's arguments receive: the name of the argument for each value that is passed."""

    of: Mapping[str, str]
    """The argument for `size` and for each of FUNCTION_ARGUMENTS that is passed."""
    positions: str | None = None
    """The argument `*args`, which receives size and batch size if no other argument does."""
    missing: tuple[str, ...] = ()
    """Required arguments that receive nothing."""

    @classmethod
    def of_signature(cls, parameters: Signature) -> Arguments:
        """Assign the arguments of a signature.

        The size goes to the first argument. If that is for the batch size (BATCH_NAMES), or for another of
        FUNCTION_ARGUMENTS in a function with an argument `device`, the size goes to the first other argument without a
        default.
        """
        named = [p for p in parameters.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        names = [parameter.name for parameter in named]
        axes = {name: name for name in FUNCTION_ARGUMENTS if name in names} if DEVICE in names else {}
        if batch := next((name for name in names if name in BATCH_NAMES), None):
            axes["batch_size"] = batch
        others = [parameter for parameter in named if parameter.name not in axes.values()]
        needed = [parameter.name for parameter in others if parameter.default is parameter.empty]
        first = named[0] if named[:1] == others[:1] and named and _may_be_size(named[0]) else None
        size = first.name if first else next(iter(needed), None)
        needed = [name for name in needed if name != size]
        of = {"size": size, **axes} if size else axes
        rest = next((p.name for p in parameters.parameters.values() if p.kind is p.VAR_POSITIONAL), None)
        return cls(of, None if DEVICE in axes else rest, tuple(needed))

    def passed(self, parameters: Signature) -> tuple[str, ...]:
        """Those of size and batch size that an argument takes, in the order of the arguments."""
        names = list(parameters.parameters)
        places = {name: names.index(self.of[name]) for name in ("size", "batch_size") if name in self.of}
        rest = [name for name in ("size", "batch_size") if name not in self.of and self.positions is not None]
        return (*sorted(places, key=places.__getitem__), *rest)

    def bound(self, parameters: Signature, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments of a call; `values` are those of `size` and FUNCTION_ARGUMENTS."""
        call = parameters.bind_partial()
        given = {self.of[name]: value for name, value in values.items() if name in self.of}
        if self.positions is not None:
            rest = tuple(values[name] for name in ("size", "batch_size") if name not in self.of)
            given[self.positions] = rest
        call.arguments.update({name: given[name] for name in parameters.parameters if name in given})
        call.apply_defaults()  # an argument in `*args` needs all arguments before it
        return call.args, call.kwargs


def _may_be_size(parameter: Parameter) -> bool:
    """Whether a first argument may take a size: not an option, such as `pretrained=False` or `*, lr=0.1`."""
    if parameter.default is parameter.empty:
        return True
    return parameter.kind is not parameter.KEYWORD_ONLY and not isinstance(parameter.default, bool | float)


class Source(str):
    """An expression of a default value, which is shown as in the source."""

    __slots__ = ()
    __repr__ = str.__str__


@dataclass(frozen=True)
class Definition:
    """A function or class in a file, as far as it can be read without running the file."""

    file: Path
    line: int
    signature: Signature
    """The arguments; a default is a literal's value or a Source."""
    is_exact: bool = True
    """False if a decorator may change the signature."""
    unused: frozenset[str] = frozenset()
    """The arguments that the body never reads."""
    own_batch: int | None = None
    """The rows of the batch that it builds, if they are known and the same at each size."""


def find_definition(file: Path, name: str, wanted: str = SIGNATURE) -> Definition | None:
    """The definition that a name of a file stands for; None if it cannot be read.

    Imports of the user's own modules and assignments such as `build = partial(make, 3)` are followed. Raises UserError
    if the name is missing, or stands for no plain function; `wanted` is the function to add.
    """
    tree = parsed(file)
    bound = set(chain.from_iterable(map(_binds, ast.walk(tree))))  # including definitions within `if` and `try`
    if name not in bound and "*" not in bound:
        functions = sorted(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
        hint = allowed_names(name, functions) if functions else f"add one: {wanted}"
        raise UserError(f"{relative_path(file)}: there is no function {name}; {hint}")
    try:
        return _definition(file, name, MOST_STEPS)
    except _NoFunctionError as error:
        raise UserError(f"{error}, {wanted}") from None


class _NoFunctionError(Exception):
    """A name stands for something that cannot be called like a function."""


def _refuse(file: Path, node: ast.stmt, text: str, allowed: str = "a function") -> NoReturn:
    raise _NoFunctionError(f"{relative_path(file)}: line {node.lineno}: {text}; allowed: {allowed}")


def _definition(file: Path, name: str, steps: int) -> Definition | None:
    nodes = [node for node in parsed(file).body if name in _names_bound_by(node)]
    if not nodes or not steps:
        return None
    node = nodes[-1]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _of_function(file, node)
    if isinstance(node, ast.ClassDef):
        return _of_class(file, node)
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if _is_literal(node.value) and any(getattr(target, "id", "") == name for target in targets):
            _refuse(file, node, f"{name} is no function")
        return _of_value(file, node.value, steps - 1)
    if isinstance(node, ast.Import):
        _refuse(file, node, f"{name} is no function")
    return _of_import(file, node, name, steps - 1) if isinstance(node, ast.ImportFrom) else None


def _of_function(file: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Definition:
    is_exact = all(_last_name(decorator) in KEEPING for decorator in node.decorator_list)
    if is_exact and isinstance(node, ast.AsyncFunctionDef):
        _refuse(file, node, f"{node.name} is an async function", "a plain one")
    if is_exact and any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own_nodes(node)):
        _refuse(file, node, f"{node.name} is a generator, since it has a yield", "a plain function")
    return Definition(
        file, node.lineno, _signature(node.args), is_exact, _unused_by(node), own_batch(node, parsed(file))
    )


def _is_literal(value: ast.expr) -> bool:
    """Whether an expression is a number, string or collection, which cannot be called."""
    if isinstance(value, ast.UnaryOp):
        return _is_literal(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_literal(value.left) and _is_literal(value.right)
    return isinstance(value, LITERALS)


def _of_class(file: Path, node: ast.ClassDef) -> Definition | None:
    """The definition of a class by its own `__new__` or `__init__`; None if it may inherit or generate it."""
    methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
    method = methods.get("__new__") or methods.get("__init__")
    if method is None or method.decorator_list or node.decorator_list or node.keywords:
        return None
    parameters = list(_signature(method.args).parameters.values())
    if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL:
        del parameters[0]
    return Definition(file, node.lineno, Signature(parameters))


def _of_value(file: Path, value: ast.expr, steps: int) -> Definition | None:
    """The definition of what is assigned to a name: a lambda, another name, or a `partial` of one."""
    if isinstance(value, ast.Lambda):
        signature_read, unused = _signature(value.args), _unused_by(value)
        return Definition(file, value.lineno, signature_read, True, unused, own_batch(value, parsed(file)))
    if isinstance(value, ast.Name):
        return _definition(file, value.id, steps)
    if not isinstance(value, ast.Call) or _last_name(value.func) != "partial" or not value.args:
        return None
    made = _of_value(file, value.args[0], steps)
    return None if made is None else _with_arguments(made, value)


def _with_arguments(made: Definition, call: ast.Call) -> Definition | None:
    """The definition after a `partial`; None if its arguments cannot be counted, or do not fit."""

    def stand_in(*_: Any, **__: Any) -> None: ...

    stand_in.__signature__ = made.signature  # type: ignore[attr-defined]
    keywords = {keyword.arg: _default(keyword.value) for keyword in call.keywords if keyword.arg}
    if len(keywords) < len(call.keywords) or any(isinstance(part, ast.Starred) for part in call.args):
        return None
    try:
        left = signature(functools.partial(stand_in, *[None] * len(call.args[1:]), **keywords))
    except (ValueError, TypeError):
        return None
    return replace(made, line=call.lineno, signature=left)


def _of_import(file: Path, statement: ast.ImportFrom, name: str, steps: int) -> Definition | None:
    """The definition that a statement imports from a Python file; None if there is no such file."""
    imported = next((alias.name for alias in statement.names if name in _binds(alias)), "*")
    module = statement.module or ""
    if statement.level:
        folder = file.parents[statement.level - 1]
        source = module_file(module, [folder]) if module else folder / "__init__.py"
    else:
        source = module_file(module, [file.resolve().parent, file.parent])
    return _definition(source, imported, steps) if source is not None and source.is_file() else None


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


def _signature(arguments: ast.arguments) -> Signature:
    positional = [*arguments.posonlyargs, *arguments.args]
    kinds: list[Any] = [Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [Parameter.POSITIONAL_OR_KEYWORD] * len(arguments.args)
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [(*part, Parameter.KEYWORD_ONLY) for part in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    parameters = [
        Parameter(argument.arg, kind, default=_default(default))
        for argument, default, kind in [*zip(positional, defaults, kinds, strict=True), *parts]
    ]
    if arguments.vararg:
        parameters.insert(len(positional), Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    if arguments.kwarg:
        parameters.append(Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(parameters)


def _default(value: ast.expr | None) -> Any:
    """A literal's value, another expression as a Source, or `Parameter.empty` for None."""
    if value is None:
        return Parameter.empty
    return value.value if isinstance(value, ast.Constant) else Source(ast.unparse(value))


def _unused_by(function: Function) -> frozenset[str]:
    """The arguments whose names the body never reads; empty if it may read them as `locals()`."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    names_read = (node for part in body for node in ast.walk(part) if isinstance(node, ast.Name))
    read = {node.id for node in names_read if isinstance(node.ctx, ast.Load)}
    names = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    return frozenset() if read & {"locals", "vars", "eval", "exec"} else frozenset(names - read)


def _names_bound_by(node: ast.stmt) -> list[str]:
    """The names that a statement binds, other than those within functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return list(chain.from_iterable(map(_binds, ast.walk(node))))


def _binds(node: ast.AST) -> list[str]:
    if isinstance(node, ast.alias):
        return [node.asname or node.name]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _last_name(node: ast.expr) -> str:
    """The last part of a dotted name, also of a called one; empty for other expressions."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a Python file; raises UserError."""
    shown = relative_path(file)
    try:
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not valid Python ({error.msg}); fix the file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown}: cannot be read ({error}); give a Python file") from None

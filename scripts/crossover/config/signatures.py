"""The arguments of a user's builder: its signature, read without running the file, and what is passed to each argument.

The same rule applies to the signature as read here and to that of the imported function.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from crossover.config.own_batches import Function, last_name, own_batch, own_nodes
from crossover.config.source_names import (
    Lineage,
    binds,
    bound_in,
    is_torch_module,
    lineage_of,
    makes_models,
    parsed,
    resolved,
    resolved_value,
)
from crossover.errors import UserError, allowed_names
from crossover.files import relative_path

RETURNS = "(model, inputs), (model, inputs, targets) or a crossover.Step"
"""What a function that builds a model may return."""
WITHOUT_BATCH = f"is a class of models, without a batch; give the study `data`, or a function that returns {RETURNS}"
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
MODEL, OBJECT = "model", "object"
"""What a class makes: subclasses of torch.nn.Module, and others whose base classes are all known."""
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
    def of_signature(cls, parameters: Signature, is_function: bool | None = None) -> Arguments:
        """Assign the arguments of a signature; by default, it is that of a function if it has an argument `device`.

        The size goes to the first argument. If that is for the batch size (BATCH_NAMES), or for another of
        FUNCTION_ARGUMENTS in a function with an argument `device`, the size goes to the first other argument without a
        default.
        """
        named = [p for p in parameters.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        names = [parameter.name for parameter in named]
        is_function = DEVICE in names if is_function is None else is_function
        axes = {name: name for name in FUNCTION_ARGUMENTS if is_function and name in names}
        if batch := next((name for name in names if name in BATCH_NAMES), None):
            axes["batch_size"] = batch
        others = [parameter for parameter in named if parameter.name not in axes.values()]
        needed = [parameter.name for parameter in others if parameter.default is parameter.empty]
        first = named[0] if named[:1] == others[:1] and named and _may_be_size(named[0]) else None
        size = first.name if first else next(iter(needed), None)
        needed = [name for name in needed if name != size]
        of = {"size": size, **axes} if size else axes
        rest = next((p.name for p in parameters.parameters.values() if p.kind is p.VAR_POSITIONAL), None)
        return cls(of, None if is_function else rest, tuple(needed))

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


def missing_text(name: str, parameters: Signature, arguments: Arguments, is_users: bool = True) -> str:
    """The sentence about required arguments that receive nothing, of a builder that is the user's or a package's."""
    allowed = FUNCTION_SIGNATURE if DEVICE in arguments.of else SIGNATURE
    default = f"give {arguments.missing[0]} a default, or call it batch_size if it is the batch size"
    return (
        f"{name}{parameters} needs {', '.join(arguments.missing)}, which Crossover does not pass; allowed: {allowed}; "
        f"{default if is_users else f'write a function that calls {name}'}"
    )


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
    made: str | None = None
    """What a class makes: MODEL, OBJECT, or None if that may be all that a builder returns."""


def find_definition(file: Path, name: str, wanted: str = SIGNATURE) -> Definition | None:
    """The definition that a name of a file stands for; None if it cannot be read.

    Imports, base classes and assignments such as `build = partial(make, 3)` are followed. Raises UserError if the name
    is missing, or stands for no plain function; `wanted` is the function to add.
    """
    tree = parsed(file)
    bound = set(chain.from_iterable(map(binds, ast.walk(tree))))  # including definitions within `if` and `try`
    if name not in bound and "*" not in bound:
        functions = sorted(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
        hint = allowed_names(name, functions) if functions else f"add one: {wanted}"
        raise UserError(f"{relative_path(file)}: there is no function {name}; {hint}")
    try:
        return _definition(file, name)
    except _NoFunctionError as error:
        raise UserError(f"{error}, {wanted}") from None


class _NoFunctionError(Exception):
    """A name stands for something that cannot be called like a function."""


def _refuse(file: Path, node: ast.stmt | ast.expr, text: str, allowed: str = "a function") -> NoReturn:
    raise _NoFunctionError(f"{relative_path(file)}: line {node.lineno}: {text}; allowed: {allowed}")


def _definition(file: Path, name: str) -> Definition | None:
    place = resolved(file, name, MOST_STEPS)
    if place is None:
        return None
    if isinstance(place[1], ast.Import | ast.ImportFrom) or (isinstance(place[1], ast.expr) and _is_literal(place[1])):
        _refuse(place[0], place[1], f"{name} is no function")
    return _of_place(*place, MOST_STEPS)


def _of_place(file: Path, node: ast.AST, steps: int) -> Definition | None:
    """The definition of a statement or expression that `resolved` returns; None if it cannot be read."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _of_function(file, node)
    if isinstance(node, ast.ClassDef):
        return _of_class(file, node)
    if isinstance(node, ast.Lambda):
        unused = _unused_by(node)
        return Definition(file, node.lineno, _signature(node.args), True, unused, own_batch(node, parsed(file)))
    if isinstance(node, ast.Call) and steps:
        return _of_call(file, node, steps - 1)
    return _of_method(file, node) if isinstance(node, ast.Attribute) else None


def _of_value(file: Path, value: ast.expr, steps: int) -> Definition | None:
    place = resolved_value(file, value, MOST_STEPS)
    return None if place is None else _of_place(*place, steps)


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


def _of_class(file: Path, node: ast.ClassDef) -> Definition:
    """The definition of a class by its own or inherited `__new__` or `__init__`; not exact if that is not known."""
    lineage = lineage_of(file, node, MOST_STEPS)
    made = MODEL if makes_models(lineage) else None
    unknown = Definition(file, node.lineno, Signature(), is_exact=False, made=made)
    made = made or (None if None in lineage else OBJECT)
    for place in lineage:
        if place is None or place[1].decorator_list or _has_metaclass(place[1]):
            return unknown
        method = bound_in(place[1], "__new__") or bound_in(place[1], "__init__")
        if method is None or is_torch_module(*place):
            continue
        if not isinstance(method, ast.FunctionDef) or method.decorator_list:
            return unknown
        arguments = _without_first(_signature(method.args))
        if method.name == "__new__":
            return Definition(file, node.lineno, arguments)
        is_step = DEVICE in arguments.parameters and any(bound_in(part[1], "__call__") for part in lineage if part)
        made = None if made == OBJECT and is_step else made
        return Definition(file, node.lineno, arguments, True, _unused_by(method), made=made)
    return Definition(file, node.lineno, Signature(), made=made)


def _has_metaclass(node: ast.ClassDef) -> bool:
    """Whether a metaclass other than ABCMeta may change what a call of the class does."""
    return any(word.arg in (None, "metaclass") and _last_name(word.value) != "ABCMeta" for word in node.keywords)


def _without_first(signature: Signature) -> Signature:
    """The arguments without `self` or `cls`."""
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL:
        del parameters[0]
    return Signature(parameters)


def _of_call(file: Path, call: ast.Call, steps: int) -> Definition | None:
    """The definition of what a call returns: a `partial`, a cached function, an instance or an inner function."""
    if _last_name(call.func) == "partial" and call.args:
        made = _of_value(file, call.args[0], steps)
        return None if made is None else _with_arguments(made, call)
    if _last_name(call.func) in KEEPING and len(call.args) == 1:
        return _of_value(file, call.args[0], steps)
    place = resolved_value(file, call.func, MOST_STEPS)
    if place is None:
        return None
    if isinstance(place[1], ast.ClassDef):
        lineage = lineage_of(place[0], place[1], MOST_STEPS)
        if makes_models(lineage):
            _refuse(file, call, f"{ast.unparse(call.func)}(...) is a model", "a function that builds one")
        return _bound_method(lineage, "__call__", of_instance=True)
    if isinstance(place[1], ast.FunctionDef) and not place[1].decorator_list:
        inner = _returned_function(place[1])
        return None if inner is None else _of_place(place[0], inner, steps)
    return None


def _returned_function(function: ast.FunctionDef) -> ast.FunctionDef | ast.Lambda | None:
    """The inner function that a function returns, if it returns nothing else and binds its name once."""
    nodes = list(own_nodes(function))
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    if len(returned) == 1 and isinstance(returned[0], ast.Lambda):
        return returned[0]
    named = [node for node in nodes if [getattr(value, "id", None) for value in returned] == binds(node)]
    return named[0] if len(named) == 1 and isinstance(named[0], ast.FunctionDef) else None


def _of_method(file: Path, attribute: ast.Attribute) -> Definition | None:
    """The definition of a method of a class or of an instance, such as `Net.build` or `Factory(3).build`."""
    place = resolved_value(file, attribute.value, MOST_STEPS)
    of_instance = place is not None and isinstance(place[1], ast.Call)
    if place is not None and isinstance(place[1], ast.Call):
        place = resolved_value(place[0], place[1].func, MOST_STEPS)
    if place is None or not isinstance(place[1], ast.ClassDef):
        return None
    return _bound_method(lineage_of(place[0], place[1], MOST_STEPS), attribute.attr, of_instance)


def _bound_method(lineage: Lineage, name: str, of_instance: bool) -> Definition | None:
    """The definition of a method, without the argument that Python passes; None if it cannot be read."""
    for place in lineage:
        if place is None:
            return None
        method = bound_in(place[1], name)
        if method is None:
            continue
        kinds = [_last_name(decorator) for decorator in getattr(method, "decorator_list", ())]
        if not isinstance(method, ast.FunctionDef) or kinds not in ([], ["staticmethod"], ["classmethod"]):
            return None
        definition = _of_function(place[0], method)
        passes_first = kinds == ["classmethod"] or (of_instance and not kinds)
        arguments = _without_first(definition.signature) if passes_first else definition.signature
        return replace(definition, signature=arguments, is_exact=True)
    return None


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


def _last_name(node: ast.expr) -> str:
    """The last part of a dotted name, also of a called one; empty for other expressions."""
    return last_name(node.func if isinstance(node, ast.Call) else node)

"""The arguments of a user's builder: its signature, read without running the file, and what is passed to each argument.

The same rule applies to the signature as read here and to that of the imported function, which also serves where the
file says too little: for methods, functions that functions return, and imports with `*`.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Any

from crossover.config.source_names import MOST_STEPS, binds, parsed, resolved
from crossover.errors import UserError, allowed_names
from crossover.files import relative_path

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

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
MODULE = "Module"
"""The last part of the name of torch.nn.Module."""
FILLED = ("rand", "randn", "randint", "zeros", "ones", "empty")
"""Functions of torch that make a tensor of a given shape, by the last part of their name."""
TIME_FIRST = ("RNN", "GRU", "LSTM", "Transformer", "MultiheadAttention", "batch_first")
"""Parts of the names of layers of torch that may expect the batch in the second dimension."""
ROOTS = (MODULE, "object", "Generic", "ABC")
"""Base classes without arguments, by the last part of their name."""


@dataclass(frozen=True)
class Arguments:
    """What a builder's arguments receive: the name of the argument for each value that is passed."""

    of: Mapping[str, str]
    """The argument for `size` and for each of FUNCTION_ARGUMENTS that is passed."""
    positions: str | None = None
    """The argument `*args`, which receives size and batch size if no other argument does."""
    missing: tuple[str, ...] = ()
    """Required arguments that receive nothing, after names in `axes` that are no arguments."""

    @classmethod
    def of_signature(
        cls, parameters: Signature, is_function: bool | None = None, sizes: Sequence[str] = ()
    ) -> Arguments:
        """Assign the arguments of a signature; by default, it is that of a function if it has an argument `device`.

        `sizes` are the arguments for the size and for a second size, in place of the batch size. Without them, the size
        goes to the first argument. If that is for the batch size (BATCH_NAMES), or for another of FUNCTION_ARGUMENTS in
        a function with an argument `device`, the size goes to the first other argument without a default.
        """
        named = [p for p in parameters.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        names = [parameter.name for parameter in named]
        is_function = DEVICE in names if is_function is None else is_function
        axes = {name: name for name in FUNCTION_ARGUMENTS if is_function and name in names}
        if batch := next((name for name in names if name in BATCH_NAMES), None):
            axes["batch_size"] = batch
        if sizes:
            axes["batch_size"] = sizes[1]
        others = [parameter for parameter in named if parameter.name not in axes.values()]
        needed = [parameter.name for parameter in others if parameter.default is parameter.empty]
        first = named[0] if named[:1] == others[:1] and named and _may_be_size(named[0]) else None
        size = sizes[0] if sizes else first.name if first else next(iter(needed), None)
        needed = [name for name in needed if name != size]
        of = {"size": size, **axes} if size else axes
        rest = next((p.name for p in parameters.parameters.values() if p.kind is p.VAR_POSITIONAL), None)
        unknown = [name for name in sizes if name not in names]
        return cls(of, None if is_function else rest, (*unknown, *needed))

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
    if unknown := [name for name in arguments.missing if name not in parameters.parameters]:
        return f"{name}{parameters} has no argument {' and '.join(unknown)}, which `axes` names; name two that it has"
    allowed = FUNCTION_SIGNATURE if DEVICE in arguments.of else SIGNATURE
    may_change = is_users and DEVICE not in arguments.missing
    default = f"give {arguments.missing[0]} a default, or call it batch_size if it is the batch size"
    if DEVICE in arguments.of and arguments.of.get("batch_size", "batch_size") in BATCH_NAMES:
        default += ", or name two sizes in `axes`"
    return (
        f"{name}{parameters} needs {', '.join(arguments.missing)}, which Crossover does not pass; allowed: {allowed}; "
        f"{default if may_change else f'write a function that calls {name}'}"
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
    """False if a decorator or a base class may change the signature."""
    unused: frozenset[str] = frozenset()
    """The arguments that the body never reads."""
    own_batch: int | None = None
    """The rows of the batch that it builds, if they are known and the same at each size."""
    makes_models: bool = False
    """Whether it is a subclass of torch.nn.Module."""


def find_definition(file: Path, name: str) -> Definition | None:
    """The definition that a name of a file stands for; None if it cannot be read.

    Imports, base classes and assignments such as `build = partial(make, 3)` are followed. Raises UserError if the name
    is missing.
    """
    tree = parsed(file)
    bound = set(chain.from_iterable(map(binds, ast.walk(tree))))  # including definitions within `if` and `try`
    if name not in bound and "*" not in bound:
        functions = sorted(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
        hint = allowed_names(name, functions) if functions else f"add one: {SIGNATURE}"
        raise UserError(f"{relative_path(file)}: there is no function {name}; {hint}")
    return _of_value(file, ast.Name(name), MOST_STEPS)


def _of_value(file: Path, value: ast.expr, steps: int) -> Definition | None:
    """The definition that an expression of a file stands for, after at most `steps` other expressions; or None."""
    place = resolved(file, value)
    if place is None or not steps:
        return None
    file, node = place
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        decorators = getattr(node, "decorator_list", ())
        is_exact = all(_last_name(decorator) in KEEPING for decorator in decorators)
        batch = _own_batch(node, parsed(file))
        return Definition(file, node.lineno, _signature(node.args), is_exact, _unused_by(node), batch)
    if isinstance(node, ast.ClassDef):
        return _of_class(file, node, steps - 1)
    if isinstance(node, ast.Call) and node.args:
        made = _of_value(file, node.args[0], steps - 1)
        if made is not None and _last_name(node.func) == "partial":
            return _with_arguments(made, node)
        return made if _last_name(node.func) in KEEPING and len(node.args) == 1 else None
    return None


def _of_class(file: Path, node: ast.ClassDef, steps: int) -> Definition:
    """The definition of a class by its own `__init__`, or that of a base class; not exact if that is not known."""
    names = [_last_name(base) for base in node.bases]
    bases = [_of_value(file, base, steps) for base, name in zip(node.bases, names, strict=True) if name not in ROOTS]
    makes_models = MODULE in names or any(base and base.makes_models for base in bases)
    inits = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name in ("__init__", "__new__")]
    if len(inits) == 1 and not node.decorator_list:
        arguments = Signature([*_signature(inits[0].args).parameters.values()][1:])  # without `self`
        return Definition(file, node.lineno, arguments, unused=_unused_by(inits[0]), makes_models=makes_models)
    inherited = bases[0] if len(bases) == 1 and not inits and not node.decorator_list else None
    if inherited is not None:
        return replace(inherited, makes_models=makes_models)
    is_exact = not bases and not inits and not node.decorator_list
    return Definition(file, node.lineno, Signature(), is_exact, makes_models=makes_models)


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
    """The last part of a dotted name, also of a called or subscripted one; empty for other expressions."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _own_nodes(code: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of the functions and classes within it."""
    waiting: list[ast.AST] = [code.body] if isinstance(code, ast.Lambda) else [*code.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _own_batch(function: Function, file: ast.Module) -> int | None:
    """The rows of the tensors that a function in a file returns beside its model, as in `net, torch.randn(20, 8)`.

    None unless each of them has the same number of rows, given in the function, and the batch is their first dimension.
    """
    names = (getattr(node, key, "") or "" for node in ast.walk(file) for key in ("id", "attr", "arg", "name"))
    if any(part in str(name) for name in names for part in TIME_FIRST):
        return None
    assigned = _assigned(function)
    values = [node.value for node in _own_nodes(function) if isinstance(node, ast.Return) and node.value]
    rows = {
        _rows(part, assigned)
        for value in ([function.body] if isinstance(function, ast.Lambda) else values)
        for part in (value.elts[1:] if isinstance(value, ast.Tuple) else [value])
    }
    return rows.pop() if len(rows) == 1 else None


def _assigned(function: Function) -> Mapping[str, ast.expr]:
    """The values of the names that a function binds once, by a plain assignment."""
    nodes = list(_own_nodes(function))
    bound = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    plain = [(node.targets[0], node.value) for node in nodes if isinstance(node, ast.Assign)]
    return {name.id: value for name, value in plain if isinstance(name, ast.Name) and bound[name.id] == 1}


def _rows(tensor: ast.expr, assigned: Mapping[str, ast.expr]) -> int | None:
    """The first dimension of a tensor; None if it is not known."""
    tensor = assigned.get(getattr(tensor, "id", ""), tensor)
    if not isinstance(tensor, ast.Call) or (name := _last_name(tensor.func)) not in FILLED:
        return None
    sequences = [shape.elts for shape in tensor.args if isinstance(shape, ast.Tuple | ast.List)]
    dimensions = sequences[0] if sequences else [] if name == "randint" else tensor.args
    value = getattr(dimensions[0], "value", None) if dimensions else None
    return value if type(value) is int else None

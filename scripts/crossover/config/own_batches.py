"""The number of rows in the batch that a user's builder gives its model, read without running it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

UNKNOWN = ast.Constant(...)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

FILLED = ("rand", "randn", "randint", "zeros", "ones", "empty", "full", "normal", "standard_normal")
"""Functions of torch and NumPy that make an array of a given shape, by the last part of their name."""
AFTER_VALUES = ("randint", "full", "normal")
"""Those of FILLED whose shape is a tuple or list after other arguments, as in randint(10, (32,))."""
CONVERTING = ("from_numpy", "tensor", "as_tensor", "rand_like", "randn_like", "zeros_like", "ones_like")
"""Functions whose result has as many rows as their first argument."""
METHODS = ("to", "type", "float", "double", "half", "bfloat16", "int", "long", "contiguous", "requires_grad_", "astype")
"""Methods whose result has as many rows as their object."""
TIME_FIRST = ("RNN", "GRU", "LSTM", "Transformer", "MultiheadAttention", "batch_first")
"""Parts of the names of layers of torch that may expect the batch in the second dimension."""


def own_nodes(code: Function | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a body without those of the functions and classes within it."""
    waiting: list[ast.AST] = [code.body] if isinstance(code, ast.Lambda) else [*code.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def own_batch(function: Function, file: ast.Module) -> int | None:
    """The rows of the tensors that a function in a file returns beside its model.

    None unless each of them has the same number of rows, given in the file, and the batch is their first dimension.
    """
    names = (getattr(node, key, "") or "" for node in ast.walk(file) for key in ("id", "attr", "arg", "name"))
    if any(part in str(name) for name in names for part in TIME_FIRST):
        return None
    arguments = {node.arg: UNKNOWN for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    shapes = _Shapes({**_assigned(file), **arguments, **_assigned(function)})
    values = [node.value for node in own_nodes(function) if isinstance(node, ast.Return)]
    returned = [function.body] if isinstance(function, ast.Lambda) else [value for value in values if value]
    rows = {shapes.rows(part) for value in returned for part in shapes.batch(value)}
    return rows.pop() if len(rows) == 1 else None


def _assigned(code: Function | ast.Module) -> dict[str, ast.expr]:
    """The values of the names that a body binds: UNKNOWN unless it is one assignment."""
    nodes = list(own_nodes(code))
    bound = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    values: dict[str, ast.expr] = dict.fromkeys(bound, UNKNOWN)
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            values.update({name: value for name, value in _pairs(node.targets[0], node.value) if bound[name] == 1})
    return values


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for part, its_value in zip(target.elts, value.elts, strict=True):
            yield from _pairs(part, its_value)


@dataclass(frozen=True)
class _Shapes:
    assigned: Mapping[str, ast.expr]
    """The expressions that names stand for."""

    def batch(self, returned: ast.expr) -> list[ast.expr | None]:
        """The inputs and targets of a returned tuple or Step; [None] if they, or their samples, are not known."""
        returned = self._value(returned)
        if isinstance(returned, ast.Tuple) and len(returned.elts) in (2, 3):
            return [leaf for part in returned.elts[1:] for leaf in self._leaves(part)]
        if isinstance(returned, ast.Call) and last_name(returned.func) == "Step":
            parts = {keyword.arg: keyword.value for keyword in returned.keywords}
            if "inputs" in parts and not {"samples", None} & parts.keys():
                return [leaf for key in ("inputs", "targets") if key in parts for leaf in self._leaves(parts[key])]
        return [None]

    def _leaves(self, part: ast.expr) -> Iterator[ast.expr]:
        part = self._value(part)
        values = part.values if isinstance(part, ast.Dict) else part.elts if isinstance(part, ast.Tuple) else None
        if values is not None:
            for value in values:
                yield from self._leaves(value)
        elif not (isinstance(part, ast.Constant) and part.value is None):
            yield part

    def rows(self, tensor: ast.expr | None) -> int | None:
        """The first dimension of a tensor; None if it is not known."""
        tensor = self._value(tensor) if tensor is not None else None
        if not isinstance(tensor, ast.Call):
            return None
        name = last_name(tensor.func)
        if name in CONVERTING:
            return self.rows(tensor.args[0]) if tensor.args else None
        if name in METHODS and isinstance(tensor.func, ast.Attribute):
            return self.rows(tensor.func.value)
        if name not in FILLED:
            return None
        shapes = [keyword.value for keyword in tensor.keywords if keyword.arg == "size"] or tensor.args
        whole = [self._value(shape) for shape in shapes]
        sequences = [shape.elts for shape in whole if isinstance(shape, ast.Tuple | ast.List)]
        first = next(iter(sequences[0] if sequences else whole), UNKNOWN)
        value = getattr(self._value(first), "value", None)
        is_shape = bool(sequences) or name not in AFTER_VALUES
        return value if type(value) is int and is_shape else None

    def _value(self, node: ast.expr) -> ast.expr:
        """The expression that a name stands for, or the expression itself."""
        seen = set()
        while isinstance(node, ast.Name) and node.id in self.assigned and node.id not in seen:
            seen.add(node.id)
            node = self.assigned[node.id]
        return node


def last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))

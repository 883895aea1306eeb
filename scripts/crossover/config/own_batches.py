"""The number of rows in the batch that a user's builder gives its model, read without running it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

FILLED = ("rand", "randn", "randint", "zeros", "ones", "empty")
"""Functions of torch that make a tensor of a given shape, by the last part of their name."""
TIME_FIRST = ("RNN", "GRU", "LSTM", "Transformer", "MultiheadAttention", "batch_first")
"""Parts of the names of layers of torch that may expect the batch in the second dimension."""


def own_nodes(code: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of the functions and classes within it."""
    waiting: list[ast.AST] = [code.body] if isinstance(code, ast.Lambda) else [*code.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def own_batch(function: Function, file: ast.Module) -> int | None:
    """The rows of the tensors that a function in a file returns beside its model, as in `net, torch.randn(20, 8)`.

    None unless each of them has the same number of rows, given in the function, and the batch is their first dimension.
    """
    names = (getattr(node, key, "") or "" for node in ast.walk(file) for key in ("id", "attr", "arg", "name"))
    if any(part in str(name) for name in names for part in TIME_FIRST):
        return None
    assigned = _assigned(function)
    values = [node.value for node in own_nodes(function) if isinstance(node, ast.Return) and node.value]
    rows = {
        _rows(part, assigned)
        for value in ([function.body] if isinstance(function, ast.Lambda) else values)
        for part in (value.elts[1:] if isinstance(value, ast.Tuple) else [value])
    }
    return rows.pop() if len(rows) == 1 else None


def _assigned(function: Function) -> Mapping[str, ast.expr]:
    """The values of the names that a function binds once, by a plain assignment."""
    nodes = list(own_nodes(function))
    bound = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    plain = [(node.targets[0], node.value) for node in nodes if isinstance(node, ast.Assign)]
    return {name.id: value for name, value in plain if isinstance(name, ast.Name) and bound[name.id] == 1}


def _rows(tensor: ast.expr, assigned: Mapping[str, ast.expr]) -> int | None:
    """The first dimension of a tensor; None if it is not known."""
    tensor = assigned.get(getattr(tensor, "id", ""), tensor)
    if not isinstance(tensor, ast.Call) or (name := last_name(tensor.func)) not in FILLED:
        return None
    sequences = [shape.elts for shape in tensor.args if isinstance(shape, ast.Tuple | ast.List)]
    dimensions = sequences[0] if sequences else [] if name == "randint" else tensor.args
    value = getattr(dimensions[0], "value", None) if dimensions else None
    return value if type(value) is int else None


def last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))

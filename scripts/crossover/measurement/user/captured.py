"""What a user's function uses besides its arguments: objects in its closure, defaults and globals, or of its instance.

A whole step may use a second network, such as a teacher or an average of the weights. Crossover is not given it, but
must move it to the device like the model.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from crossover.machine.installed import STANDARD_LIBRARY

DEEPEST = 6
"""Number of objects within objects that are followed."""

MOST_ITEMS = 1000
"""Longer containers hold data, such as the transitions of a replay buffer."""

OPAQUE = (str, bytes, int, float, complex, type, types.ModuleType, torch.optim.Optimizer, Dataset, DataLoader)


def captured(function: Any, kinds: Any = (nn.Module, torch.Tensor)) -> dict[str, Any]:
    """The objects of these kinds that a function can reach without its arguments, by name, each once.

    Modules are not searched, and neither are data sets, optimizers and the globals of installed packages.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def visit(name: str, value: Any, depth: int) -> None:
        if value is None or depth > DEEPEST or id(value) in seen or isinstance(value, OPAQUE):
            return
        seen.add(id(value))
        if isinstance(value, kinds):
            found.setdefault(name, value)
            return
        if isinstance(value, nn.Module | torch.Tensor):
            return
        for part_name, part in _parts(name, value):
            visit(part_name, part, depth + 1)

    visit(getattr(function, "__name__", "run"), function, 0)
    return found


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.MethodType):
        yield from ((name, value.__func__), (name, value.__self__))
    elif isinstance(value, types.FunctionType):
        yield from _held_by(value)
    elif isinstance(value, partial):
        yield from ((name, value.func), *((name, part) for part in value.args), *value.keywords.items())
    elif isinstance(value, Mapping | list | tuple | set):
        parts = list(value.values() if isinstance(value, Mapping) else value) if len(value) <= MOST_ITEMS else []
        yield from ((name, part) for part in parts)
    yield from getattr(value, "__dict__", {}).items()


def _held_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    yield from ((name, cell.cell_contents) for name, cell in cells if cell != types.CellType())
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    if _is_installed(function.__code__.co_filename):
        return
    reached = {name for code in codes_of(function.__code__) for name in code.co_names}
    reachable = [value for name, value in function.__globals__.items() if name in reached]
    modules = [value for value in reachable if isinstance(value, types.ModuleType)]
    users = [module for module in modules if not _is_installed(getattr(module, "__file__", None) or "")]
    for names_and_values in (function.__globals__, *map(vars, users)):
        yield from ((name, value) for name, value in names_and_values.items() if name in reached)


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions defined within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def _is_installed(file: str) -> bool:
    """True for a file of an installed package or of Python, and for built-in code, which has none."""
    return not file or "site-packages" in file or any(map(Path(file).is_relative_to, STANDARD_LIBRARY))

"""The host memory that a trial asks a scheduler for, from its workload's arithmetic and without importing torch."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from crossover.config.studies import workload_module
from crossover.errors import UserError

BASE_MB = 4000
"""Torch and its libraries, a GPU's host side, Snakemake's processes around a trial, a batch of images on the CPU."""
PARAMETER_BYTES = 16
"""A weight and its gradient in single precision, and as much again (measured: 7 B a parameter of `higgs_mlp`)."""


def memory_mb(workload: str, size: int) -> int:
    """Megabytes for a trial of a workload at a size; raises UserError where its module cannot say how many."""
    try:
        return BASE_MB + math.ceil(PARAMETER_BYTES * _parameter_count(workload)(size) / 1e6)
    except Exception as error:  # a user's own code
        raise UserError(
            f"{os.path.relpath(workload_module(workload))}: parameter_count({size}) fails ({error!r}); "
            "allowed: plain arithmetic, without names of the module, that returns a whole number"
        ) from None


@cache
def _parameter_count(workload: str) -> Callable[[int], int]:
    """The function of that name in a workload's module, by itself; 0 parameters where it has none."""
    tree = ast.parse(workload_module(workload).read_bytes())
    names: dict[str, Any] = {"parameter_count": lambda _size: 0}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "parameter_count":
            exec(compile(ast.Module([node], []), f"{workload}.py", "exec"), names)
    found: Callable[[int], int] = names["parameter_count"]
    return found

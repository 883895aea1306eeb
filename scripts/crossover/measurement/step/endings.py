"""How a job that ends early is recorded: unsupported, timeout, invalid or oom. Any other error is a bug."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import torch

from crossover.errors import InvalidError, TooSlowError, UnsupportedError

Found = TypeVar("Found")

OUT_OF_MEMORY = re.compile(
    r"^std::bad_alloc$"
    r"|DefaultCPUAllocator: can't allocate memory"
    r"|\b(CUDA|HIP|XPU|MPS backend) out of memory"  # also within another error, such as a compiler's
    r"|\b(CUDA|HIP)( driver)? error: out of memory|cuda runtime error \(2\)"
    r"|Cannot allocate memory \(12\)"  # torch could not map a dataset's file
    r"|\bCU[A-Z]+_\w*ALLOC(ATION)?_FAILED"  # tensors left too little for a library's workspace (seen on an H200)
)
"""Messages of errors that mean out of memory although their type does not say so."""


STATUSES = {UnsupportedError: "unsupported", TooSlowError: "timeout", InvalidError: "invalid"}


def early_end(error: Exception) -> tuple[str, str] | None:
    """The status and reason that an error stands for; None for a bug or a user's mistake."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status, str(error)
    if is_out_of_memory(error):
        return "oom", str(error).partition("\n")[0] or type(error).__name__
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, by its type (torch's, Python's) or its message (libraries')."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or OUT_OF_MEMORY.search(str(error)) is not None


def unless_out_of_memory(measure: Callable[[], Found], otherwise: Found) -> Found:
    """The result of `measure`, or `otherwise` if it runs out of memory."""
    try:
        return measure()
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return otherwise

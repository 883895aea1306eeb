"""What an error says of how a trial ended: out of memory, unsupported, too slow, invalid; anything else is a bug."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import torch

from crossover.measurement.clock.time_limit import TooSlowError
from crossover.measurement.step.precision import UnsupportedError

Found = TypeVar("Found")

OUT_OF_MEMORY = re.compile(
    r"^std::bad_alloc$"
    r"|DefaultCPUAllocator: can't allocate memory"
    r"|\b(CUDA|HIP|XPU|MPS backend) out of memory"  # also within another error, such as a compiler's
    r"|\b(CUDA|HIP)( driver)? error: out of memory|cuda runtime error \(2\)"
    r"|Cannot allocate memory \(12\)"  # torch could not map a dataset's file
    r"|\bCU[A-Z]+_\w*ALLOC(ATION)?_FAILED"  # tensors left too little for a library's workspace (seen on an H200)
)
"""How memory that ran out reads where no type of error says it."""


class InvalidError(Exception):
    """What was measured must not count."""


def early_end(error: Exception) -> tuple[str, str] | None:
    """Status and reason of the end that an error means; None where it means a bug, or a user's mistake."""
    if isinstance(error, UnsupportedError):
        return "unsupported", str(error)
    if isinstance(error, TooSlowError):
        return "timeout", str(error)
    if isinstance(error, InvalidError):
        return "invalid", str(error)
    if is_out_of_memory(error):
        return "oom", str(error).partition("\n")[0] or type(error).__name__
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: by its type (torch's, Python's) or words (the others')."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or OUT_OF_MEMORY.search(str(error)) is not None


def unless_out_of_memory(measure: Callable[[], Found], otherwise: Found) -> Found:
    """What `measure` returns; `otherwise` where it does not fit into memory beside what was measured before it."""
    try:
        return measure()
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return otherwise

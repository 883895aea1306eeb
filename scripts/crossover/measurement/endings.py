"""What an error says of how a trial ended: out of memory, unsupported, too slow; anything else is a bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from crossover.measurement.precision import UnsupportedError
from crossover.measurement.time_limit import TooSlowError

Found = TypeVar("Found")


def early_end(error: Exception) -> tuple[str, str] | None:
    """Status and reason of the end that an error means; None where it means a bug, or a user's mistake."""
    if isinstance(error, UnsupportedError):
        return "unsupported", str(error)
    if isinstance(error, TooSlowError):
        return "timeout", str(error)
    if is_out_of_memory(error):
        return "oom", str(error).partition("\n")[0] or type(error).__name__
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: by its type (torch's, Python's) or words (the others')."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or str(error) == "std::bad_alloc":
        return True
    messages = (
        "DefaultCPUAllocator: can't allocate memory",
        "MPS backend out of memory",
        "Cannot allocate memory (12)",  # torch could not map a dataset's file
        "CUBLAS_STATUS_ALLOC_FAILED",  # tensors left too little for a library's workspace (seen on an H200)
        "CUDNN_STATUS_ALLOC_FAILED",
    )
    return any(message in str(error) for message in messages)


def unless_out_of_memory(measure: Callable[[], Found], otherwise: Found) -> Found:
    """What `measure` returns; `otherwise` where it does not fit into memory beside what was measured before it."""
    try:
        return measure()
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return otherwise

"""The status of a job that ended with an error: unsupported, timeout, invalid or oom.

An error without such a status may be the user's mistake, a bug, or missing support by the device, the precision or the
execution. `process.attempts` therefore tries the same step eagerly on the CPU in fp32.
"""

from __future__ import annotations

import re

import torch

from crossover.errors import (
    SHARED_MEMORY_ADVICE,
    SHARED_MEMORY_FULL,
    InvalidError,
    RefusedError,
    TooSlowError,
    UnsupportedError,
    UserError,
)

OUT_OF_MEMORY = re.compile(
    r"^std::bad_alloc$"
    r"|DefaultCPUAllocator: can't allocate memory"
    r"|\b(CUDA|HIP|XPU|MPS backend) out of memory"  # may be wrapped in another error, such as a compiler's
    r"|\b(CUDA|HIP)( driver)? error: out of memory|cuda runtime error \(2\)"
    r"|Cannot allocate memory \(12\)"  # torch could not map a dataset's file
    r"|\bCU[A-Z]+_\w*ALLOC(ATION)?_FAILED"  # tensors left too little for a library's workspace (seen on an H200)
)

PERHAPS_OUT_OF_MEMORY = re.compile(
    r"Unable to find a valid cuDNN algorithm"
    r"|unable to find an engine to execute this computation"
    r"|nvmlInit_v2_\(\).*INTERNAL ASSERT FAILED"  # the allocator asks NVML once no memory is left
)

LACKING = re.compile(
    r"not implemented for|not (currently )?(implemented|supported)\b|(doesn't|does not) (have )?support|\bunsupported\b"
    r"|only supports\b|Could not run '\w+::|Low precision dtypes",
    re.IGNORECASE,
)
"""Messages for an operation or a precision that a device does not support."""

NEARLY_FULL_SHARE = 0.02
"""Share of free memory below which a device counts as full, since a library's workspace may no longer fit."""

STATUSES = {UnsupportedError: "unsupported", TooSlowError: "timeout", InvalidError: "invalid"}


def early_end(error: BaseException) -> tuple[str, str] | None:
    """The status and reason for an error whose type or message determines them; None for other errors."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status, str(error)
    if is_out_of_memory(error):
        return "oom", first_line(error)
    if SHARED_MEMORY_FULL.search(str(error)):
        return "invalid", SHARED_MEMORY_ADVICE
    return None


def ending(error: BaseException, device: torch.device) -> tuple[str, str] | None:
    """Like `early_end`, but the device's free memory decides unclear cases; raises UserError for a full /dev/shm."""
    error = original(error)
    if SHARED_MEMORY_FULL.search(str(error)):
        raise UserError(SHARED_MEMORY_ADVICE) from error
    if isinstance(error, tuple(STATUSES)) or is_surely_out_of_memory(error):
        return early_end(error)
    free_share = free_memory_share(device)
    if free_share is None:
        return early_end(error)
    return ("oom", f"{first_line(error)} (the device's memory is full)") if free_share < NEARLY_FULL_SHARE else None


def free_memory_share(device: torch.device) -> float | None:
    """Free share of a device's memory as reported by its driver; None if unknown."""
    if device.type not in ("cuda", "xpu"):
        return None
    try:
        free, total = torch.get_device_module(device).mem_get_info(device)
    except RuntimeError:  # after an error the device's context may be unusable
        return None
    return float(free / total)


def refusal(error: Exception) -> RefusedError:
    """The RefusedError for a step that failed but may run on the CPU in fp32."""
    source = original(error)
    mistake = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {first_line(error)}"
    return RefusedError(first_line(source), mistake, is_lacking(source))


def is_mistake(error: BaseException) -> bool:
    """True for a UserError that the step did not cause; it would occur on any device."""
    return isinstance(error, UserError) and error.__cause__ is None


def original(error: BaseException) -> BaseException:
    """The cause of a UserError, or the error itself."""
    return error.__cause__ if isinstance(error, UserError) and error.__cause__ is not None else error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or two if the first ends in a colon; the error's type if there is none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]) or type(error).__name__


def is_lacking(error: BaseException) -> bool:
    """True for an error of torch.compile, or one whose message is typical of an unsupported operation or precision."""
    compiling = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
    return compiling or LACKING.search(str(error)) is not None


def is_surely_out_of_memory(error: BaseException) -> bool:
    """True if an error's type or message means out of memory and nothing else."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or OUT_OF_MEMORY.search(str(error)) is not None


def is_out_of_memory(error: BaseException) -> bool:
    """True if an error's type or message means, or may mean, out of memory."""
    return is_surely_out_of_memory(error) or PERHAPS_OUT_OF_MEMORY.search(str(error)) is not None

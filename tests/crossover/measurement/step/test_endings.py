"""The status of a job from the type and message of an error, and from the device's free memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from crossover.errors import InvalidError, TooSlowError, UnsupportedError, UserError
from crossover.measurement.step.endings import (
    early_end,
    ending,
    first_line,
    is_lacking,
    is_out_of_memory,
    original,
)

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("message", "expected"),
    {
        "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory": True,
        "MPS backend out of memory (MPS allocated: 9 GB)": True,
        "std::bad_alloc": True,
        "unable to mmap 16 bytes from file <a>: Cannot allocate memory (12)": True,
        "CUDA driver error: out of memory": True,
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": True,
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED": True,
        "backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory. Tried 2.00 GiB.": True,
        "Unable to find a valid cuDNN algorithm to run convolution": True,
        'NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "a.cpp":963': True,
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`": False,
        "out of resources: shared memory, Required: 300000": False,
        "unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)": False,
    }.items(),
)
def test_messages_of_out_of_memory(message: str, expected: bool) -> None:
    assert is_out_of_memory(RuntimeError(message)) is expected


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (UnsupportedError("no tf32"), ("unsupported", "no tf32")),
        (TooSlowError("a step takes 9 s"), ("timeout", "a step takes 9 s")),
        (InvalidError("cudnn.benchmark changed"), ("invalid", "cudnn.benchmark changed")),
        (torch.OutOfMemoryError("CUDA out of memory.\nSee docs"), ("oom", "CUDA out of memory.")),
        (RuntimeError("shapes"), None),
    ],
)
def test_status_and_reason_of_an_error(error: Exception, end: tuple[str, str] | None) -> None:
    assert early_end(error) == end


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the free bytes of a GPU with 1000 bytes, or an error to raise instead."""

    def set_to(free: int | Exception) -> None:
        def mem_get_info(_: torch.device) -> tuple[int, int]:
            if isinstance(free, Exception):
                raise free
            return free, 1000

        monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(mem_get_info=mem_get_info))

    return set_to


CUDNN = RuntimeError("Unable to find a valid cuDNN algorithm to run convolution\nmore")
STRANGE = RuntimeError("CUDA error: unknown")


@pytest.mark.parametrize(
    ("error", "free", "status"),
    [
        (STRANGE, 19, "oom"),  # of 1000; below 2 %
        (STRANGE, 20, None),
        (CUDNN, 900, None),  # this message may also mean that the computation is unsupported
        (CUDNN, RuntimeError("the context is broken"), "oom"),
        (torch.OutOfMemoryError("CUDA out of memory"), 900, "oom"),  # too little for one large tensor
        (UnsupportedError("no tf32"), 1, "unsupported"),
    ],
)
def test_doubtful_errors_on_a_full_device_are_out_of_memory(
    memory: Any, error: Exception, free: int | Exception, status: str | None
) -> None:
    memory(free)
    end = ending(error, GPU)
    assert (end and end[0]) == status
    assert end is None or "\n" not in end[1]


def test_the_cause_of_a_user_error_counts(memory: Any) -> None:
    memory(1)
    mistake = UserError("net.py: line 3: its step fails")
    mistake.__cause__ = STRANGE
    assert ending(mistake, GPU) == ("oom", "CUDA error: unknown (the device's memory is full)")
    assert original(mistake) is STRANGE
    assert original(STRANGE) is STRANGE
    assert ending(UserError("no cause"), CPU) is None


@pytest.mark.parametrize(
    "text",
    [
        "unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)",
        "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of "
        "shared memory. Please try to raise your shared memory limit.",
    ],
)
def test_full_shared_memory_is_a_user_error_with_advice(text: str) -> None:
    """`oom` would mislead a search for the largest batch."""
    with pytest.raises(UserError, match=r"enlarge /dev/shm .*num_workers=0"):
        ending(RuntimeError(text), GPU)
    assert early_end(RuntimeError(text)) not in (None, "oom")
    assert ending(RuntimeError("out of resource: shared memory, Required: 300000"), CPU) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Could not run 'quantized::linear_dynamic' with arguments from the 'CUDA' backend.", True),
        ("The operator 'aten::_fft_r2c' is not currently implemented for the MPS device.", True),
        ("cuFFT only supports dimensions whose sizes are powers of two when computing in half precision", True),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", True),
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", False),
    ],
)
def test_messages_for_unsupported_operations(text: str, expected: bool) -> None:
    assert is_lacking(RuntimeError(text)) is expected


def test_the_first_line_of_an_error_or_its_type() -> None:
    assert first_line(KeyError()) == "KeyError"
    assert first_line(RuntimeError("\na\nb")) == "a"
    assert first_line(RuntimeError("backend='inductor' raised:\n\n  no g++\nb")) == "backend='inductor' raised: no g++"

from __future__ import annotations

import pytest
import torch

from crossover.measurement.clock.time_limit import TooSlowError
from crossover.measurement.step.endings import InvalidError, early_end, is_out_of_memory, unless_out_of_memory
from crossover.measurement.step.precision import UnsupportedError


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`"), False),
        (RuntimeError("unable to mmap 16 bytes from file <a>: Cannot allocate memory (12)"), True),
        (
            torch.AcceleratorError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
            True,
        ),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA driver error: out of memory"), True),
        (RuntimeError("HIP error: out of memory"), True),
        (RuntimeError("cuda runtime error (2) : out of memory at THCTensor.cu:69"), True),
        (RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"), True),
        (RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), True),
        (RuntimeError("backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory. Tried 2.00 GiB."), True),
        (torch.AcceleratorError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("cuda runtime error (2048) : unknown"), False),
        (RuntimeError("out of resources: shared memory, Required: 300000"), False),
        (RuntimeError("NCCL error: unhandled system error"), False),
        (RuntimeError("could not create a primitive"), False),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_only_memory_is_out_of_memory(error: BaseException, verdict: bool) -> None:
    assert is_out_of_memory(error) is verdict


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (UnsupportedError("no tf32"), ("unsupported", "no tf32")),
        (TooSlowError("a step takes 9 s"), ("timeout", "a step takes 9 s")),
        (torch.OutOfMemoryError("CUDA out of memory.\nSee docs"), ("oom", "CUDA out of memory.")),
        (MemoryError(), ("oom", "MemoryError")),
        (InvalidError("cudnn.benchmark changed"), ("invalid", "cudnn.benchmark changed")),
        (RuntimeError("shapes"), None),
    ],
)
def test_what_an_error_means(error: Exception, end: tuple[str, str] | None) -> None:
    assert early_end(error) == end


def failing(error: Exception) -> int:
    raise error


def test_what_does_not_fit_is_left_out_and_a_bug_is_not() -> None:
    assert unless_out_of_memory(lambda: 7, None) == 7
    assert unless_out_of_memory(lambda: failing(MemoryError("no room")), None) is None
    assert unless_out_of_memory(lambda: failing(torch.OutOfMemoryError("CUDA out of memory")), 3) == 3
    for bug in (RuntimeError("shapes"), ValueError("no room")):
        with pytest.raises(type(bug)):
            unless_out_of_memory(lambda bug=bug: failing(bug), None)

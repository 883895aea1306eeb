from __future__ import annotations

import pytest
import torch

from crossover.errors import InvalidError, TooSlowError, UnsupportedError
from crossover.measurement.step.endings import early_end, is_out_of_memory, unless_out_of_memory


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("any words"), True),
        (MemoryError(), True),
        *(
            (RuntimeError(message), expected)
            for message, expected in {
                "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory": True,
                "MPS backend out of memory (MPS allocated: 9 GB)": True,
                "std::bad_alloc": True,
                "unable to mmap 16 bytes from file <a>: Cannot allocate memory (12)": True,
                "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported": True,
                "CUDA driver error: out of memory": True,
                "HIP error: out of memory": True,
                "cuda runtime error (2) : out of memory at THCTensor.cu:69": True,
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": True,
                "cuFFT error: CUFFT_ALLOC_FAILED": True,
                "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED": True,
                "backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory. Tried 2.00 GiB.": True,
                "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`": False,
                "CUDA error: an illegal memory access was encountered": False,
                "cuda runtime error (2048) : unknown": False,
                "out of resources: shared memory, Required: 300000": False,
                "could not create a primitive": False,
            }.items()
        ),
    ],
)
def test_only_memory_is_out_of_memory(error: BaseException, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (UnsupportedError("no tf32"), ("unsupported", "no tf32")),
        (TooSlowError("a step takes 9 s"), ("timeout", "a step takes 9 s")),
        (InvalidError("cudnn.benchmark changed"), ("invalid", "cudnn.benchmark changed")),
        (torch.OutOfMemoryError("CUDA out of memory.\nSee docs"), ("oom", "CUDA out of memory.")),
        (MemoryError(), ("oom", "MemoryError")),
        (RuntimeError("shapes"), None),
    ],
)
def test_status_and_reason_of_an_error(error: Exception, end: tuple[str, str] | None) -> None:
    assert early_end(error) == end


def failing(error: Exception) -> int:
    raise error


def test_only_out_of_memory_is_replaced_by_another_result() -> None:
    assert unless_out_of_memory(lambda: 7, None) == 7
    assert unless_out_of_memory(lambda: failing(MemoryError("no room")), 3) == 3
    for bug in (RuntimeError("shapes"), ValueError("no room")):
        with pytest.raises(type(bug)):
            unless_out_of_memory(lambda bug=bug: failing(bug), None)

"""Environment variables that may change a time: one list for the trial server, the rows, and the plan's keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crossover.machine.threads import THREAD_VARIABLES

LOADED_ONCE = re.compile(
    "ATEN|BLIS_|CUBLAS|CUDA|CUDNN|CUPY_|DNNL|GLIBC|GOMP|HIP|HSA|JAX_|KMP|LD_|MALLOC|MIMALLOC_|MIOPEN_|MKL|NCCL|NPY_|"
    "NUMBA_|NUMEXPR|NUMPY_|NVIDIA|OMP|ONEDNN|OPENBLAS|POLARS_|PYTHON|PYTORCH|ROC|TCMALLOC_|TF_|TORCH|TRITON|XLA_"
)
"""Prefixes of environment variables that are read when a library is loaded."""

SET_LATER = {"CUDA_VISIBLE_DEVICES", *THREAD_VARIABLES}
"""Environment variables that matter only later, or whose effect a fork can still change."""

UNTIMED = re.compile(
    # Crossover sets the number of threads and the visible GPUs, which rows have in columns of their own.
    rf"{'|'.join(THREAD_VARIABLES)}|.*_VISIBLE_DEVICES|.*_LOG_LEVEL|"
    r"(?!LD_).*_(HOME|PATH|DIR|VERSION)|NVIDIA_(REQUIRE_.*|DRIVER_CAPABILITIES|PRODUCT_NAME)|"
    r"PYTHON(?!(OPTIMIZE|MALLOC|DEVMODE|HASHSEED|TRACEMALLOC|ASYNCIODEBUG|PROFILEIMPORTTIME|_GIL|_JIT)$).*"
)
"""Variables among these that change no time, or that a row has in another column."""


def loaded_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a process forked from a trial server cannot change."""
    return {
        name: value for name, value in sorted(environment.items()) if LOADED_ONCE.match(name) and name not in SET_LATER
    }


def timed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may change a time, such as MKL_ENABLE_INSTRUCTIONS or LD_PRELOAD."""
    return {name: value for name, value in loaded_variables(environment).items() if not UNTIMED.fullmatch(name)}

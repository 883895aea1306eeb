"""Environment variables that may change a time: one list for the trial server, the rows, and the plan's keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crossover.machine.threads import THREAD_VARIABLES

LOADED_ONCE = re.compile(
    "ATEN|CUBLAS|CUDA|CUDNN|DNNL|GLIBC|GOMP|HIP|HSA|KMP|LD_|MALLOC|MKL|NCCL|NUMEXPR|NVIDIA|OMP|ONEDNN|OPENBLAS|PYTHON|"
    "PYTORCH|ROC|TORCH|TRITON"
)
"""Prefixes of environment variables that are read when a library is loaded."""

SET_LATER = {"CUDA_VISIBLE_DEVICES", *THREAD_VARIABLES}
"""Environment variables that matter only later, or whose effect a fork can still change."""

UNTIMED = re.compile(
    # Crossover sets the number of threads and the visible GPUs, which rows have in columns of their own.
    r".*_NUM_THREADS|.*_VISIBLE_DEVICES|"
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

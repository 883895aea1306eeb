"""The environment variables that may change a time are told from those that change none."""

from __future__ import annotations

import pytest

from crossover.machine.environment import loaded_variables, timed_variables

TIMED = (
    *("MKL_ENABLE_INSTRUCTIONS", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "KMP_BLOCKTIME", "OMP_PROC_BIND"),
    *("OPENBLAS_CORETYPE", "NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING"),
    *("PYTORCH_CUDA_ALLOC_CONF", "TORCH_COMPILE_DISABLE", "LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_CONF"),
    *("PYTHONOPTIMIZE", "PYTHONMALLOC", "GOMP_SPINCOUNT", "TORCHINDUCTOR_MAX_AUTOTUNE"),
    *("NPY_DISABLE_CPU_FEATURES", "NUMPY_MADVISE_HUGEPAGE", "JAX_ENABLE_X64", "XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS"),
    *("NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT", "BLIS_NUM_THREADS", "BLIS_ARCH_TYPE", "POLARS_MAX_THREADS"),
    *("MIOPEN_FIND_MODE", "CUPY_TF32", "MIMALLOC_ALLOW_LARGE_OS_PAGES", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES"),
)
UNTIMED = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("CUDA_HOME", "CUDA_VERSION", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHON_VERSION", "TORCHINDUCTOR_CACHE_DIR"),
    *("NVIDIA_REQUIRE_CUDA", "HOME", "PATH", "TMPDIR", "CROSSOVER_MACHINE"),
    *("OPENBLAS_NUM_THREADS", "NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TF_CPP_MIN_LOG_LEVEL"),
)


@pytest.mark.parametrize("name", TIMED)
def test_a_variable_that_may_change_a_time_counts(name: str) -> None:
    assert timed_variables({name: "1"}) == loaded_variables({name: "1"}) == {name: "1"}


@pytest.mark.parametrize("name", UNTIMED)
def test_a_variable_that_changes_no_time_does_not_count(name: str) -> None:
    assert timed_variables({name: "1"}) == {}

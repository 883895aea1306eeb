"""Whatever a fork inherits and cannot change is in the key."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from crossover.machine.code_key import LIBRARY
from crossover.measurement.process.server_key import server_key


def test_the_key_is_the_same_twice() -> None:
    assert server_key() == server_key()


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_DYNAMIC", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF"])
def test_what_libraries_read_when_loaded_changes_it(name: str) -> None:
    assert server_key({}) != server_key({name: "7"})


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "HOME", "TERM", "SNAKEMAKE_PROFILE"])
def test_what_a_fork_can_set_does_not(name: str) -> None:
    assert server_key({}) == server_key({name: "7"})


def test_another_limit_changes_it() -> None:
    code = (
        f"import sys, resource; sys.path.insert(0, {str(LIBRARY)!r}); "
        "resource.setrlimit(resource.RLIMIT_CORE, (0, int(sys.argv[1]))); "
        "from crossover.measurement.process.server_key import server_key; print(server_key({}))"
    )
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("no core file is allowed here, so its limit cannot be lowered")
    keys = {
        subprocess.run([sys.executable, "-c", code, limit], capture_output=True, text=True, check=True).stdout
        for limit in ("0", str(min(hard, 4096) if hard != resource.RLIM_INFINITY else 4096))
    }
    assert len(keys) == 2


def test_a_server_without_torch_is_another_one() -> None:
    assert server_key(torch=False) != server_key()

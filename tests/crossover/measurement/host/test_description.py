"""The columns that describe a host, from fake files of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crossover.measurement.host import description
from crossover.measurement.host.description import describe_host
from crossover.tables.columns import COLUMNS


def test_the_description_of_a_host(kernel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "proc/cpuinfo": "model name : Brand C1\nflags : avx512_bf16\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/cpu.max": "300000 100000\n",
    }
    for cpu in range(4):
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = f"{cpu}\n"
    monkeypatch.setattr(description, "usable_cpus", lambda: {0, 1, 2, 3})
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    facts = describe_host(kernel(files))
    assert facts.keys() <= set(COLUMNS)
    expected = {
        "cpu_model": "Brand C1",
        "amx": False,
        "avx512_bf16": True,
        "governor": "performance",
        "turbo": False,
        "numa_nodes": 1,
        "cgroup_cpus": 3.0,
        "physical_cores": 3,
        "affinity_cores": 4,
        "logical_cpus": 4,
        "affinity": [0, 1, 2, 3],
    }
    assert {name: facts[name] for name in expected} == expected

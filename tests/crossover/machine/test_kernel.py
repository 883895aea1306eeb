from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from crossover.machine.kernel import (
    available_bytes,
    cgroup_quota,
    cpu_model,
    governor,
    has_cpu_flag,
    last_level_cache_bytes,
    numa_nodes,
    turbo,
)

Kernel = Callable[..., Path]
GROUPS, CPU = "sys/fs/cgroup", "sys/devices/system/cpu"
OWN_GROUP = {"proc/self/cgroup": "0::/job/step\n"}
UNLIMITED = 9223372036854771712  # the value that means "no limit" in version 1


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({**OWN_GROUP, f"{GROUPS}/job/step/cpu.max": "max 100000\n", f"{GROUPS}/job/cpu.max": "250000 100000\n"}, 2.5),
        ({**OWN_GROUP, f"{GROUPS}/job/step/cpu.max": "90000 100000", f"{GROUPS}/job/cpu.max": "250000 100000"}, 0.9),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/job\n3:memory:/job\n",
                f"{GROUPS}/cpu/job/cpu.cfs_period_us": "100000\n",
                f"{GROUPS}/cpu/job/cpu.cfs_quota_us": "300000\n",
                f"{GROUPS}/cpu/cpu.cfs_period_us": "100000\n",
                f"{GROUPS}/cpu/cpu.cfs_quota_us": "-1\n",
            },
            3,
        ),
    ],
)
def test_the_smallest_cpu_quota_is_used(kernel: Kernel, files: dict[str, str], quota: float | None) -> None:
    assert cgroup_quota(kernel(files)) == quota


@pytest.mark.parametrize(
    ("files", "host_bytes", "available"),
    [
        ({}, 5000, 5000),
        (
            {
                **OWN_GROUP,
                f"{GROUPS}/job/step/memory.max": "max\n",
                f"{GROUPS}/job/step/memory.current": "700\n",
                f"{GROUPS}/job/memory.max": "3000\n",
                f"{GROUPS}/job/memory.current": "1000\n",
                f"{GROUPS}/job/memory.stat": "anon 300\ninactive_file 400\nfile 500\n",
            },
            5000,
            3000 - 1000 + 400,
        ),
        ({**OWN_GROUP, f"{GROUPS}/job/memory.max": "3000", f"{GROUPS}/job/memory.current": "1000"}, 1500, 1500),
        ({**OWN_GROUP, f"{GROUPS}/memory.max": "1000\n", f"{GROUPS}/memory.current": "1200\n"}, 5000, 0),
        (
            {
                "proc/self/cgroup": "4:memory:/job\n2:cpu:/other\n",
                f"{GROUPS}/memory/job/memory.limit_in_bytes": "2000\n",
                f"{GROUPS}/memory/job/memory.usage_in_bytes": "1500\n",
                f"{GROUPS}/memory/job/memory.stat": "inactive_file 7\ntotal_inactive_file 100\n",
                f"{GROUPS}/memory/memory.limit_in_bytes": f"{UNLIMITED}\n",
                f"{GROUPS}/memory/memory.usage_in_bytes": "4000\n",
            },
            5000,
            2000 - 1500 + 100,
        ),
    ],
    ids=["host", "group and its cache", "host below group", "over its limit", "version 1"],
)
def test_available_memory_is_limited_by_host_and_control_groups(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], host_bytes: int, available: int
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=host_bytes))
    assert available_bytes(kernel(files)) == available


def test_name_and_features_of_the_cpu_come_from_cpuinfo(kernel: Kernel) -> None:
    root = kernel(
        {"proc/cpuinfo": "processor\t: 0\nmodel name\t: Brand C1\nflags\t\t: fpu amx_tile\n\nmodel name\t: other\n"}
    )
    assert cpu_model(root) == "Brand C1"
    assert (has_cpu_flag("amx_tile", root), has_cpu_flag("avx512_bf16", root)) == (True, False)
    assert cpu_model(root / "bare") in (platform.processor(), platform.machine())
    assert has_cpu_flag("amx_tile", root / "bare") is None


@pytest.mark.parametrize(
    ("switch", "value", "allowed"),
    [
        ("intel_pstate/no_turbo", "0\n", True),
        ("intel_pstate/no_turbo", "1\n", False),
        ("cpufreq/boost", "1\n", True),
        ("cpufreq/policy0/boost", "0\n", False),
        ("cpu0/cpufreq/scaling_governor", "powersave\n", None),
    ],
)
def test_turbo_is_read_from_the_switch_of_each_driver(
    kernel: Kernel, switch: str, value: str, allowed: bool | None
) -> None:
    root = kernel({f"{CPU}/{switch}": value})
    assert turbo(root) is allowed
    assert governor(root) == ("powersave" if "governor" in switch else None)


@pytest.mark.parametrize(("cpus", "nodes"), [({0, 8}, 1), ({3, 7}, 2), ({4, 12}, 1), (set(range(16)), 2), ({99}, None)])
def test_numa_nodes_of_the_usable_cpus_are_counted(kernel: Kernel, cpus: set[int], nodes: int | None) -> None:
    lists = ("0-3,8-11\n", "4-7,12-15\n", "\n")  # the last node has memory only
    root = kernel({f"sys/devices/system/node/node{number}/cpulist": text for number, text in enumerate(lists)})
    assert numa_nodes(cpus, root) == nodes
    assert numa_nodes(cpus, root / "bare") is None


def test_last_level_caches_of_the_usable_cpus_are_added_up(kernel: Kernel) -> None:
    """Two of four CPUs share 32 MiB of level 3; a fifth CPU has only its own level 2."""
    levels = {
        "index0": ("1", "Data", "48K"),
        "index1": ("1", "Instruction", "64K"),
        "index2": ("2", "Unified", "2048K"),
    }
    files: dict[str, str] = {}
    for cpu in range(5):
        third = {"index3": ("3", "Unified", "32M")} if cpu < 4 else {}
        for index, (level, kind, size) in (levels | third).items():
            folder = f"{CPU}/cpu{cpu}/cache/{index}"
            shared = ("0-1", "2-3")[cpu // 2] if level == "3" else str(cpu)
            files |= {f"{folder}/level": level, f"{folder}/type": kind, f"{folder}/size": size}
            files[f"{folder}/shared_cpu_list"] = shared
    root = kernel(files)
    mib = 2**20
    assert last_level_cache_bytes({0, 1}, root) == 32 * mib
    assert last_level_cache_bytes({1, 2}, root) == 64 * mib
    assert last_level_cache_bytes({0, 1, 2, 3, 4}, root) == (32 + 32 + 2) * mib
    assert last_level_cache_bytes({0}, root / "bare") is None

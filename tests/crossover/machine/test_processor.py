from __future__ import annotations

import platform
from pathlib import Path

import pytest

from crossover.machine.kernel import cpu_model, governor, has_cpu_flag, numa_nodes, turbo

CPUINFO = (
    "processor\t: 0\nmodel name\t: Brand C1\nflags\t\t: fpu amx_tile avx512f\n\nprocessor\t: 1\nmodel name\t: other\n"
)


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_name_and_features_come_from_cpuinfo(tmp_path: Path) -> None:
    write(tmp_path, "proc/cpuinfo", CPUINFO)
    assert cpu_model(tmp_path) == "Brand C1"
    assert has_cpu_flag("amx_tile", tmp_path) is True
    assert has_cpu_flag("avx512_bf16", tmp_path) is False


def test_without_cpuinfo_there_is_an_architecture_and_no_answer_about_features(tmp_path: Path) -> None:
    assert cpu_model(tmp_path) in (platform.processor(), platform.machine())
    assert has_cpu_flag("amx_tile", tmp_path) is None


@pytest.mark.parametrize(
    ("switch", "value", "allowed"),
    [
        ("intel_pstate/no_turbo", "0\n", True),
        ("intel_pstate/no_turbo", "1\n", False),
        ("cpufreq/boost", "1\n", True),
        ("cpufreq/boost", "0\n", False),
        ("cpufreq/policy0/boost", "0\n", False),
        ("cpufreq/boost", "", None),
    ],
)
def test_turbo_is_found_behind_each_driver_s_switch(
    tmp_path: Path, switch: str, value: str, allowed: bool | None
) -> None:
    write(tmp_path, f"sys/devices/system/cpu/{switch}", value)
    assert turbo(tmp_path) is allowed


def test_a_machine_that_does_not_govern_its_clock_says_nothing(tmp_path: Path) -> None:
    assert turbo(tmp_path) is None
    assert governor(tmp_path) is None
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    assert governor(tmp_path) == "powersave"


@pytest.mark.parametrize(("cpus", "nodes"), [({0, 8}, 1), ({3, 7}, 2), ({4, 12}, 1), (set(range(16)), 2), ({99}, None)])
def test_nodes_behind_the_usable_cpus_are_counted(tmp_path: Path, cpus: set[int], nodes: int | None) -> None:
    write(tmp_path, "sys/devices/system/node/node0/cpulist", "0-3,8-11\n")
    write(tmp_path, "sys/devices/system/node/node1/cpulist", "4-7,12-15\n")
    write(tmp_path, "sys/devices/system/node/node2/cpulist", "\n")  # memory only
    assert numa_nodes(cpus, tmp_path) == nodes


def test_without_nodes_there_is_no_number(tmp_path: Path) -> None:
    assert numa_nodes({0}, tmp_path) is None

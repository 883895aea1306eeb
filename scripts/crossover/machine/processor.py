"""The host's CPU as the kernel describes it: what it is, what it can do, and how its clock is governed."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from crossover.machine.kernel import read_kernel

CPUS = "sys/devices/system/cpu"


def cpu_model(root: Path = Path("/")) -> str:
    """The CPU's name as the kernel gives it, or the architecture."""
    return _cpuinfo("model name", root) or platform.processor() or platform.machine()


def has_cpu_flag(flag: str, root: Path = Path("/")) -> bool | None:
    """Whether the CPU has a feature, by the kernel's name of it; None where the kernel lists none (not x86)."""
    flags = _cpuinfo("flags", root)
    return None if flags is None else flag in flags.split()


def governor(root: Path = Path("/")) -> str | None:
    """The frequency governor of the first CPU; None where the system does not choose the clock."""
    return read_kernel(root / CPUS / "cpu0/cpufreq/scaling_governor")


def turbo(root: Path = Path("/")) -> bool | None:
    """Whether the CPU may raise its clock above its base; None where the kernel does not say."""
    forbidden = read_kernel(root / CPUS / "intel_pstate/no_turbo")
    if forbidden in ("0", "1"):
        return forbidden == "0"
    for switch in ("cpufreq/boost", "cpufreq/policy0/boost"):  # acpi-cpufreq; amd-pstate has one per policy
        allowed = read_kernel(root / CPUS / switch)
        if allowed in ("0", "1"):
            return allowed == "1"
    return None


def numa_nodes(cpus: Iterable[int], root: Path = Path("/")) -> int | None:
    """NUMA nodes behind logical CPUs; None where the kernel names no nodes."""
    wanted = set(cpus)
    lists = [read_kernel(path) for path in (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")]
    return sum(bool(wanted & _numbers(text)) for text in lists if text is not None) or None


def _numbers(ranges: str) -> set[int]:
    """The numbers in a kernel list such as 0-3,8; an empty list is a node of memory only."""
    pairs = [part.split("-") for part in ranges.split(",") if part]
    return {number for pair in pairs for number in range(int(pair[0]), int(pair[-1]) + 1)}


def _cpuinfo(key: str, root: Path) -> str | None:
    """The first value of a key in /proc/cpuinfo."""
    for line in (read_kernel(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None

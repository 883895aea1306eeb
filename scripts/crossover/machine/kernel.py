"""Facts about this host from /proc and /sys. Most are None if a file is missing, as on systems other than Linux."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

CPUS = "sys/devices/system/cpu"

MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files with limit and usage, and the entry of memory.stat with the reclaimable cache, for cgroup v2 and v1."""


def read_kernel(path: Path) -> str | None:
    """The stripped text of a kernel file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # some files exist but cannot be read, such as the files of PSI if PSI is off
        return None


def read_number(path: Path) -> int | None:
    """The integer in a kernel file; None if there is none."""
    text = read_kernel(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Folders of this process's control group and its parents, in cgroup v2 and in cgroup v1 for `controller`."""
    for line in (read_kernel(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            base = root / "sys/fs/cgroup" / controller
        else:
            continue
        folder = base / group.lstrip("/")
        yield from (level for level in (folder, *folder.parents) if level.is_relative_to(base))


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """The smallest CPU quota of this process's control group and its parents, in CPUs; None without a quota."""
    quotas = []
    for level in control_groups("cpu", root):
        # Cgroup v2, where "max" means no quota.
        quota, _, period = (read_kernel(level / "cpu.max") or "").partition(" ")
        if quota.isdigit():
            quotas.append(int(quota) / int(period))
        quota_us = read_number(level / "cpu.cfs_quota_us")  # cgroup v1, where -1 means no quota
        period_us = read_number(level / "cpu.cfs_period_us")
        if quota_us is not None and period_us and quota_us >= 0:
            quotas.append(quota_us / period_us)
    return min(quotas, default=None)


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that this process may still use, given the host's available memory and the limits of control groups."""
    import psutil  # imported here, so that a trial's parent starts quickly

    left: list[int] = [psutil.virtual_memory().available]
    for level in control_groups("memory", root):
        for limit, used, cache in MEMORY_FILES:
            limit_bytes, used_bytes = read_number(level / limit), read_number(level / used)
            if limit_bytes is not None and used_bytes is not None:
                cache_bytes = statistic(level / "memory.stat", cache) or 0  # the kernel frees it on demand
                left.append(limit_bytes - used_bytes + cache_bytes)
    return max(0, min(left))


def statistic(path: Path, name: str) -> int | None:
    """A value in a control group's statistics file, by name; None if it is missing."""
    lines = [line.split() for line in (read_kernel(path) or "").splitlines()]
    return next((int(line[1]) for line in lines if len(line) == 2 and line[0] == name), None)


def cpu_model(root: Path = Path("/")) -> str:
    """The CPU's name, or the architecture if the name is not known."""
    import platform  # imported here, so that a trial's parent starts quickly

    return _cpuinfo("model name", root) or platform.processor() or platform.machine()


def has_cpu_flag(flag: str, root: Path = Path("/")) -> bool | None:
    """True if the kernel lists this flag of the CPU; None if the kernel lists no flags, as on ARM."""
    flags = _cpuinfo("flags", root)
    return None if flags is None else flag in flags.split()


def governor(root: Path = Path("/")) -> str | None:
    """The frequency governor of the first CPU; None if it is not known."""
    return read_kernel(root / CPUS / "cpu0/cpufreq/scaling_governor")


def turbo(root: Path = Path("/")) -> bool | None:
    """True if the CPU may raise its clock above its base frequency; None if the kernel does not report it."""
    # The switches of the drivers intel_pstate, acpi-cpufreq, and amd-pstate, which has one for each policy.
    for switch, on in (("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1"), ("cpufreq/policy0/boost", "1")):
        value = read_kernel(root / CPUS / switch)
        if value in ("0", "1"):
            return value == on
    return None


def numa_nodes(cpus: Iterable[int], root: Path = Path("/")) -> int | None:
    """Number of NUMA nodes of some logical CPUs; None if the kernel lists no nodes."""
    wanted = set(cpus)
    lists = [read_kernel(path) for path in (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")]
    return sum(bool(wanted & cpu_numbers(text)) for text in lists if text is not None) or None


def last_level_cache_bytes(cpus: Iterable[int], root: Path = Path("/")) -> int | None:
    """Total size of the last-level caches of some logical CPUs; None if none is listed. Shared caches count once."""
    caches: dict[tuple[str, str], int] = {}
    for cpu in cpus:
        levels = {}
        for folder in (root / CPUS / f"cpu{cpu}/cache").glob("index[0-9]*"):
            level, size = read_number(folder / "level"), read_kernel(folder / "size")
            kind, shared = read_kernel(folder / "type"), read_kernel(folder / "shared_cpu_list")
            if level is not None and size is not None and size[:-1].isdigit() and kind != "Instruction":
                levels[level] = (shared or str(cpu), int(size[:-1]) * SIZE_UNITS.get(size[-1], 1))
        if levels:
            shared, size_bytes = levels[max(levels)]
            caches[str(max(levels)), shared] = size_bytes
    return sum(caches.values()) or None


SIZE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cpu_numbers(ranges: str) -> set[int]:
    """Parse a list of CPUs such as 0-3,8; a NUMA node without CPUs has an empty list."""
    pairs = [part.split("-") for part in ranges.split(",") if part]
    return {number for pair in pairs for number in range(int(pair[0]), int(pair[-1]) + 1)}


def _cpuinfo(key: str, root: Path) -> str | None:
    for line in (read_kernel(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None

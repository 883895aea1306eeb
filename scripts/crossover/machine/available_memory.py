"""How much memory a process may still take on this host."""

from __future__ import annotations

from pathlib import Path

import psutil

from crossover.machine.kernel import control_groups, read_kernel, read_number

FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
"""Limit, use, and what of the use is a cache that the kernel drops on demand: control groups of version 2 and 1."""


def available_bytes(root: Path = Path("/"), host_bytes: int | None = None) -> int:
    """What the host has available, or less where a control group allows less; `host_bytes` stands in for the host."""
    host_bytes = psutil.virtual_memory().available if host_bytes is None else host_bytes
    return max(0, min([host_bytes, *(left for level in control_groups("memory", root) for left in _left_in(level))]))


def _left_in(level: Path) -> list[int]:
    """What one control group's limit leaves, as a list of at most one."""
    for limit, used, cache in FILES:
        limit_bytes, used_bytes = read_number(level / limit), read_number(level / used)
        if limit_bytes is not None and used_bytes is not None:
            return [limit_bytes - used_bytes + _statistic(level / "memory.stat", cache)]
    return []


def _statistic(path: Path, name: str) -> int:
    """A line of a control group's statistics; 0 where there is none."""
    pairs = [line.split() for line in (read_kernel(path) or "").splitlines()]
    return sum(int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == name)

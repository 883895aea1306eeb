from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from crossover.machine import counters
from crossover.machine.counters import (
    Counters,
    CpuTicks,
    counters_between,
    queued_ns,
    read_counters,
)

# user nice system idle iowait irq softirq steal guest guest_nice
STAT = """\
cpu  9999 9999 9999 9999 9999 9999 9999 9999 9999 9999
cpu0 100 1 20 500 5 3 2 9 50 0
cpu1 200 2 40 300 6 4 8 1 0 0
cpu2 7777 0 0 0 0 0 0 0 0 0
intr 123
"""
# pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
SELF_STAT = "77 (a (strange) name) R 1 77 77 0 -1 4194304 11 12 13 14 60 7 20 3 20 0 1 0 9999 0 0"


def running(monkeypatch: pytest.MonkeyPatch, *pids: int) -> None:
    process = SimpleNamespace(children=lambda **_: [SimpleNamespace(pid=pid) for pid in pids])
    monkeypatch.setattr(counters.psutil, "Process", lambda: process)


@pytest.fixture
def machine(kernel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake machine with three CPUs, CPU pressure, and a job in a cgroup v2 whose parent is throttled."""
    running(monkeypatch)
    monkeypatch.setattr(counters.os, "getloadavg", lambda: (1.5, 9.0, 9.0), raising=False)
    return kernel(
        {
            "proc/stat": STAT,
            "proc/self/stat": SELF_STAT,
            "proc/self/cgroup": "0::/user/job\n",
            "proc/pressure/cpu": "some avg10=0.80 avg60=0.46 avg300=0.12 total=2500000\nfull avg10=0.00 total=9\n",
            "sys/fs/cgroup/user/job/cpu.stat": "usage_usec 1\nnr_throttled 4\nthrottled_usec 1500000\n",
            "sys/fs/cgroup/user/cpu.stat": "usage_usec 1\nthrottled_usec 250000\n",
            "sys/fs/cgroup/cpu.stat": "usage_usec 1\n",
        }
    )


def test_the_time_in_the_queues_of_cores_is_that_of_all_threads(kernel: Callable[..., Path]) -> None:
    threads = {"proc/self/task/7/schedstat": "900 120 3\n", "proc/self/task/8/schedstat": "800 30 2\n"}
    assert queued_ns(kernel(threads)) == 150
    assert queued_ns(Path("/no kernel")) == 0


def test_counters_are_read_for_the_usable_cpus(machine: Path) -> None:
    counters_now = read_counters(machine, cpus=[0, 1])
    assert counters_now.load == 1.5
    assert counters_now.cpu_pressure_s == 2.5
    assert counters_now.throttled_s == 1.75
    # busy: 100+1+20+3+2 and 200+2+40+4+8; with idle, iowait and steal: +514 and +307; own: 60+7, children: 20+3
    assert read_counters(machine, cpus=[5]).ticks is None
    assert counters_now.host_ticks is not None
    assert (counters_now.host_ticks.cpus, counters_now.host_ticks.busy) == (3, 126 + 254 + 7777)
    expected = CpuTicks(cpus=2, total=126 + 254 + 514 + 307, busy=126 + 254, stolen=10, process=67, children=23)
    assert counters_now.ticks == expected


def test_the_siblings_of_a_cpu_are_included(machine: Path) -> None:
    """CPU 2 is the other thread of CPU 0; the kernel lists no siblings of CPU 1."""
    siblings = machine / "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"
    siblings.parent.mkdir(parents=True)
    siblings.write_text("0,2\n")
    ticks = read_counters(machine, cpus=[0]).ticks
    assert ticks is not None
    assert (ticks.cpus, ticks.busy) == (2, 126 + 7777)


def test_the_time_of_children_counts_before_and_after_they_end(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def children(pids: list[int]) -> int:
        running(monkeypatch, *pids)
        ticks = read_counters(machine, cpus=[0]).ticks
        assert ticks is not None
        return ticks.children

    (machine / "proc/5").mkdir()
    (machine / "proc/5/stat").write_text("5 (loader) S 77 77 77 0 -1 4194304 0 0 0 0 40 2 5 1 20 0 1 0 9999 0 0")
    assert children([5, 6]) == 23 + 48  # process 6 has ended
    # Its 48 ticks, and 10 more until it ended, are now in its parent's counters.
    (machine / "proc/self/stat").write_text(SELF_STAT.replace(" 20 3 ", " 75 6 ", 1))
    assert children([]) == 23 + 48 + 10


def test_cgroup_v1_counts_throttling_in_nanoseconds(kernel: Callable[..., Path]) -> None:
    stat = "nr_periods 3\nnr_throttled 1\nthrottled_time 2500000000\n"
    root = kernel({"proc/self/cgroup": "1:cpu,cpuacct:/job\n", "sys/fs/cgroup/cpu/job/cpu.stat": stat})
    assert read_counters(root, cpus=[0]).throttled_s == 2.5


def test_missing_counters_are_none(tmp_path: Path) -> None:
    bare = read_counters(tmp_path, cpus=[0])
    assert dataclasses.replace(bare, monotonic_s=0.0) == Counters(
        monotonic_s=0.0, load=bare.load, cpu_pressure_s=None, throttled_s=None, ticks=None, host_ticks=None
    )
    between = counters_between(bare, bare)
    assert {name for name, value in between.items() if value is not None} == {"load_after"}


def reading(
    seconds: float,
    busy: int,
    process: int,
    *,
    total: int,
    stolen: int = 0,
    cpus: int = 4,
    pressure_s: float | None = 0.0,
    children: int = 0,
) -> Counters:
    ticks = CpuTicks(cpus=cpus, total=total, busy=busy, stolen=stolen, process=process, children=children)
    # The host has twice as many CPUs; other programs keep one of the additional ones busy.
    whole = CpuTicks(
        cpus=2 * cpus, total=2 * total, busy=busy + total // cpus, stolen=0, process=process, children=children
    )
    return Counters(
        monotonic_s=seconds,
        load=seconds,
        cpu_pressure_s=pressure_s,
        throttled_s=seconds / 4,
        ticks=ticks,
        host_ticks=whole,
    )


def test_shares_between_two_readings() -> None:
    # 10 s on 4 CPUs are 4000 ticks: 1500 busy, of which 800 ours and 200 our children's: others kept 500 / 4000 of 4
    # CPUs busy.
    before = reading(100.0, 2000, 300, total=10_000, stolen=70, pressure_s=7.0, children=50)
    after = reading(110.0, 3500, 1100, total=14_000, stolen=110, pressure_s=9.5, children=250)
    assert counters_between(before, after) == {
        "load_after": 110.0,
        "steal_share": 40 / 1540,  # as a share of the time in which a task ran or was ready to run
        "cpu_pressure_share": 0.25,
        "cgroup_throttled_s": 2.5,
        "others_cpus": 0.5,
        "host_others_cpus": 1.5,
        "children_cpus": 0.2,
    }


@pytest.mark.parametrize(
    ("before", "after", "others", "children"),
    [
        # The process's own clock is a tick ahead.
        (reading(0.0, 0, 0, total=0), reading(10.0, 3999, 4000, total=4000), 0, 0),
        # Ticks of a child that nobody waited for are lost: 100 of the 200 busy ticks belong to others, not 100 + 70.
        (reading(0.0, 0, 0, total=0, children=70), reading(10.0, 200, 100, total=4000), 0.1, 0),
        (reading(0.0, 0, 0, total=0), reading(1.0, 50, 0, total=200, cpus=2), None, None),
    ],
    ids=["alone", "lost child", "other CPUs"],
)
def test_load_by_other_programs(
    before: Counters, after: Counters, others: float | None, children: float | None
) -> None:
    between = counters_between(before, after)
    assert (between["others_cpus"], between["children_cpus"]) == (others, children)
    assert (between["cpu_pressure_share"] is None) == (before == after)

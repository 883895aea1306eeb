"""Readings around a trial's timed blocks, with a fake NVML and fake counters, and energy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
import torch

from crossover.machine.counters import Counters, CpuTicks
from crossover.measurement.host import surroundings
from crossover.measurement.host.surroundings import (
    RaplCounter,
    Surroundings,
    energy_columns,
    package_joules,
    read_gpu_energy_mj,
    read_rapl,
)
from crossover.tables.columns import COLUMNS

UUID = "GPU-1"
WINDOW = (20.0, 20)
"""Seconds and steps."""


def counters(number: int, elsewhere: float) -> Counters:
    """Counters with 1000 ticks per CPU in 10 s. Of two CPUs this process uses 1 and others use 0.5; of two further CPUs
    others use `elsewhere`."""
    busy = 1500 * number
    near = CpuTicks(cpus=2, total=2000 * number, busy=busy, stolen=0, process=1000 * number, children=0)
    host = replace(near, cpus=4, total=4000 * number, busy=busy + round(1000 * elsewhere) * number)
    return Counters(
        monotonic_s=10.0 * number,
        load=1.0 + number,
        cpu_pressure_s=1.0 * number,
        throttled_s=None,
        ticks=near,
        host_ticks=host,
    )


@pytest.fixture(autouse=True)
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order of the readings, between two of which 10 s pass and the CPU's package uses 400 J."""
    done: list[str] = []

    def next_of(name: str, readings: Iterator[Any]) -> Callable[..., Any]:
        return lambda **_: done.append(name) or next(readings)

    energies = iter({"package-0": RaplCounter(energy, 10**12)} for energy in (10**6, 401 * 10**6))
    retries = iter([4, 6])
    monkeypatch.setattr(surroundings, "read_counters", next_of("counters", (counters(n, 0.0) for n in range(2))))
    monkeypatch.setattr(surroundings, "involuntary_switches", lambda: 8)
    monkeypatch.setattr(surroundings, "read_rapl", next_of("energy", energies))
    monkeypatch.setattr(surroundings, "_now_us", lambda: 50_000_000)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_alloc_retries": next(retries)})
    return done


def gpu(**changed: Any) -> dict[str, Any]:
    return {
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        "nvmlDeviceGetTotalEnergyConsumption": 1_000_000,
        **changed,
    }


def around(device: str, uuid: str | None, nvml: Any) -> dict[str, Any]:
    readings = Surroundings(device, uuid, nvml)
    readings.counts()
    readings.counts()
    readings.read_under_load()
    return readings.columns(*WINDOW)


def test_a_trial_on_the_cpu(fake_nvml: Callable[..., Any], order: list[str]) -> None:
    """Other programs use half a CPU of the package, so the trial has no energy."""
    columns = around("cpu", None, fake_nvml({}))
    assert set(columns) <= set(COLUMNS)
    assert (columns["load_after"], columns["cpu_pressure_share"]) == (2, 0.1)
    assert columns["others_cpus"] == columns["host_others_cpus"] == 0.5
    assert {columns[name] for name in ("energy_j", "energy_per_step_j", "energy_source")} == {None}
    assert columns["sm_clock_after_mhz"] is columns["leased_beside"] is None
    assert order == ["counters", "energy", "energy", "counters"]  # no other reading is within the energy's window


@pytest.mark.parametrize(("elsewhere", "energy_j"), [(-0.5, 400), (-0.2, None), (0.0, None)])
def test_packages_have_an_energy_unless_others_used_their_cpus(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any], elsewhere: float, energy_j: int | None
) -> None:
    """Other programs use 0, 0.3 or 0.5 CPUs of the package."""
    readings = iter(counters(number, elsewhere) for number in range(2))
    monkeypatch.setattr(surroundings, "read_counters", lambda **_: next(readings))
    columns = around("cpu-1", None, fake_nvml({}))
    assert columns["host_others_cpus"] == pytest.approx(0.5 + elsewhere)
    assert (columns["energy_j"], columns["energy_per_step_j"]) == (energy_j, energy_j and 20)
    assert columns["energy_source"] == ("RAPL" if energy_j else None)


@pytest.mark.parametrize(
    ("strangers", "share", "shared"),
    [(0, None, False), (2, None, True), (2, 0, False), (2, 2, False), (2, 3, True), (0, 3, True)],
)
def test_a_trial_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
    fake_nvml: Callable[..., Any],
    strangers: int,
    share: int | None,
    shared: bool,
) -> None:
    """Energy is kept if other processes use at most 2 % of the GPU."""
    thermal = f"nvmlDeviceGetViolationStatus({pynvml.NVML_PERF_POLICY_THERMAL})"
    nvml = fake_nvml({UUID: gpu(**{thermal: SimpleNamespace(violationTime=10**9)})})
    readings = Surroundings("cuda", UUID, nvml)

    nvml.gpus[UUID][thermal] = SimpleNamespace(violationTime=3 * 10**9)  # before the timing
    assert readings.counts() == {"involuntary_switches": 8, "allocator_retries": 4}
    nvml.gpus[UUID] |= {
        "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,  # mJ
        thermal: SimpleNamespace(violationTime=4 * 10**9),
    }
    monkeypatch.setattr(surroundings, "_now_us", lambda: 50_000_000 + 20 * 10**6)
    if share is not None:  # the timing begins at 50 s
        utilisation = {(os.getpid(), 50_000_001): 90, (10**7, 50_000_001): share, (10**7 + 1, 50_000_000): 99}
        nvml.gpus[UUID]["nvmlDeviceGetProcessUtilization"] = [
            SimpleNamespace(pid=pid, timeStamp=at_us, smUtil=percent) for (pid, at_us), percent in utilisation.items()
        ]
    assert readings.counts()["allocator_retries"] == 6
    pids = [os.getpid(), *(10**7 + number for number in range(strangers))]
    present = [SimpleNamespace(pid=pid, usedGpuMemory=2**20) for pid in pids]
    nvml.gpus[UUID] |= {"nvmlDeviceGetClockInfo": 1500, "nvmlDeviceGetComputeRunningProcesses_v3": present}
    readings.read_under_load()
    nvml.gpus[UUID] |= {  # too late
        "nvmlDeviceGetClockInfo": 345,
        "nvmlDeviceGetTotalEnergyConsumption": 9_000_000,
        thermal: SimpleNamespace(violationTime=9 * 10**9),
    }

    columns = readings.columns(*WINDOW)
    assert set(columns) <= set(COLUMNS)
    assert (columns["sm_clock_before_mhz"], columns["sm_clock_after_mhz"]) == (1980, 1500)
    assert columns["slowdown_s"] == pytest.approx(1.0)
    assert columns["foreign_processes"] == strangers
    assert columns["foreign_gpu_share"] == (None if share is None else pytest.approx(share / 100))
    assert columns["others_cpus"] == 0.5
    expected = (None, None, None) if shared else (4000, 200, "NVML")
    assert (columns["energy_j"], columns["energy_per_step_j"], columns["energy_source"]) == expected


def test_a_short_timing_reads_the_use_of_the_gpu_over_a_second(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]
) -> None:
    """For a timing from 50 to 50.3 s, a sample at 49.4 s counts, and a sample at 49.2 s does not."""
    samples = [SimpleNamespace(pid=pid, timeStamp=at, smUtil=50) for pid, at in ((7, 49_400_000), (8, 49_200_000))]
    nvml = fake_nvml({UUID: gpu(nvmlDeviceGetProcessUtilization=samples)})
    times_us = iter([50_000_000, 50_300_000, 50_300_001])
    monkeypatch.setattr(surroundings, "_now_us", lambda: next(times_us))
    readings = Surroundings("cuda", UUID, nvml)
    readings.counts()
    readings.counts()
    assert readings.edges[1].gpu.shares == {7: 0.5}


@pytest.mark.parametrize(("before", "after", "most"), [(2, 1, 2), (0, 3, 3)])
def test_the_larger_number_of_other_leased_gpus_counts(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any], before: int, after: int, most: int
) -> None:
    readings = iter([before, after])
    monkeypatch.setattr(
        surroundings, "others_held", lambda uuid, _environment: next(readings) if uuid == UUID else None
    )
    assert around("cuda", UUID, fake_nvml({UUID: gpu()}))["leased_beside"] == most


@pytest.mark.parametrize(
    ("used_j", "window_s", "steps", "shared", "expected"),
    [
        (3000.0, 10.0, 600, False, (3000.0, 5.0, "NVML")),
        (3000.0, 9.99, 600, False, (None, None, None)),
        (3000.0, 10.0, 600, True, (None, None, None)),
        (-1.0, 10.0, 600, False, (None, None, None)),  # the driver was reloaded
    ],
)
def test_energy_columns(
    used_j: float | None, window_s: float, steps: int, shared: bool, expected: tuple[Any, ...]
) -> None:
    columns = energy_columns(used_j, "NVML", window_s, steps, shared)
    assert columns == dict(zip(("energy_j", "energy_per_step_j", "energy_source"), expected, strict=True))


def test_energy_is_read_only_for_a_whole_gpu(fake_nvml: Callable[..., Any]) -> None:
    instance = {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle": "GPU-1", "nvmlDeviceGetTotalEnergyConsumption": 9}
    nvml = fake_nvml({"GPU-1": {"nvmlDeviceGetTotalEnergyConsumption": 77}, "GPU-2": {}, "MIG-3": instance})
    energies_mj = [read_gpu_energy_mj(uuid, nvml) for uuid in ("GPU-1", "GPU-2", "MIG-3", "GPU-4", None)]
    assert energies_mj == [77, None, None, None, None]
    assert nvml.opened == 0


@pytest.fixture
def machine(kernel: Callable[..., Path]) -> Path:
    """Two packages, a domain within the first, the platform, and a second interface to the first package."""
    domains = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:1": "package-1",
        "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }
    files: dict[str, str] = {}
    for number, (folder, name) in enumerate(domains.items(), 1):
        values = {"name": name, "energy_uj": f"{number}000", "max_energy_range_uj": "262143328850"}
        files |= {f"sys/class/powercap/{folder}/{file}": f"{value}\n" for file, value in values.items()}
    return kernel(files)


def test_each_package_counts_once(machine: Path) -> None:
    counters = {"package-0": RaplCounter(1000, 262143328850), "package-1": RaplCounter(3000, 262143328850)}
    assert read_rapl(machine) == counters
    assert read_rapl(machine / "elsewhere") is None
    (machine / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert read_rapl(machine) is None


RANGE_UJ = 30_000 * 10**6 - 1


def packages(*energies_j: float) -> dict[str, RaplCounter]:
    return {f"package-{n}": RaplCounter(int(energy * 10**6), RANGE_UJ) for n, energy in enumerate(energies_j)}


@pytest.mark.parametrize(
    ("before", "after", "window_s", "joules"),
    [
        # The first used 100 J; the second rose from 29 000 J, wrapped at 30 000 J and ended at 500 J: 1500 J.
        (packages(50, 29_000), packages(150, 500), 20.0, pytest.approx(1600)),
        (packages(1), None, 20.0, None),
        (packages(1), packages(2, 3), 20.0, None),
        (packages(1), packages(2), 31.0, None),  # at 1000 W, 30 000 J pass in 30 s
    ],
)
def test_packages_are_added_up_and_a_counter_may_wrap_once(
    before: dict[str, RaplCounter] | None, after: dict[str, RaplCounter] | None, window_s: float, joules: float | None
) -> None:
    assert package_joules(before, after, window_s) == joules


def test_the_load_by_others_is_that_on_the_cores_of_all_processes_of_a_trial(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(surroundings, "read_counters", lambda cpus: seen.append(cpus) or counters(len(seen), 0.0))
    for cpus in (None, [0, 1]):
        read = Surroundings("cpu-2x1", None, fake_nvml({}), cpus)
        read.counts()
    assert seen == [None, [0, 1]]

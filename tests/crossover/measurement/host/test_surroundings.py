"""Readings around a trial, in their order, with a made-up NVML and made-up counters."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from crossover.machine.counters import Counters, CpuTicks
from crossover.measurement.clock.timing import Timing
from crossover.measurement.host import surroundings
from crossover.measurement.host.energy import RaplCounter
from crossover.measurement.host.surroundings import Surroundings
from crossover.tables.columns import COLUMNS

UUID = "GPU-1"
TIMING = Timing(1.0, 1.0, 10, True, 10, (1.0, 1.0), None, 1.0, {})  # 20 steps in 20 s


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two readings: 10 s, load 1 to 2, and of two CPUs half a CPU used by others."""
    readings = iter(
        Counters(
            monotonic_s=10.0 * number,
            load=1.0 + number,
            cpu_pressure_s=1.0 * number,
            throttled_s=None,
            ticks=CpuTicks(cpus=2, total=2000 * number, busy=1500 * number, stolen=0, own=1000 * number, children=0),
        )
        for number in range(2)
    )
    monkeypatch.setattr(surroundings, "read_counters", lambda: next(readings))
    monkeypatch.setattr(surroundings, "involuntary_switches", lambda: 8)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU package that uses 400 J between two readings."""
    readings = iter({"package-0": RaplCounter(energy, 10**12)} for energy in (10**6, 401 * 10**6))
    monkeypatch.setattr(surroundings, "read_rapl", lambda: next(readings))


def gpu(**changed: Any) -> dict[str, Any]:
    """A GPU at work, with us on it."""
    return {
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        "nvmlDeviceGetTotalEnergyConsumption": 1_000_000,
        **changed,
    }


@pytest.mark.usefixtures("host", "packages")
def test_a_trial_on_the_cpu(fake_nvml: Callable[..., Any]) -> None:
    around = Surroundings("cpu", None, fake_nvml({}))
    assert around.counts(lambda: 3) == {"recompiles": 3, "involuntary_switches": 8}
    assert around.counts(lambda: 5)["recompiles"] == 5
    around.read_under_load()
    columns = around.columns(TIMING, threads=1, physical_cores=2)
    assert set(columns) <= set(COLUMNS)
    assert (columns["load_before"], columns["load_after"], columns["cpu_pressure_share"]) == (1, 2, 0.1)
    assert columns["others_cpus"] == 0.5
    assert (columns["energy_j"], columns["energy_per_step_j"], columns["energy_source"]) == (400, 20, "RAPL")
    assert columns["sm_clock_after_mhz"] is None
    assert columns["leased_beside"] is None
    assert around.driver_version is None


@pytest.mark.usefixtures("host", "packages")
def test_energy_of_a_cpu_that_others_use_is_nobodys(fake_nvml: Callable[..., Any]) -> None:
    """With a thread on each of two cores there is no room for half a CPU of others."""
    around = Surroundings("cpu", None, fake_nvml({}))
    around.counts(lambda: 0)
    around.counts(lambda: 0)
    around.read_under_load()
    assert around.columns(TIMING, threads=2, physical_cores=2)["energy_j"] is None


class Process:
    def __init__(self, pid: int) -> None:
        self.pid, self.usedGpuMemory = pid, 2**20


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("strangers", [0, 2])
def test_a_trial_on_a_gpu(monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any], strangers: int) -> None:
    retries = iter([4, 6])
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_alloc_retries": next(retries)})
    nvml = fake_nvml({UUID: gpu()})
    around = Surroundings("cuda", UUID, nvml)

    assert around.counts(lambda: 0) == {"recompiles": 0, "involuntary_switches": 8, "allocator_retries": 4}
    nvml.gpus[UUID]["nvmlDeviceGetTotalEnergyConsumption"] = 5_000_000  # mJ
    assert around.counts(lambda: 0)["allocator_retries"] == 6
    present = [Process(os.getpid()), *(Process(10**7 + number) for number in range(strangers))]
    nvml.gpus[UUID] |= {"nvmlDeviceGetClockInfo": 1500, "nvmlDeviceGetComputeRunningProcesses_v3": present}
    around.read_under_load()
    nvml.gpus[UUID] |= {"nvmlDeviceGetClockInfo": 345, "nvmlDeviceGetTotalEnergyConsumption": 9_000_000}  # too late

    columns = around.columns(TIMING, threads=2, physical_cores=2)
    assert (columns["sm_clock_before_mhz"], columns["sm_clock_after_mhz"]) == (1980, 1500)
    assert columns["foreign_processes"] == strangers
    assert columns["others_cpus"] == 0.5
    expected = (None, None, None) if strangers else (4000, 200, "NVML")
    assert (columns["energy_j"], columns["energy_per_step_j"], columns["energy_source"]) == expected


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(("before", "after", "most"), [(0, 0, 0), (2, 1, 2), (0, 3, 3)])
def test_most_of_the_gpus_that_were_leased_beside_it_count(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any], before: int, after: int, most: int
) -> None:
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_alloc_retries": 0})
    readings = iter([before, after])
    monkeypatch.setattr(
        surroundings, "others_held", lambda uuid, _environment: next(readings) if uuid == UUID else None
    )
    around = Surroundings("cuda", UUID, fake_nvml({UUID: gpu()}))
    around.counts(lambda: 0)
    around.counts(lambda: 0)
    around.read_under_load()
    assert around.columns(TIMING, threads=2, physical_cores=2)["leased_beside"] == most


@pytest.mark.usefixtures("host")
def test_without_nvml_the_gpu_is_not_known(fake_nvml: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_alloc_retries": 0})
    around = Surroundings("cuda", None, fake_nvml({}, installed=False))
    around.counts(lambda: 0)
    around.counts(lambda: 0)
    around.read_under_load()
    columns = around.columns(TIMING, threads=2, physical_cores=2)
    assert columns["foreign_processes"] is None
    assert columns["energy_j"] is None
    assert around.driver_version is None


@pytest.mark.usefixtures("host")
def test_a_kernel_that_counts_no_switches(monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]) -> None:
    monkeypatch.setattr(surroundings, "involuntary_switches", lambda: None)
    assert Surroundings("mps", None, fake_nvml({})).counts(lambda: 1) == {"recompiles": 1}


@pytest.mark.usefixtures("host", "packages")
def test_the_cpu_on_fewer_cores_uses_the_package_and_no_gpu(fake_nvml: Callable[..., Any]) -> None:
    around = Surroundings("cpu-1", None, fake_nvml({}))
    around.counts(lambda: 0)
    around.counts(lambda: 0)
    around.read_under_load()
    found = around.columns(TIMING, threads=1, physical_cores=2)
    assert (around.driver_version, found["energy_source"]) == (None, "RAPL")
    assert found["energy_per_step_j"] == 400 / 20

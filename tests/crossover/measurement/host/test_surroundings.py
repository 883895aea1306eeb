"""Readings around a trial, in their order, with a made-up NVML and made-up counters."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from crossover.machine.counters import Counters, CpuTicks
from crossover.measurement.host import surroundings
from crossover.measurement.host.energy import RaplCounter
from crossover.measurement.host.surroundings import Surroundings
from crossover.tables.columns import COLUMNS

UUID = "GPU-1"
WINDOW = (20.0, 20)
"""Seconds and steps."""


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two readings: 10 s, load 1 to 2, half a CPU of two used by others, 400 J of the CPU's package."""
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
    energies = iter({"package-0": RaplCounter(energy, 10**12)} for energy in (10**6, 401 * 10**6))
    retries = iter([4, 6])
    monkeypatch.setattr(surroundings, "read_counters", lambda: next(readings))
    monkeypatch.setattr(surroundings, "involuntary_switches", lambda: 8)
    monkeypatch.setattr(surroundings, "read_rapl", lambda: next(energies))
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_alloc_retries": next(retries)})


def gpu(**changed: Any) -> dict[str, Any]:
    """A GPU at work."""
    return {
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        "nvmlDeviceGetTotalEnergyConsumption": 1_000_000,
        **changed,
    }


def around(device: str, uuid: str | None, nvml: Any, threads: int = 2) -> dict[str, Any]:
    """The columns of a trial around which nothing changes on the GPU."""
    found = Surroundings(device, uuid, nvml)
    found.counts()
    found.counts()
    found.read_under_load()
    return found.columns(*WINDOW, threads, physical_cores=2)


@pytest.mark.parametrize(("device", "threads", "energy_j"), [("cpu", 1, 400), ("cpu-1", 1, 400), ("cpu", 2, None)])
def test_a_trial_on_the_cpu(fake_nvml: Callable[..., Any], device: str, threads: int, energy_j: float | None) -> None:
    """With a thread on each of two cores there is no room for half a CPU of others: the energy is not the trial's."""
    columns = around(device, None, fake_nvml({}), threads)
    assert set(columns) <= set(COLUMNS)
    assert (columns["load_before"], columns["load_after"], columns["cpu_pressure_share"]) == (1, 2, 0.1)
    assert columns["others_cpus"] == 0.5
    assert (columns["energy_j"], columns["energy_per_step_j"]) == (energy_j, energy_j and 20)
    assert columns["energy_source"] == ("RAPL" if energy_j else None)
    assert columns["sm_clock_after_mhz"] is columns["leased_beside"] is None


@pytest.mark.parametrize("strangers", [0, 2])
def test_a_trial_on_a_gpu(fake_nvml: Callable[..., Any], strangers: int) -> None:
    nvml = fake_nvml({UUID: gpu()})
    found = Surroundings("cuda", UUID, nvml)

    assert found.counts() == {"involuntary_switches": 8, "allocator_retries": 4}
    nvml.gpus[UUID]["nvmlDeviceGetTotalEnergyConsumption"] = 5_000_000  # mJ
    assert found.counts()["allocator_retries"] == 6
    pids = [os.getpid(), *(10**7 + number for number in range(strangers))]
    present = [SimpleNamespace(pid=pid, usedGpuMemory=2**20) for pid in pids]
    nvml.gpus[UUID] |= {"nvmlDeviceGetClockInfo": 1500, "nvmlDeviceGetComputeRunningProcesses_v3": present}
    found.read_under_load()
    nvml.gpus[UUID] |= {"nvmlDeviceGetClockInfo": 345, "nvmlDeviceGetTotalEnergyConsumption": 9_000_000}  # too late

    columns = found.columns(*WINDOW, threads=2, physical_cores=2)
    assert (columns["sm_clock_before_mhz"], columns["sm_clock_after_mhz"]) == (1980, 1500)
    assert columns["foreign_processes"] == strangers
    assert columns["others_cpus"] == 0.5
    expected = (None, None, None) if strangers else (4000, 200, "NVML")
    assert (columns["energy_j"], columns["energy_per_step_j"], columns["energy_source"]) == expected


@pytest.mark.parametrize(("before", "after", "most"), [(0, 0, 0), (2, 1, 2), (0, 3, 3)])
def test_most_of_the_gpus_that_were_leased_beside_it_count(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any], before: int, after: int, most: int
) -> None:
    readings = iter([before, after])
    monkeypatch.setattr(
        surroundings, "others_held", lambda uuid, _environment: next(readings) if uuid == UUID else None
    )
    assert around("cuda", UUID, fake_nvml({UUID: gpu()}))["leased_beside"] == most


def test_without_nvml_the_gpu_is_not_known(fake_nvml: Callable[..., Any]) -> None:
    columns = around("cuda", None, fake_nvml({}, installed=False))
    assert columns["foreign_processes"] is columns["energy_j"] is None


def test_a_kernel_that_counts_no_switches(monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]) -> None:
    monkeypatch.setattr(surroundings, "involuntary_switches", lambda: None)
    assert Surroundings("mps", None, fake_nvml({})).counts() == {}

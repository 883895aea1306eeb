"""The memory pass on fake devices and on this CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.memory import memory_pass
from crossover.measurement.memory.memory_pass import Split, Subject, measure_memory, process_bytes, split_memory

PARTS = {
    "parameter_bytes": 1000,
    "gradient_bytes": 1000,
    "optimizer_bytes": 2000,
    "activation_bytes": 500,
    "resident_bytes": 300,
}


class Accelerator:
    """A fake torch.cuda with a caching allocator; its counters may be read only after a synchronisation."""

    def __init__(self) -> None:
        self.allocated = 4600
        self.peak = self.peak_reserved = 99_999  # from the timing
        self.reserved = 8000
        self.waited = True

    def allocate(self, count: int) -> None:
        self.waited = False
        self.allocated += count
        self.peak = max(self.peak, self.allocated)
        self.reserved = max(self.reserved, self.allocated)
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def synchronize(self, _: torch.device) -> None:
        self.waited = True

    def empty_cache(self) -> None:
        self.reserved = self.allocated

    def reset_peak_memory_stats(self, _: torch.device) -> None:
        self.peak, self.peak_reserved = self.allocated, self.reserved

    def memory_allocated(self, _: torch.device) -> int:
        return self._read(self.allocated)

    def max_memory_allocated(self, _: torch.device) -> int:
        return self._read(self.peak)

    def max_memory_reserved(self, _: torch.device) -> int:
        return self._read(self.peak_reserved)

    def mem_get_info(self, _: torch.device) -> tuple[int, int]:
        return 100_000 - self._read(self.reserved) - 10_000, 100_000  # 10,000 belong to other processes

    def _read(self, count: int) -> int:
        assert self.waited
        return count


class Cycle:
    def __init__(self, gpu: Accelerator, count: int) -> None:
        self.myself, self.gpu, self.count = self, gpu, count
        gpu.allocate(count)

    def __del__(self) -> None:
        self.gpu.allocate(-self.count)


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture
def subject(steps: list[str]) -> Subject:
    return Subject(lambda: steps.append("eager"), nn.Linear(2, 2))


def both(step: Callable[[], None], subject: Subject, kind: str, uuid: str | None = None) -> dict[str, Any]:
    peak = measure_memory(step, torch.device(kind), uuid)
    return peak | split_memory(subject, torch.device(kind), peak)


@pytest.fixture
def fixed_split(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Replace the split by a fixed one; returns a list of the device's level in each call."""
    levels: list[int | None] = []

    def split_step(subject: Subject, _: torch.device, level: Callable[[], int] | None = None) -> Split:
        subject.step()
        levels.append(None if level is None else level())
        return Split(PARTS, added_bytes=1500)

    monkeypatch.setattr(memory_pass, "split_step", split_step)
    return levels


PROCESSES = "nvmlDeviceGetComputeRunningProcesses"


def entry(used: int | None, pid: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(pid=os.getpid() if pid is None else pid, usedGpuMemory=used)


@pytest.mark.parametrize(
    ("gpus", "used_bytes"),
    [
        ({"GPU-1": {PROCESSES: [entry(300), entry(999, pid=0)]}}, 300),
        ({"GPU-1": {PROCESSES: [entry(300), entry(50)]}}, 350),
        ({"GPU-1": {PROCESSES: [entry(None)]}}, None),
        ({"GPU-1": {PROCESSES: [entry(999, pid=0)]}}, None),
        ({"GPU-1": {}}, None),  # the driver does not answer
        ({}, None),
    ],
)
def test_the_memory_of_this_process_as_reported_by_the_driver(
    monkeypatch: pytest.MonkeyPatch, fake_nvml: Any, gpus: dict[str, Any], used_bytes: int | None
) -> None:
    monkeypatch.setattr(memory_pass, "pynvml", fake_nvml(gpus))
    assert process_bytes("GPU-1") == used_bytes
    assert process_bytes(None) is None
    monkeypatch.setattr(memory_pass, "pynvml", fake_nvml(gpus, installed=False))
    assert process_bytes("GPU-1") is None


@pytest.mark.parametrize(
    ("kind", "taken", "other_bytes"), [("cuda", 1500, 1300), ("xpu", 1500, 1300), ("cuda", 100, 0)]
)
def test_the_memory_of_an_accelerator(
    monkeypatch: pytest.MonkeyPatch,
    fake_nvml: Any,
    subject: Subject,
    fixed_split: list[int | None],
    steps: list[str],
    kind: str,
    taken: int,
    other_bytes: int,
) -> None:
    """4600 B of the peak were allocated before the steps; the parts are 4800 B."""
    gpu = Accelerator()
    Cycle(gpu, 5000)

    def step() -> None:
        steps.append("timed")
        gpu.allocate(taken)
        gpu.allocate(-taken)

    monkeypatch.setattr(memory_pass, "pynvml", fake_nvml({"GPU-1": {PROCESSES: [entry(12_000)]}}))
    monkeypatch.setattr(torch, "get_device_module", lambda _: gpu)
    nvidia = {"device_used_bytes": 4600 + taken + 10_000, "process_device_bytes": 12_000}
    assert both(step, subject, kind, "GPU-1") == {
        "base_bytes": 4600,
        "peak_allocated_bytes": 4600 + taken,
        "peak_reserved_bytes": 4600 + taken,
        **(nvidia if kind == "cuda" else {}),
        "memory_source": f"{kind.upper()} allocator",
        **PARTS,
        "other_bytes": other_bytes,
    }
    assert fixed_split == [4600]  # the peak was reset before the split
    assert steps == ["timed", "timed", "eager"]


@pytest.mark.usefixtures("fixed_split")
@pytest.mark.parametrize(("growth_bytes", "other_bytes"), [(2000, 500), (1000, 0)])
def test_on_the_cpu_other_memory_is_the_growth_beyond_that_of_the_parts(
    subject: Subject, growth_bytes: int, other_bytes: int
) -> None:
    """The parts grow by 1500 B; the rest of them existed before the step."""
    split = split_memory(subject, torch.device("cpu"), {"rss_growth_bytes": growth_bytes})
    assert split == {**PARTS, "other_bytes": other_bytes}


@pytest.mark.usefixtures("fixed_split")
def test_mps_has_parts_but_no_peak(subject: Subject, steps: list[str]) -> None:
    assert both(lambda: steps.append("timed"), subject, "mps") == PARTS
    assert steps == ["eager"]

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.memory import memory_pass as memory
from crossover.measurement.memory.memory_pass import measure_memory
from crossover.measurement.memory.memory_split import Split, Subject
from crossover.tables.columns import Measurement

SPLIT = Split(1000, 1000, 2000, 500, 300, added_bytes=1500)
SPLIT_COLUMNS = {
    "parameter_bytes": 1000,
    "gradient_bytes": 1000,
    "optimizer_bytes": 2000,
    "activation_bytes": 500,
    "resident_bytes": 300,
}


@pytest.fixture
def steps() -> list[str]:
    """Which steps ran, in order."""
    return []


@pytest.fixture
def subject(steps: list[str]) -> Subject:
    return Subject(
        lambda: steps.append("as timed"), nn.Linear(2, 2), (), (), eager_step=lambda: steps.append("eagerly")
    )


@pytest.fixture
def known_split(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """A split that is known beforehand; the levels that the device told for it."""
    levels: list[int | None] = []

    def split_step(
        _: Subject, eager_step: Callable[[], None], device: torch.device, level: Callable[[], int] | None = None
    ) -> Split:
        assert isinstance(device, torch.device)
        eager_step()
        levels.append(None if level is None else level())
        return SPLIT

    monkeypatch.setattr(memory, "split_step", split_step)
    return levels


class Accelerator:
    """torch.cuda or torch.xpu: 4600 B before, 6000 B at the peak, marks that start over when reset."""

    def __init__(self, peak: int = 6000) -> None:
        self.peak, self.resets = peak, 0

    def synchronize(self, _: torch.device) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def memory_allocated(self, _: torch.device) -> int:
        return 4600

    def reset_peak_memory_stats(self, _: torch.device) -> None:
        self.resets += 1

    def max_memory_allocated(self, _: torch.device) -> int:
        return self.peak + self.resets - 1

    def max_memory_reserved(self, _: torch.device) -> int:
        return 8192

    def mem_get_info(self, _: torch.device) -> tuple[int, int]:
        return 50_000, 70_000

    def get_device_properties(self, _: torch.device) -> SimpleNamespace:
        return SimpleNamespace(uuid="1234")


def nvml() -> Any:
    entry = SimpleNamespace(pid=os.getpid(), usedGpuMemory=12_000)
    return SimpleNamespace(
        NVMLError=OSError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID={"GPU-1234": 0}.__getitem__,
        nvmlDeviceGetComputeRunningProcesses={0: [entry]}.__getitem__,
    )


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_an_accelerators_memory(subject: Subject, known_split: list[int | None], steps: list[str], kind: str) -> None:
    """The rest of the peak is 6000 - 4800 B; NVML knows NVIDIA's GPUs only."""
    found = measure_memory(subject, torch.device(kind, 0), accelerator=Accelerator(), nvml=nvml())
    assert found == {
        "base_bytes": 4600,
        "peak_allocated_bytes": 6000,
        "peak_reserved_bytes": 8192,
        "device_used_bytes": 20_000,
        "process_device_bytes": 12_000 if kind == "cuda" else None,
        "memory_source": f"{kind.upper()} allocator",
        **SPLIT_COLUMNS,
        "other_bytes": 1200,
    }
    assert known_split == [6001]  # from marks that were reset in between
    assert steps == ["as timed", "as timed", "eagerly"]


def test_a_step_that_needs_less_than_its_eager_parts_leaves_no_rest(
    subject: Subject, known_split: list[int | None]
) -> None:
    found = measure_memory(subject, torch.device("cuda", 0), accelerator=Accelerator(4700), nvml=nvml())
    assert found["other_bytes"] == 0
    assert len(known_split) == 1


@pytest.fixture
def process(tmp_path: Path) -> Path:
    (tmp_path / "clear_refs").touch()
    (tmp_path / "status").write_text("VmHWM:\t 10 kB\nVmRSS:\t 10 kB\n")
    return tmp_path


@pytest.mark.parametrize(("peak_kib", "other_bytes"), [(13, 3 * 1024 - 1500), (11, 0)])
def test_the_cpus_memory(
    subject: Subject, known_split: list[int | None], process: Path, steps: list[str], peak_kib: int, other_bytes: int
) -> None:
    """The rest is what the process grew by without the 1500 B that the parts grew by."""

    def step() -> None:
        steps.append("as timed")
        (process / "status").write_text(f"VmHWM:\t {peak_kib} kB\nVmRSS:\t 10 kB\n")

    found = measure_memory(replace(subject, step=step), torch.device("cpu"), process=process)
    assert found == {
        "base_rss_bytes": 10 * 1024,
        "peak_rss_bytes": peak_kib * 1024,
        "memory_source": "VmHWM",
        **SPLIT_COLUMNS,
        "other_bytes": other_bytes,
    }
    assert known_split == [None]
    assert steps == ["as timed", "as timed", "eagerly"]


def test_metal_has_no_peak_to_take_parts_from(subject: Subject, known_split: list[int | None]) -> None:
    metal = SimpleNamespace(
        synchronize=lambda: None,
        empty_cache=lambda: None,
        current_allocated_memory=lambda: 4600,
        driver_allocated_memory=lambda: 9000,
    )
    found = measure_memory(subject, torch.device("mps"), accelerator=metal)
    assert found == {
        "base_bytes": 4600,
        "peak_reserved_bytes": 9000,
        "memory_source": "Metal driver",
        **SPLIT_COLUMNS,
    }
    assert known_split == [None]


@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps"])
def test_a_step_that_cannot_run_eagerly_is_not_split(
    subject: Subject, known_split: list[int | None], process: Path, kind: str
) -> None:
    metal = {"current_allocated_memory": lambda: 1, "driver_allocated_memory": lambda: 1}
    accelerator = SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None, **metal)
    found = measure_memory(
        replace(subject, eager_step=None),
        torch.device(kind),
        accelerator=Accelerator() if kind == "cuda" else accelerator,
        nvml=nvml(),
        process=process,
    )
    assert not found.keys() & {*SPLIT_COLUMNS, "other_bytes"}
    assert found["memory_source"]
    assert known_split == []


def test_the_real_pass_fills_columns_of_the_row() -> None:
    """4 bytes each for 40 + 10 parameters, as many of gradients, and for a row of 4 numbers."""
    model, data = nn.Sequential(nn.Linear(4, 10)), torch.ones(1, 4)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)

    def step() -> None:
        model(data).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        step()
    row = Measurement(**measure_memory(Subject(step, model, (optimizer,), (data,), step), torch.device("cpu")))
    assert (row.parameter_bytes, row.gradient_bytes, row.optimizer_bytes, row.resident_bytes) == (200, 200, 200, 16)
    assert row.base_rss_bytes is not None
    assert row.peak_rss_bytes is not None
    assert row.other_bytes is not None
    assert 0 <= row.other_bytes <= row.peak_rss_bytes - row.base_rss_bytes


@pytest.mark.parametrize("eagerly", [False, True])
def test_running_out_of_memory_passes_through(subject: Subject, process: Path, eagerly: bool) -> None:
    def step() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    failing = replace(subject, **{"eager_step" if eagerly else "step": step})
    with pytest.raises(torch.OutOfMemoryError):
        measure_memory(failing, torch.device("cpu"), process=process)

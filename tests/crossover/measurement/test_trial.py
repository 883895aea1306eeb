from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from crossover.measurement import trial
from crossover.measurement.devices import OpenDevice
from crossover.measurement.trial import Request, is_out_of_memory, run_trial
from crossover.measurement.workloads import Task, build_task
from crossover.studies import Cell, Effort

CELL = Cell("disc_depth", "disc_mlp", "resident", 10, "fp32", "eager", 2, "cpu")
EFFORT = Effort(1, 0, 1, 0.001, 2, 0, 1)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    path = tmp_path / "data.safetensors"
    save_file({"features": torch.randn(100, 2), "labels": torch.zeros(100, dtype=torch.int64)}, path)
    return Request(CELL, 1, 0, path, torch.get_num_threads(), 60, EFFORT, "the command")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_only_memory_is_out_of_memory(error: BaseException, verdict: bool) -> None:
    assert is_out_of_memory(error) is verdict


def test_running_out_of_gpu_memory_is_a_row(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    def build(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB.\nSee documentation")

    monkeypatch.setattr(trial, "build_task", build)
    row = run_trial(request_)
    assert (row.status, row.reason) == ("oom", "CUDA out of memory. Tried to allocate 8.00 GiB.")
    assert row.step_time_s is None


def test_a_bug_is_no_row(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    def build(*_: Any) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(trial, "build_task", build)
    with pytest.raises(RuntimeError, match="shapes"):
        run_trial(request_)


def test_an_error_without_words_is_named(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    def build(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(trial, "build_task", build)
    row = run_trial(request_)
    assert (row.status, row.reason) == ("oom", "MemoryError")


def test_the_time_limit_reaches_the_building_of_a_model(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    def build(*_: Any) -> None:
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(trial, "build_task", build)
    row = run_trial(replace(request_, time_limit_s=0.05))
    assert (row.status, row.parameters) == ("timeout", 22)


def test_every_block_waits_for_the_device(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    waited: list[bool] = []
    device = OpenDevice(torch.device("cpu"), lambda: waited.append(True))
    monkeypatch.setattr(trial, "open_device", lambda _: device)
    row = run_trial(request_)
    assert row.samples_s is not None
    assert len(waited) >= 2 * (1 + len(row.samples_s))


def test_the_weights_depend_on_seed_and_trial(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    weights: list[float] = []

    def build(*arguments: Any) -> Task:
        task = build_task(*arguments)
        weights.append(next(task.model.parameters()).sum().item())
        return task

    monkeypatch.setattr(trial, "build_task", build)
    for number, seed in ((1, 7), (1, 7), (2, 7), (1, 9)):
        run_trial(replace(request_, trial=number, seed=seed))
    first, again, other_trial, other_seed = weights
    assert first == again
    assert len({first, other_trial, other_seed}) == 3

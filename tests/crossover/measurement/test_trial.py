from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from crossover.measurement import trial
from crossover.measurement.trial import Request, is_out_of_memory, run_trial
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


def test_trials_of_one_seed_start_from_different_weights(monkeypatch: pytest.MonkeyPatch, request_: Request) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    for number in (1, 2):
        run_trial(Request(CELL, number, 7, request_.dataset, request_.threads, 60, EFFORT, ""))
    assert seeds == [8, 9]

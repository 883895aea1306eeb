"""Steps that copy their batch from host memory and their results back: the order of operations, on a fake GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from crossover.config.models import read_model
from crossover.config.studies import Cell
from crossover.config.words import COPYING
from crossover.errors import UnsupportedError
from crossover.measurement import workloads
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task, copy_each_step
from crossover.measurement.workloads import build_task
from tiny_tasks import FP32, TinyInference, TinyTraining, cell_of, linear

GPU = torch.device("cuda", 0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record pinning and copies; a copy to the fake GPU stays in host memory."""
    log: list[str] = []
    to = torch.Tensor.to

    def noted(tensor: torch.Tensor, *target: Any, **options: Any) -> torch.Tensor:
        if target == (GPU,):
            log.append(f"in {to(tensor, torch.float64).sum():g}{' without waiting' * bool(options['non_blocking'])}")
            return tensor.clone()
        if target == ("cpu",) and not options:
            log.append(f"out {to(tensor, torch.float64).sum():g}")
        return to(tensor, *target, **options)

    def pinned(tensor: torch.Tensor) -> torch.Tensor:
        log.append("pin")
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "to", noted)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pinned)
    return log


def from_host(task: Any, pinned: bool = True) -> Any:
    task.arithmetic = replace(task.arithmetic, device=GPU)
    copy_each_step(task, pinned)
    return task


@pytest.mark.parametrize(("pinned", "how"), [(True, " without waiting"), (False, "")])
def test_a_training_copies_its_batch_before_a_step_and_its_loss_after_it(
    log: list[str], pinned: bool, how: str
) -> None:
    task = TinyTraining(linear(3.0), [torch.tensor([[2.0], [4.0]]), torch.tensor([[10.0]])])
    task.events = log
    from_host(task, pinned)
    assert log == [*["pin"] * (2 * pinned), "inputs"]
    log.clear()
    task.step()
    # The loss is 3 times the mean of 2 and 4; its gradient, 3, leaves a weight of 0.
    assert log == ["inputs", f"in 6{how}", "forward", "observe 1", "out 9", "end"]
    log.clear()
    task.step()
    assert log == ["inputs", f"in 10{how}", "forward", "observe 1", "out 0", "end"]
    assert task.model.weight.item() == -10


def test_an_inference_copies_all_outputs_back_once(log: list[str]) -> None:
    task = from_host(TinyInference(linear(3.0), torch.tensor([[2.0], [5.0]])))
    log.clear()
    task.step()
    task.step()
    assert log == ["in 7 without waiting", "out 21"] * 2
    assert [outputs.flatten().tolist() for outputs in task.seen] == [[6, 15]] * 2
    task.bring_back()
    assert log[4:] == []
    assert (task.on_device, [tensor.flatten().tolist() for tensor in task.resident]) == ((), [[2, 5]])


def test_a_cuda_graphs_batch_is_copied_from_the_host_and_its_results_are_copied_back(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = from_host(TinyInference(linear(3.0), torch.tensor([[2.0]])), pinned=True)

    class Graph:
        def __init__(self, buffer: torch.Tensor, output: torch.Tensor) -> None:
            self.buffer, self.output = buffer, output

        def replay(self) -> None:
            log.append("replay")
            self.output.copy_(3 * self.buffer)

    def capture(task: Task, buffers: Any) -> Graph:
        task.run(*buffers)
        return Graph(buffers[0], task.seen[-1])

    monkeypatch.setattr("crossover.measurement.step.execution.capture", capture)
    ready = prepare(task, "cuda-graph")
    task.resident[0].fill_(4.0)
    task.run(torch.tensor([[100.0]]))  # an eager step of a check
    log.clear()
    copy = torch.Tensor.copy_
    monkeypatch.setattr(
        torch.Tensor,
        "copy_",
        lambda to, source, **options: (log.append(f"buffer {source.sum():g} {options}"), copy(to, source))[1],
    )
    ready.step()
    # The host's batch, 4, is copied directly into the graph's buffer; the replay calls `copy_` without options.
    assert log == ["buffer 4 {'non_blocking': True}", "replay", "buffer 12 {}", "out 12"]


@pytest.mark.parametrize(
    ("protocol", "device", "pinned"),
    [
        ("from_host", "meta", [True]),
        ("from_pageable", "meta", [False]),
        ("resident", "meta", []),
        *[(name, "cpu", []) for name in COPYING],
    ],
)
def test_only_an_accelerator_copies(
    monkeypatch: pytest.MonkeyPatch, protocol: str, device: str, pinned: list[bool]
) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(workloads, "copy_each_step", lambda _task, pinned: calls.append(pinned))
    data = {"features": torch.zeros(4, 2), "labels": torch.zeros(4, dtype=torch.int64)}
    build_task(cell_of("disc_mlp", 2, protocol=protocol), data, Arithmetic(torch.device(device)))
    assert calls == pinned


def test_a_user_step_without_a_loss_to_copy_and_sparse_batches_to_pin_are_unsupported(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(
        "import torch\nfrom torch import nn\nfrom crossover import Step\n"
        "def build(size, batch_size):\n"
        "    return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), run=print)\n"
    )
    model = read_model(f"{tmp_path / 'served.py'}:build", tmp_path, "here")
    cell = Cell("s", "model", "from_host", 4, "fp32", "eager", 8, "cpu", model=model)
    with pytest.raises(UnsupportedError, match="its own `run` returns no loss, which protocol from_host copies"):
        build_task(cell, {}, FP32)
    sparse = TinyInference(linear(1.0), torch.ones(1, 1).to_sparse())
    with pytest.raises(UnsupportedError, match="from_host pins dense tensors only; use from_pageable"):
        from_host(sparse)


def test_a_workload_that_makes_its_batches_on_the_device_is_unsupported() -> None:
    task = TinyInference(linear(1.0), torch.ones(1, 1))
    task.next_inputs = lambda: (torch.ones(1, 1, device="meta"),)
    with pytest.raises(UnsupportedError, match="makes its batches on the device"):
        from_host(task, pinned=False)

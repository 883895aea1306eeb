"""What a timed loop calls: per step, no more than a plain loop of the same work; contexts once a block."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.config.models import read_model
from crossover.config.studies import Cell
from crossover.config.words import PRECISIONS
from crossover.errors import UserError
from crossover.measurement.clock import timing
from crossover.measurement.clock.timing import Step, Stopwatch, time_block
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_task
from tiny_tasks import CPU, TinyInference, TinyTraining, linear

HEAD = """
import torch
from torch import nn
from torch.utils.data import TensorDataset
from crossover import Step
"""
INPUTS = torch.ones(4, 3)
VALUES, LABELS = torch.ones(4, 2), torch.ones(4, dtype=torch.long)
ABSOLUTE = nn.L1Loss()

Build = Callable[..., Any]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build the task of a user's function `build`, whose text is given."""

    def make(text: str, mode: str = "train", precision: str = "fp32", protocol: str = "resident") -> Task:
        file = tmp_path / f"timed{len(list(tmp_path.iterdir()))}.py"
        file.write_text(HEAD + dedent(text))
        model = read_model(f"{file}:build", tmp_path, "here")
        if not model.is_function:
            model = replace(model, mode=mode)
        cell = Cell("s", "model", protocol, 4, precision, "eager", 2, "cpu", model=model)
        return build_task(cell, {}, arithmetic_of(precision, CPU))

    return make


def calls_in(act: Callable[[], object]) -> int:
    """The number of functions, in Python and in C, that are called within `act`."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()  # otherwise finalizers of other objects would count
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def calls_per_step(step: Step, around: Callable[[], Any]) -> float:
    """Calls that each further step adds to a timed block."""
    watch = Stopwatch(synchronise=lambda: None, around=around)
    time_block(step, 3, watch)
    few, many = (calls_in(lambda steps=steps: time_block(step, steps, watch)) for steps in (10, 30))
    return (many - few) / 20


@pytest.fixture
def added_calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[Task, Step], float]:
    """Calls per step of a task's timed loop beyond those of a plain step."""
    monkeypatch.setattr(timing, "collect_if_due", lambda: None)

    def count(task: Task, plain: Step) -> float:
        task.step()
        execution = prepare(task, "eager")
        step = execution.timed_step()
        return calls_per_step(step, execution.around) - calls_per_step(plain, task.around)

    return count


def test_the_loop_over_a_function_is_a_plain_loop(build: Build, added_calls: Callable[[Task, Step], float]) -> None:
    task = build("def build(n, device):\n    return lambda: None")
    assert added_calls(task, lambda: None) == 0
    task = build("def build(n, device):\n    return Step(run=lambda: sum([n]), samples=lambda: 7)")
    assert added_calls(task, lambda: sum([2])) == 0
    assert (task.samples, task.samples_taken) == (7, None)


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        ("nn.Linear(3, 2)", "torch.ones(4, 3)"),
        ("nn.Bilinear(3, 3, 2)", "(torch.ones(4, 3), torch.ones(4, 3))"),
        ("nn.Linear(3, 2)", "{'input': torch.ones(4, 3)}"),
    ],
)
def test_the_loop_over_an_inference_is_a_plain_loop(
    build: Build, added_calls: Callable[[Task, Step], float], model: str, inputs: str, precision: str
) -> None:
    task = build(f"def build(size, batch_size):\n    return {model}, {inputs}", mode="infer", precision=precision)
    (values, _), net = task.resident_batch, task.model
    arguments, names = (values if isinstance(values, tuple) else (values,)), {}
    if isinstance(values, dict):
        arguments, names = (), values

    def plain() -> None:
        net(*arguments, **names)

    def under_autocast() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            net(*arguments, **names)

    assert added_calls(task, plain if precision == "fp32" else under_autocast) <= 0
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("targets", "loss", "loss_of"),
    [
        ("torch.ones(4, 2)", None, lambda output: functional.mse_loss(output, VALUES)),
        ("torch.ones(4, dtype=torch.long)", None, lambda output: functional.cross_entropy(output, LABELS)),
        ("torch.ones(4, 2)", "nn.L1Loss()", lambda output: ABSOLUTE(output, VALUES)),
    ],
)
def test_the_loop_over_a_training_step_is_a_plain_loop(
    build: Build, added_calls: Callable[[Task, Step], float], targets: str, loss: str | None, loss_of: Any
) -> None:
    parts = f"model=nn.Linear(3, 2), inputs=torch.ones(4, 3), targets={targets}, loss={loss}"
    task = build(f"def build(size, batch_size):\n    return Step({parts})")
    net, optimizer = task.model, task.optimizer

    def plain() -> None:
        loss_of(net(INPUTS)).backward()
        optimizer.step()
        optimizer.zero_grad()

    assert added_calls(task, plain) <= 0


def test_the_loop_over_a_users_own_step_is_a_plain_loop(
    build: Build, added_calls: Callable[[Task, Step], float]
) -> None:
    task = build(
        """
        def build(size, batch_size):
            return Step(model=nn.Linear(3, 2), inputs=torch.ones(4, 3), run=lambda *parts: parts[0](parts[1]))
        """
    )
    own = lambda *parts: parts[0](parts[1])  # noqa: E731
    net, inputs, optimizer = task.model, task.resident_batch[0], task.optimizer
    assert added_calls(task, lambda: own(net, inputs, None, optimizer)) == -1  # the plain step is a function more


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_loader_s_batches_cost_few_calls_more_than_the_loader(
    build: Build, added_calls: Callable[[Task, Step], float], mode: str
) -> None:
    task = build(
        """
        def build(size, batch_size):
            return nn.Linear(3, 2), TensorDataset(torch.ones(4000, 3), torch.ones(4000, 2))
        """,
        mode=mode,
        protocol="loaded",
    )
    net, batches = task.model, task.batches

    def plain() -> None:
        inputs, targets = (tensor.to(CPU, torch.float32) for tensor in next(batches)[0:2])
        loss = functional.mse_loss(net(inputs), targets) if mode == "train" else net(inputs)
        if mode == "train":
            loss.backward()
            task.optimizer.step()
            task.optimizer.zero_grad()

    assert added_calls(task, plain) <= 35  # to split, count and place a batch; the loader itself calls 70
    assert task.samples_taken == 4 * (1 + 3 + 10 + 30)


@pytest.mark.parametrize(("mode", "parts"), [("infer", 1), ("train", 2)])
def test_an_inference_reads_no_targets(build: Build, mode: str, parts: int) -> None:
    task = build("def build(size, batch_size): return nn.Linear(3, 2), torch.ones(4, 3), torch.ones(4, 2)", mode=mode)
    assert len(task.part_read(task.next_inputs())) == parts


def test_an_error_within_a_timed_loop_names_the_user_s_file(build: Build) -> None:
    task = build(
        """
        calls = []
        def build(n, device):
            def step():
                calls.append(n)
                if len(calls) > 3:
                    raise ValueError("used up")
            return step
        """
    )
    task.step()
    step = task.timed_step()
    with pytest.raises(UserError, match=r"timed0.py: line \d+: its step fails: ValueError: used up"):
        time_block(step, 9, Stopwatch(synchronise=lambda: None, around=task.around))


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "tf32"])
def test_a_timed_training_step_does_what_the_step_does(precision: str) -> None:
    tasks = [TinyTraining(linear(3.0), [torch.ones(4, 1)], arithmetic_of(precision, CPU)) for _ in range(2)]
    for task, ready in zip(tasks, (tasks[0].step, tasks[1].timed_step()), strict=True):
        with task.around():
            ready()
            ready()
    assert tasks[0].events == tasks[1].events == ["inputs", "forward", "observe 1", "end"] * 2
    assert tasks[0].model.weight.item() == tasks[1].model.weight.item() < 3


def test_a_timed_inference_observes_its_results() -> None:
    task = TinyInference(linear(3.0), torch.ones(1, 1))
    with task.around():
        task.timed_step()()
    assert [outputs.item() for outputs in task.seen] == [3]

"""Timed steps against eager ones: a graph is wrong if and only if its results depend on frozen state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.step.execution import Execution, observed
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import CheckResult, Task
from crossover.measurement.step.timed_check import State, compare_with_eager
from tiny_tasks import FP32, Applied, TinyInference, TinyTraining, squared


class Graph:
    """A fake CUDA graph, which freezes a model's Python state as it was at the capture."""

    def __init__(self, task: Task, model: Any, wrong: Callable[[], None] = lambda: None) -> None:
        self.task, self.model, self.wrong = task, model, wrong
        with observed(task) as self.results:
            for _ in range(4):  # warm-up and capture
                task.run(*task.next_inputs())
        self.frozen = self._state()

    def _state(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, list) else v for name, v in vars(self.model).items() if name in FROZEN}

    def replay(self, *inputs: Any) -> None:
        live = self._state()
        vars(self.model).update({name: list(v) if isinstance(v, list) else v for name, v in self.frozen.items()})
        with observed(self.task) as results:
            self.task.run(*inputs)
        self.results[:] = results
        self.wrong()
        vars(self.model).update(live)

    def answer(self) -> CheckResult:
        ready = Execution(lambda: None, self.replay, results=lambda: self.results)
        return compare_with_eager(self.task, ready, "fp32")


FROZEN = ("steps", "seen", "share")


class Stateful(nn.Module):
    def __init__(self, factor: Callable[[Any], float]) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.factor = factor
        self.steps = 0
        self.seen: list[float] = []
        self.share = 1.0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        self.seen.append(1.0)
        self.share *= 0.9
        outputs: torch.Tensor = self.layer(inputs)
        return outputs * self.factor(self)


RULES: dict[str, Callable[[Any], float]] = {
    "a counter": lambda m: m.steps,
    "every fifth step": lambda m: 1 + (m.steps % 5 == 0),
    "a schedule": lambda m: m.share,
}


def training(model: nn.Module, arithmetic: Arithmetic = FP32) -> TinyTraining:
    torch.manual_seed(0)
    return TinyTraining(model, [torch.randn(8, 4)], arithmetic, squared, learning_rate=0.01)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_graph_is_wrong_if_results_depend_on_frozen_state(rule: Callable[[Any], float], mode: str) -> None:
    model = Stateful(rule)
    task = training(model) if mode == "train" else TinyInference(model, torch.randn(8, 4))
    assert "keeps state in Python" in str(Graph(task, model).answer().wrong)


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_graph_passes_if_nothing_depends_on_frozen_state(mode: str) -> None:
    model = Stateful(lambda _: 2.0)
    task = training(model) if mode == "train" else TinyInference(model, torch.randn(8, 4))
    answer = Graph(task, model).answer()
    assert answer.wrong is answer.unchecked is None
    assert answer.errors["result"] == 0
    assert answer.errors["update"] == 0


def scaled(weight: torch.Tensor) -> None:
    with torch.no_grad():
        weight.mul_(1.001)


def test_a_replay_that_updates_the_weights_differently_is_wrong() -> None:
    model = Stateful(lambda _: 1.0)
    task = training(model)
    answer = Graph(task, model, lambda: scaled(model.layer.weight)).answer()
    assert "the step's result is off" in str(answer.wrong) or "the step's update is off" in str(answer.wrong)
    assert answer.errors["update"] > 0.01


def test_steps_that_differ_from_run_to_run_are_unchecked() -> None:
    """Replays differ too, so nothing is frozen."""
    model = Stateful(lambda _: 1.0)
    task = training(model)
    answer = Graph(task, model, lambda: draw(model.layer.weight)).answer()
    assert answer.wrong is None
    assert "two runs of the step differ" in str(answer.unchecked)


GENERATOR = random.Random(3)


def draw(weight: torch.Tensor) -> None:
    with torch.no_grad():
        weight.mul_(GENERATOR.uniform(0.5, 2))


def dropped() -> nn.Module:
    return Applied(lambda model, inputs: functional.dropout(model.layer(inputs), 0.5, True), layer=nn.Linear(4, 4))


def test_both_sides_draw_the_same_numbers_or_are_unchecked() -> None:
    model = dropped()
    assert Graph(training(model), model).answer().wrong is None
    assert Graph(training(model), model).answer().unchecked is None
    other = Graph(training(model), model, lambda: torch.manual_seed(7) and None)  # the next step draws other numbers
    assert other.answer().unchecked == "timed and eager steps draw different random numbers"


def test_weights_buffers_and_optimizer_state_are_restored() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    task = training(model)
    task.optimizer = torch.optim.Adam(model.parameters())
    task.step()
    before = [tensor.clone() for tensor in State(task).before]
    assert len(before) == 4 + 3 + 3 * 4  # parameters, buffers, and a count and two moments for each parameter
    compare_with_eager(task, Execution(task.step, task.run), "fp32")
    assert all(torch.equal(now, then) for now, then in zip(State(task).before, before, strict=True))
    adam_state: Any = task.optimizer.state[model[0].weight]
    assert adam_state["step"] == 1


def test_a_comparison_that_fails_is_unchecked() -> None:
    def fails(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    answer = compare_with_eager(training(model := dropped()), Execution(lambda: None, fails), "fp32")
    assert answer == CheckResult(unchecked="memory ran out in the comparison with eager steps")
    assert not any(torch.isnan(parameter).any() for parameter in model.parameters())

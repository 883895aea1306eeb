"""Check that replays of a CUDA graph, or compiled steps, compute the same as the eager step.

Both sides run some steps on one batch from the same weights, buffers and optimizer state. A model with state in Python
(a counter, a schedule, a growing list) changes with each eager step, but not with replays of a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from crossover.measurement.step.check_modes import RoundingNoise
from crossover.measurement.step.correctness import (
    FACTOR,
    ROUNDING,
    errors_between,
    judge,
    without_dropout,
)
from crossover.measurement.step.endings import first_line, is_out_of_memory
from crossover.measurement.step.execution import Execution, observed
from crossover.measurement.step.tasks import Answer, Errors, Task

STEPS = 4
"""Number of steps on each side, enough to show changes every second, third or fifth step."""

FROZEN = "a CUDA graph repeats what it recorded: the step keeps state in Python, or does other work on the host"
COMPILED = "the compiled step computes something other than the eager one"


class State:
    """The state that a step changes, copied to the host: weights, gradients, buffers, optimizer state."""

    def __init__(self, task: Task) -> None:
        model: nn.Module = task.model
        optimizer: dict[Any, Any] = getattr(task.optimizer, "state", {})
        self.moving: dict[str, list[torch.Tensor]] = {
            "update": list(model.parameters()),
            "buffers": [buffer for buffer in model.buffers() if buffer.is_floating_point() or buffer.is_complex()],
        }
        leaves: list[Any] = [*model.parameters(), *model.buffers(), *tree_leaves(list(optimizer.values()))]
        leaves += [parameter.grad for parameter in model.parameters()]
        self.before = {leaf: leaf.detach().to("cpu", copy=True) for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self.optimizer_states = [(state, dict(state)) for state in optimizer.values() if isinstance(state, dict)]

    def moved(self) -> dict[str, list[torch.Tensor]]:
        """The changes of weights (`update`) and buffers since this state."""
        return {
            name: [tensor.detach().to("cpu", torch.float64) - self.before[tensor] for tensor in tensors]
            for name, tensors in self.moving.items()
        }

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, value in self.before.items():
                tensor.copy_(value)
        for state, values in self.optimizer_states:
            state.update({name: value for name, value in values.items() if not isinstance(value, torch.Tensor)})


@dataclass(frozen=True)
class Course:
    """Results of some steps, and the changes of weights and buffers, on the host."""

    values: dict[str, list[torch.Tensor]]
    drew: bool
    """Whether they drew random numbers."""


def compare_with_eager(task: Task, execution: Execution, precision: str) -> Answer:
    """Compare timed steps with eager ones of the same precision and device; leaves the task's state as it was."""
    is_graph = execution.results is not None
    try:
        # A graph draws the same random numbers as the eager step, but compiled code does not, so it is compared
        # without dropout.
        with nullcontext() if is_graph else without_dropout(task.model):
            return _compare(task, execution, precision, is_graph)
    except Exception as error:  # each has run before, but not with the other in memory
        what = "memory ran out" if is_out_of_memory(error) else f"{type(error).__name__}: {first_line(error)}"
        return Answer(unchecked=f"the comparison with eager steps failed: {what}")


def _compare(task: Task, execution: Execution, precision: str, is_graph: bool) -> Answer:
    inputs = task.next_inputs()
    state = State(task)

    def eager(noise: AbstractContextManager[Any] | None = None) -> Course:
        stance = nullcontext() if is_graph else torch.compiler.set_stance("force_eager")
        with stance, observed(task) as results, noise or nullcontext():
            return _run(lambda: task.run(*inputs), lambda: results, state, task.arithmetic.device)

    def timed() -> Course:
        with observed(task) as results:
            read = execution.results or (lambda: results)
            return _run(lambda: execution.run(*inputs), read, state, task.arithmetic.device)

    exact, course = eager(), timed()
    errors = errors_between(course.values, exact.values)
    if not errors:
        return Answer(unchecked="the eager steps return no finite numbers to compare")

    @cache
    def repeats() -> bool:
        return all(
            error <= FACTOR * ROUNDING[precision] for error in errors_between(eager().values, exact.values).values()
        )

    def moved(share: float, seed: int) -> Errors:
        # If eager steps differ from run to run, for example with a counter, noise shows no effect.
        noise = RoundingNoise(share, seed)
        return errors_between(eager(noise).values, exact.values) if repeats() else dict.fromkeys(errors, 0.0)

    answer = judge(errors, moved, lambda: errors_between(timed().values, course.values), precision)
    if answer.wrong is None:
        return answer
    if exact.drew:
        return Answer(errors, unchecked="timed and eager steps draw different random numbers")
    return Answer(errors, wrong=f"{answer.wrong.partition(';')[0]}; {FROZEN if is_graph else COMPILED}")


def _run(
    step: Callable[[], None], results: Callable[[], list[torch.Tensor]], state: State, device: torch.device
) -> Course:
    """Run the steps from the same state and random seed, and restore the state."""
    outputs: list[torch.Tensor] = []
    try:
        torch.manual_seed(0)
        before = _generators(device)
        for _ in range(STEPS):
            step()
            outputs += [result.to("cpu", copy=True) for result in results()]
        return Course({"result": outputs, **state.moved()}, _generators(device) != before)
    finally:
        state.restore()


def _generators(device: torch.device) -> bytes:
    """The states of the random generators that a step on the device uses."""
    states = [torch.get_rng_state()] + ([torch.cuda.get_rng_state(device)] if torch.cuda.is_initialized() else [])
    return b"".join(state.numpy().tobytes() for state in states)

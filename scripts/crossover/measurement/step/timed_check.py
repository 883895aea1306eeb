"""Check that replays of a CUDA graph, or compiled steps, compute the same as eager steps.

Both sides run some steps on one batch from the same weights, buffers and optimizer state. Eager steps change state that
a model keeps in Python (a counter, a schedule, a growing list), but replays of a graph do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from crossover.measurement.modules import buffers_of, parameters_of, tensors_in
from crossover.measurement.step.check_modes import RoundingNoise
from crossover.measurement.step.correctness import (
    NOISE_MARGIN,
    ROUNDING,
    Values,
    errors_between,
    judge,
    without_dropout,
)
from crossover.measurement.step.endings import is_out_of_memory
from crossover.measurement.step.execution import Execution, observed
from crossover.measurement.step.tasks import CheckResult, Errors, Task

STEPS = 4
"""Number of steps, enough to reveal most state that changes every few steps."""

FROZEN = "a CUDA graph only repeats what it recorded, but the step keeps state in Python or does other work on the host"
COMPILED = "the compiled step computes something other than the eager one"


class State:
    """A copy, on the host, of what a step changes: weights, gradients, buffers, optimizer state."""

    def __init__(self, task: Task) -> None:
        model: nn.Module = task.model
        optimizer: dict[Any, Any] = getattr(task.optimizer, "state", {})
        self.compared: dict[str, list[torch.Tensor]] = {
            "update": list(parameters_of(model)),
            "buffers": [buffer for buffer in buffers_of(model) if buffer.is_floating_point() or buffer.is_complex()],
        }
        leaves: list[Any] = [*tensors_in(model), *tree_leaves(list(optimizer.values()))]
        leaves += [parameter.grad for parameter in parameters_of(model)]
        self.before = {leaf: leaf.detach().to("cpu", copy=True) for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self.optimizer_states = [(state, dict(state)) for state in optimizer.values() if isinstance(state, dict)]

    def changes(self) -> dict[str, list[torch.Tensor]]:
        return {
            name: [tensor.detach().to("cpu", torch.float64) - self.before[tensor] for tensor in tensors]
            for name, tensors in self.compared.items()
        }

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, value in self.before.items():
                tensor.copy_(value)
        for state, values in self.optimizer_states:
            state.update({name: value for name, value in values.items() if not isinstance(value, torch.Tensor)})


class StepResults(NamedTuple):
    """The outcome of some steps, on the host."""

    values: Values
    """The steps' results (`result`), and the changes of weights (`update`) and buffers."""
    drew: bool


def compare_with_eager(task: Task, execution: Execution, precision: str) -> CheckResult:
    """Compare timed steps with eager ones in the same precision and on the same device; restores the task's state."""
    is_graph = execution.results is not None
    try:
        # Compiled code is compared without dropout, since it draws other random numbers than eager steps. A graph draws
        # the same numbers.
        with nullcontext() if is_graph else without_dropout(task.model):
            return _compare(task, execution, precision, is_graph)
    except Exception as error:  # from the comparison, since timed steps have run before
        if is_out_of_memory(error):
            return CheckResult(unchecked="memory ran out in the comparison with eager steps")
        return CheckResult(
            unchecked="the steps cannot be compared with eager ones: one that starts again from earlier weights fails"
        )


def _compare(task: Task, execution: Execution, precision: str, is_graph: bool) -> CheckResult:
    inputs = task.next_inputs()
    state = State(task)

    def run_eager(noise: AbstractContextManager[Any] | None = None) -> StepResults:
        stance = nullcontext() if is_graph else torch.compiler.set_stance("force_eager")
        with stance, observed(task) as results, noise or nullcontext():
            return _run(lambda: task.run(*inputs), lambda: results, state, task.arithmetic.device)

    def run_timed() -> StepResults:
        with observed(task) as results:
            read = execution.results or (lambda: results)
            return _run(lambda: execution.run(*inputs), read, state, task.arithmetic.device)

    eager, timed = run_eager(), run_timed()
    errors = errors_between(timed.values, eager.values)
    if not errors:
        return CheckResult(unchecked="the eager steps return no finite numbers to compare")

    @cache
    def is_repeatable() -> bool:
        differences = errors_between(run_eager().values, eager.values).values()
        return all(difference <= NOISE_MARGIN * ROUNDING[precision] for difference in differences)

    def noise_effect(share: float, seed: int) -> Errors:
        # If eager steps differ from run to run, for example with a counter, the effect of noise cannot be measured.
        if not is_repeatable():
            return dict.fromkeys(errors, 0.0)
        return errors_between(run_eager(RoundingNoise(share, seed)).values, eager.values)

    answer = judge(errors, noise_effect, lambda: errors_between(run_timed().values, timed.values), precision)
    if answer.wrong is None:
        return answer
    if eager.drew:
        return CheckResult(errors, unchecked="timed and eager steps draw different random numbers")
    return CheckResult(errors, wrong=f"{answer.wrong.partition(';')[0]}; {FROZEN if is_graph else COMPILED}")


def _run(
    step: Callable[[], None], results: Callable[[], list[torch.Tensor]], state: State, device: torch.device
) -> StepResults:
    outputs: list[torch.Tensor] = []
    try:
        torch.manual_seed(0)
        before = _generators(device)
        for _ in range(STEPS):
            step()
            outputs += [result.to("cpu", copy=True) for result in results()]
        return StepResults({"result": outputs, **state.changes()}, _generators(device) != before)
    finally:
        state.restore()


def _generators(device: torch.device) -> bytes:
    states = [torch.get_rng_state()] + ([torch.cuda.get_rng_state(device)] if torch.cuda.is_initialized() else [])
    return b"".join(state.numpy().tobytes() for state in states)

"""Whether a fast answer is a right one: a step's result against the same computation in double precision on the CPU.

The same fresh weights and the same rows of a batch go through the cell's model, in its precision and execution, and
through a double-precision copy. Compared are the first result of the forward pass (a training's loss, an inference's
outputs) and, where the step has a backward pass, the gradient of all parameters as one vector. An inference's model
gets the whole batch, as the step does: what was compiled or chosen for its shape is what was timed. Rows spread over
the batch are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward

from crossover.machine.kernel import available_bytes
from crossover.measurement.step.endings import is_out_of_memory
from crossover.measurement.step.judgement import Answer, Errors, judge
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.rounding_noise import RoundingNoise
from crossover.measurement.step.same_draws import SameDraws
from crossover.measurement.step.tasks import GradientTask, Task

ATTEMPTS = 2
"""With weights and rows of their own: wrong is only what is wrong each time."""

REPEATS = 1e-9
"""Relative difference of two runs in double precision: sums may be added up in another order, nothing more."""

REFERENCE = Arithmetic(torch.device("cpu"), torch.float64)

Values = dict[str, list[torch.Tensor]]


class UncheckedError(Exception):
    """Nothing can be compared."""


def compare_with_reference(
    task: Task, fresh_model: Callable[[], nn.Module], precision: str, execution: str = "eager"
) -> Answer:
    """Compare one batch of a task with double precision; leaves fresh weights in the task's model."""
    if task.not_comparable is not None:
        return Answer(unchecked=f"the workload leaves the check out: {task.not_comparable}")
    answers = []
    try:
        for _ in range(ATTEMPTS):
            answers.append(_compare(task, fresh_model(), precision, execution))
            if answers[-1].wrong is answers[-1].unchecked is None:
                return answers[-1]
    except UncheckedError as error:
        return Answer(unchecked=str(error))
    except Exception as error:  # the step itself has run: its own errors are known by now
        what = "memory ran out" if is_out_of_memory(error) else f"{type(error).__name__}: {error}".partition("\n")[0]
        return Answer(unchecked=f"the comparison with double precision failed: {what}")
    return next((answer for answer in answers if answer.wrong is None), answers[-1])


def _compare(task: Task, fresh: nn.Module, precision: str, execution: str) -> Answer:
    """One attempt; raises UncheckedError where nothing can be compared."""
    weights_bytes = sum(tensor.numel() * 8 for tensor in fresh.parameters())
    if 4 * weights_bytes > available_bytes():
        raise UncheckedError("the weights in double precision do not fit into the host's free memory")
    task.model.load_state_dict(fresh.state_dict())
    batch = task.next_inputs()
    rows = tuple(_checked(task, tensor) for tensor in batch)
    # A loss and its gradient are means over the batch, so both sides need the same rows; outputs are a row's own.
    inputs = rows if isinstance(task, GradientTask) else batch
    placed = tuple(map(REFERENCE.place, rows))
    reference = fresh.to(torch.float64).train(task.model.training)
    draws = nullcontext() if execution == "compile" else SameDraws()  # which compiled code does not heed

    def ours() -> Values:
        return _evaluate(task, task.model, task.arithmetic, inputs, draws)

    def theirs(*noise: RoundingNoise) -> Values:
        return _evaluate(task, reference, REFERENCE, placed, draws, *noise)

    @cache
    def check_reference() -> None:
        if any((error or 0) > REPEATS for error in _errors(theirs(), exact).values()):
            raise UncheckedError("two runs differ in double precision: the model draws numbers of its own")

    def moved(share: float, seed: int) -> Errors:
        check_reference()  # or what is random in the model would count as what rounding does
        return _errors(theirs(RoundingNoise(share, seed)), exact)

    with _without_dropout(task.model), _without_dropout(reference):
        before = torch.get_rng_state()
        exact = theirs()
        unseen = not torch.equal(torch.get_rng_state(), before)
        if unseen or (getattr(draws, "drew", False) and not isinstance(task, GradientTask)):
            raise UncheckedError("the model draws random numbers that the reference cannot draw as well")
        if not all(bool(torch.isfinite(tensor).all()) for tensors in exact.values() for tensor in tensors):
            raise UncheckedError("in double precision, too, the answer is not finite")
        found = ours()
        return judge(_errors(found, exact), moved, lambda: _errors(ours(), found), precision)


def checked_rows(rows: int, most: int) -> torch.Tensor:
    """Indices of up to `most` rows, spread evenly over so many: the first, the last and others between them.

    A kernel's tiles divide a batch, and its rest comes last: what is wrong in one of them need not be in the first.
    """
    return torch.linspace(0, rows - 1, min(rows, most), dtype=torch.float64).round().long()


def _checked(task: Task, tensor: torch.Tensor) -> torch.Tensor:
    """The rows of a batch's tensor that are compared: an inference's spread over it, a training's first."""
    if isinstance(task, GradientTask):
        return tensor[: task.checked_rows]
    return tensor[checked_rows(len(tensor), task.checked_rows).to(tensor.device)]


def _evaluate(
    task: Task,
    model: nn.Module,
    arithmetic: Arithmetic,
    inputs: tuple[torch.Tensor, ...],
    *modes: AbstractContextManager[Any],
) -> Values:
    """The first result, of an inference the rows to compare; where the step has a backward pass, the gradients: scaled
    as the step scales them, and scaled back. Both passes run in the `modes`.

    A scale that overflows is halved, as the step would do; each try has its own forward pass, since a compiled graph
    cannot go backward twice.
    """
    training = isinstance(task, GradientTask)
    scale = arithmetic.scaler.get_scale() if training and arithmetic.scaler else 1.0
    while True:
        with _same_buffers(model), ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode)
            with torch.set_grad_enabled(training), arithmetic.autocast():
                result = task.forward(model, *inputs)[0]
            if not training:
                # A copy, lest the whole batch's stay beside the reference.
                return {"result": [_checked(task, result)]}
            scaled = _gradients(result * scale, model)
        if scale <= 1 or all(bool(torch.isfinite(gradient).all()) for gradient in scaled):
            # Not divided by 1, which would hold all gradients twice.
            gradients = scaled if scale == 1 else [gradient / scale for gradient in scaled]
            return {"result": [result.detach()], "gradient": gradients}
        scale /= 2


@contextmanager
def _same_buffers(model: nn.Module) -> Iterator[None]:
    """Put the buffers back that a forward pass changes, so that each begins with the same."""
    buffers = list(model.buffers())
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, values in zip(buffers, before, strict=True):
                buffer.copy_(values)


def _gradients(loss: torch.Tensor, model: nn.Module) -> list[torch.Tensor]:
    """Gradients of all parameters; zeros for one that the loss does not depend on."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # What torch.autograd.grad runs, which would leave the modes, and layers that are checkpointed draw again in here.
    found = _engine_run_backward(
        (loss,), (torch.ones_like(loss),), False, False, tuple(parameters), True, accumulate_grad=False
    )
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for gradient, parameter in zip(found, parameters, strict=True)
    ]


def _errors(ours: Values, exact: Values) -> Errors:
    """The relative error of each that has values."""
    found = {name: relative_error(values, exact[name]) for name, values in ours.items()}
    return {name: error for name, error in found.items() if error is not None}


def relative_error(ours: Iterable[torch.Tensor], exact: Iterable[torch.Tensor]) -> float | None:
    """Euclidean norm of the difference over that of the exact values; None without any values, NaN where one of them is
    not finite."""
    difference = norm = 0.0
    count = 0
    for mine, theirs in zip(ours, exact, strict=True):
        reference = theirs.to("cpu", torch.float64)
        difference += float((mine.to("cpu", torch.float64) - reference).square().sum())
        norm += float(reference.square().sum())
        count += reference.numel()
    if not count:
        return None
    if not math.isfinite(difference):
        return math.nan
    if norm == 0:
        return 0.0 if difference == 0 else math.inf
    return math.sqrt(difference / norm)


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    """Set the layers' dropout to 0, since the copies would draw different numbers: `p` of a dropout layer, `dropout` of
    attention and of recurrent layers. None is drawn in evaluation mode, and a compiled model would be compiled anew.
    """
    training = [module for module in model.modules() if module.training]
    names = [(m, "p" if isinstance(m, nn.modules.dropout._DropoutNd) else "dropout") for m in training]
    shares = [(m, name, share) for m, name in names if isinstance(share := getattr(m, name, None), float)]
    for module, name, _ in shares:
        setattr(module, name, 0.0)
    try:
        yield
    finally:
        for module, name, share in shares:
            setattr(module, name, share)

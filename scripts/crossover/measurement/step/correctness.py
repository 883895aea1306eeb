"""Whether a fast answer is a right one: a step's result against the same computation in double precision on the CPU.

Both sides start from the same fresh weights and the same rows of a batch. Compared are the first result of the forward
pass (a training's loss, an inference's outputs) and, in a step with a backward pass, the gradients of all parameters as
one vector. An inference runs the whole batch, as the timed step does, so that the same kernels run.

How large an error rounding may cause depends on the model: in fp32 the gradient of a perceptron is off by 3e-7, that of
a fresh ResNet by up to 6e-2. So an error that is larger than rounding is in any model is held against what noise after
each operation does to the exact answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward

from crossover.machine.kernel import available_bytes
from crossover.measurement.step.check_modes import RoundingNoise, SameDraws
from crossover.measurement.step.endings import is_out_of_memory
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import GradientTask, Task
from crossover.measurement.step.trees import map_tensors

ROUNDING = {
    "fp64": 2.0**-49,
    "fp32": 2.0**-20,
    "tf32": 2.0**-10,
    "amp-bf16": 2.0**-7,
    "amp-fp16": 2.0**-10,
    "bf16": 2.0**-7,
    "fp16": 2.0**-10,
}
"""Share of the noise that stands for rounding: 16 times the rounding error of one number in fp64 and fp32, whose sums
round many times, twice in the others, which sum up in fp32."""

GREATER = {"fp64": 8.0, "fp32": 8.0}
"""How much more noise leaves no doubt, by precision; 4 times in the others. Where rounding carries a value across zero
before a ReLU, its gradient goes another way: one such value of many is rare, and more noise shows its effect."""

FACTOR = 3.0
"""An error up to this many times the effect of noise is explained by it."""

DRAWS = 2
"""Times that each noise is drawn, as long as it does not explain the error."""

MOST = 0.5
"""Largest error, relative to the answer's norm, that is ever called right."""

ATTEMPTS = 2
"""Each with its own weights and rows: an answer is wrong only if it is wrong each time."""

REPEATS = 1e-9
"""Relative difference allowed between two runs in double precision: sums may be added up in another order."""

REFERENCE = Arithmetic(torch.device("cpu"), torch.float64)

Values = dict[str, list[torch.Tensor]]
Errors = dict[str, float]
"""Relative errors of `result` and `gradient` in the Euclidean norm; without what was not compared."""


@dataclass(frozen=True)
class Answer:
    """The verdict on a step's answer: right, unless one of the reasons is given."""

    errors: Errors = field(default_factory=dict)
    wrong: str | None = None
    """Why it is surely wrong."""
    unchecked: str | None = None
    """Why right and wrong cannot be told apart."""


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
    except Exception as error:  # not the step's own, since the step has run before
        what = "memory ran out" if is_out_of_memory(error) else f"{type(error).__name__}: {error}".partition("\n")[0]
        return Answer(unchecked=f"the comparison with double precision failed: {what}")
    return next((answer for answer in answers if answer.wrong is None), answers[-1])


def _compare(task: Task, fresh: nn.Module, precision: str, execution: str) -> Answer:
    """One attempt; raises UncheckedError if nothing can be compared."""
    weights_bytes = sum(tensor.numel() * 8 for tensor in fresh.parameters())
    if 4 * weights_bytes > available_bytes():
        raise UncheckedError("the weights in double precision do not fit into the host's free memory")
    task.model.load_state_dict(fresh.state_dict())
    batch = task.next_inputs()
    rows = map_tensors(partial(_checked, task), batch)
    # A loss and its gradient are means over the batch, so both sides need the same rows.
    inputs = rows if isinstance(task, GradientTask) else batch
    placed = map_tensors(REFERENCE.place, rows)
    reference = fresh.to(torch.float64).train(task.model.training)
    draws = nullcontext() if execution == "compile" else SameDraws()  # compiled code ignores the mode

    def ours() -> Values:
        return _evaluate(task, task.model, task.arithmetic, inputs, draws)

    def theirs(*noise: RoundingNoise) -> Values:
        return _evaluate(task, reference, REFERENCE, placed, draws, *noise)

    @cache
    def check_repeats() -> None:
        if any((error or 0) > REPEATS for error in _errors(theirs(), exact).values()):
            raise UncheckedError("two runs differ in double precision: the model draws numbers of its own")

    def moved(share: float, seed: int) -> Errors:
        check_repeats()  # or the model's own randomness would count as the effect of rounding
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


def judge(errors: Errors, moved: Callable[[float, int], Errors], again: Callable[[], Errors], precision: str) -> Answer:
    """Right if noise as large as rounding explains the errors, wrong if even greater noise does not.

    `moved(share, seed)` is how far noise moves the exact answer, `again()` how far two runs of the step differ.
    """
    advice = "look for what computes otherwise" if precision in GREATER else "leave this precision out if fp32 is right"
    for name, error in errors.items():
        if math.isnan(error):
            return Answer(errors, wrong=f"the step's {name} is not finite, in double precision it is; {advice}")
    share = ROUNDING[precision]
    limits = _limits(errors, moved, share)
    doubtful = [name for name, error in errors.items() if error > min(MOST, limits[name])]
    if not doubtful:
        return Answer(errors)
    if _beyond(errors, limits):
        greater = _limits(errors, moved, share * GREATER.get(precision, 4.0))
        limits = {name: max(limit, greater[name]) for name, limit in limits.items()}
    name = next(iter(_beyond(errors, limits)), doubtful[0])
    seen = f"the step's {name} is off by {errors[name]:.2g} of its norm, where rounding explains {limits[name]:.2g}"
    if errors[name] <= limits[name]:
        return Answer(errors, unchecked=f"{seen}: in {precision}, right and wrong cannot be told apart here")
    if (spread := again()[name]) > limits[name]:
        return Answer(errors, unchecked=f"{seen}, but two runs of the step differ by {spread:.2g}")
    return Answer(errors, wrong=f"{seen}; {advice}")


def _limits(errors: Errors, moved: Callable[[float, int], Errors], share: float) -> Errors:
    """The largest errors that noise explains, drawn up to DRAWS times until it explains those found."""
    limits = dict.fromkeys(errors, FACTOR * share)
    for seed in range(DRAWS):
        if not _beyond(errors, limits):
            break
        for name, error in moved(share, seed).items():
            limits[name] = math.inf if math.isnan(error) else max(limits[name], FACTOR * error)
    return limits


def _beyond(errors: Errors, limits: Errors) -> list[str]:
    return [name for name, error in errors.items() if error > limits[name]]


def _checked(task: Task, tensor: torch.Tensor) -> torch.Tensor:
    """The rows of a batch's tensor to compare: a training's first ones, an inference's spread over the batch."""
    if not tensor.dim():
        return tensor
    if isinstance(task, GradientTask):
        return tensor[: task.checked_rows]
    return tensor[checked_rows(len(tensor), task.checked_rows).to(tensor.device)]


def checked_rows(rows: int, most: int) -> torch.Tensor:
    """Indices of up to `most` rows, evenly spread from the first to the last.

    A kernel's tiles divide a batch, and the rest comes last: an error in one of them need not be in the first.
    """
    return torch.linspace(0, rows - 1, min(rows, most), dtype=torch.float64).round().long()


def _evaluate(
    task: Task,
    model: nn.Module,
    arithmetic: Arithmetic,
    inputs: tuple[Any, ...],
    *modes: AbstractContextManager[Any],
) -> Values:
    """The first result (of an inference, the rows to compare) and the gradients of a step with a backward pass.

    The loss is scaled as the step scales it, and the gradients are scaled back. A scale that overflows is halved, as
    the step would do, with a new forward pass, since a compiled graph cannot go backward twice.
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
                return {"result": [_checked(task, result)]}  # a copy, so that the whole batch's can be freed
            scaled = _gradients(result * scale, model)
        if scale <= 1 or all(bool(torch.isfinite(gradient).all()) for gradient in scaled):
            # Not divided by 1, which would hold all gradients twice.
            gradients = scaled if scale == 1 else [gradient / scale for gradient in scaled]
            return {"result": [result.detach()], "gradient": gradients}
        scale /= 2


@contextmanager
def _same_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers that a forward pass changes, so that each pass starts from the same."""
    buffers = list(model.buffers())
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, values in zip(buffers, before, strict=True):
                buffer.copy_(values)


def _gradients(loss: torch.Tensor, model: nn.Module) -> list[torch.Tensor]:
    """Gradients of all parameters; zeros for a parameter that the loss does not depend on."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # torch.autograd.grad calls this too, but leaves the modes, and checkpointed layers draw again in here.
    found = _engine_run_backward(
        (loss,), (torch.ones_like(loss),), False, False, tuple(parameters), True, accumulate_grad=False
    )
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for gradient, parameter in zip(found, parameters, strict=True)
    ]


def _errors(ours: Values, exact: Values) -> Errors:
    found = {name: relative_error(values, exact[name]) for name, values in ours.items()}
    return {name: error for name, error in found.items() if error is not None}


def relative_error(ours: Iterable[torch.Tensor], exact: Iterable[torch.Tensor]) -> float | None:
    """Euclidean norm of the difference over that of the exact values; None without values, NaN if one is not finite."""
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
    """Set the dropout of all layers in training mode to 0, since the two copies would draw different numbers.

    A model in evaluation mode drops nothing, and changing it would compile it anew.
    """
    training = [module for module in model.modules() if module.training]
    # Dropout layers call their share `p`, attention and recurrent layers `dropout`.
    names = [(m, "p" if isinstance(m, nn.modules.dropout._DropoutNd) else "dropout") for m in training]
    shares = [(m, name, share) for m, name in names if isinstance(share := getattr(m, name, None), float)]
    for module, name, _ in shares:
        setattr(module, name, 0.0)
    try:
        yield
    finally:
        for module, name, share in shares:
            setattr(module, name, share)

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
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from crossover.measurement.available_memory import available_bytes
from crossover.measurement.precision import Arithmetic
from crossover.measurement.tasks import GradientTask, Task

RESULT_TOLERANCES = {
    "fp64": 1e-9,
    "fp32": 1e-4,
    "tf32": 1e-2,
    "amp-bf16": 0.1,
    "amp-fp16": 0.02,
    "bf16": 0.1,
    "fp16": 0.02,
}
"""Largest relative error of the result. Measured on both perceptrons at all sizes, the largest were 2e-7 (fp32),
3e-4 (amp-bf16), 6e-5 (amp-fp16), 1.4e-2 (bf16) and 1.8e-3 (fp16); the rest is room for deeper models and longer sums,
of which EfficientNet-b0 takes most: 2e-6, 4e-2, 4e-3, 3e-2 and 4e-3.
"""

GRADIENT_LIMIT = 0.5
"""Largest relative error of a gradient in any precision. A gradient may be `Task.gradient_slack` times less exact than
the result (measured on the networks of linear layers: 3e-7 in fp32, up to 0.1 in bf16). TF32 in the place of fp32,
emulated on these, gave 1e-4 to 2e-2: not all of it is found here, so the switches read back vouch for that.
"""

REFERENCE = Arithmetic(torch.device("cpu"), torch.float64)


@dataclass(frozen=True)
class Errors:
    """Relative errors in the Euclidean norm; None where nothing was compared. Infinite or NaN: not a number."""

    result: float | None = None
    gradient: float | None = None

    def verdict(self, precision: str, gradient_slack: float) -> str | None:
        """Why the step's answer is wrong; None if it is right or was not compared."""
        limit = RESULT_TOLERANCES[precision]
        for name, error, allowed in (
            ("result", self.result, limit),
            ("gradient", self.gradient, min(GRADIENT_LIMIT, limit * gradient_slack)),
        ):
            if error is None or error <= allowed:
                continue
            size = f"off by {error:.2g} of its norm" if math.isfinite(error) else "not finite"
            return (
                f"the step's {name} is {size} (allowed in {precision}: {allowed:.2g}); do not use this precision here"
            )
        return None


def compare_with_reference(task: Task, fresh_model: Callable[[], nn.Module]) -> Errors:
    """Compare one batch of a task with double precision; leaves fresh weights in the task's model.

    Nothing is compared where the reference would not fit into the host's memory.
    """
    fresh = fresh_model()
    weights_bytes = sum(tensor.numel() * 8 for tensor in fresh.parameters())
    if 4 * weights_bytes > available_bytes():
        return Errors()
    task.model.load_state_dict(fresh.state_dict())
    batch = task.next_inputs()
    rows = tuple(_checked(task, tensor) for tensor in batch)
    # A loss and its gradient are means over the batch, so both sides need the same rows; outputs are a row's own.
    inputs = rows if isinstance(task, GradientTask) else batch
    reference = fresh.to(torch.float64).train(task.model.training)
    with _without_dropout(task.model), _without_dropout(reference):
        ours = _evaluate(task, task.model, task.arithmetic, inputs)
        theirs = _evaluate(task, reference, REFERENCE, tuple(map(REFERENCE.place, rows)))
    result, gradient = (relative_error(mine, exact) for mine, exact in zip(ours, theirs, strict=True))
    return Errors(result, gradient)


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
    task: Task, model: nn.Module, arithmetic: Arithmetic, inputs: tuple[torch.Tensor, ...]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The first result, of an inference the rows to compare; where the step has a backward pass, the gradients: scaled
    as the step scales them, and scaled back.

    A scale that overflows is halved, as the step would do; each try has its own forward pass, since a compiled graph
    cannot go backward twice.
    """
    training = isinstance(task, GradientTask)
    scale = arithmetic.scaler.get_scale() if training and arithmetic.scaler else 1.0
    while True:
        with torch.set_grad_enabled(training), arithmetic.autocast():
            result = task.forward(model, *inputs)[0]
        if not training:
            # A copy, lest the whole batch's stay beside the reference.
            return [_checked(task, result)], []
        scaled = _gradients(result * scale, model)
        if scale <= 1 or all(bool(torch.isfinite(gradient).all()) for gradient in scaled):
            # Not divided by 1, which would hold all gradients twice.
            return [result.detach()], scaled if scale == 1 else [gradient / scale for gradient in scaled]
        scale /= 2


def _gradients(loss: torch.Tensor, model: nn.Module) -> list[torch.Tensor]:
    """Gradients of all parameters; zeros for one that the loss does not depend on."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for gradient, parameter in zip(found, parameters, strict=True)
    ]


def relative_error(ours: Iterable[torch.Tensor], exact: Iterable[torch.Tensor]) -> float | None:
    """Euclidean norm of the difference over that of the exact values; None without any values."""
    difference = norm = 0.0
    count = 0
    for mine, theirs in zip(ours, exact, strict=True):
        reference = theirs.to("cpu", torch.float64)
        difference += float((mine.to("cpu", torch.float64) - reference).square().sum())
        norm += float(reference.square().sum())
        count += reference.numel()
    if not count:
        return None
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

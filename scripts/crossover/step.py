"""The value that a user's function may return: the step of a model, with loss and optimizer, or of a plain
function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Step:
    """A model, its inputs, and how to train it, or a plain function: `from crossover import Step`."""

    model: Any = None
    """A torch.nn.Module, on the CPU. None, and no inputs: the step is the function `run`."""
    inputs: Any = None
    """A tensor, a tuple (several arguments) or dict (keywords) of them, a list or any other object with tensors (one
    argument), or a Dataset or DataLoader that gives (inputs, targets)."""
    targets: Any = None
    """A tensor, a list or dict of them, or None; an integer tensor holds classes."""
    loss: Callable[..., Any] | None = None
    """Called with the model's output, and the targets if any. A Module is moved, cast and trained with the model.
    None: the output's own `loss` if it has one, the sum of a dict of losses, cross entropy for integer targets, mean
    squared error for others."""
    optimizer: Any = None
    """An optimizer, or a function that makes one from a list of parameters. None: SGD."""
    run: Callable[..., Any] | None = None
    """The whole step, called with model, inputs, targets and optimizer, and, if it takes a fifth argument, with `amp`,
    whose autocast(), backward(loss) and step(optimizer) follow the precision. Its result is not checked. None:
    forward, backward, optimizer. Without a model: a function without arguments, whose result is compared between
    devices."""
    samples: int | Callable[..., int] | None = None
    """Number of samples per step, or a function of inputs and targets that counts them; without a model, a function
    without arguments. None: the batch size, which some part of the batch must have; without a model and batch size,
    calls are counted.
    """
    host: str | Sequence[str] = ()
    """Names of the model's arguments that stay in host memory, such as the lengths for pack_padded_sequence; if the
    inputs are one dict or object, names of its keys or fields."""
    unit: str = ""
    """What `samples` counts, such as "rows"; for a plain function."""
    result: Callable[[], Any] | None = None
    """Called after a step of a plain function; returns the numbers and arrays to compare. None: the return value of
    `run`."""
    tolerance: float | None = None
    """Largest relative difference of the results between devices, in the Euclidean norm. None: by their types, 1e-6 in
    double precision, 1e-3 in single and for plain numbers, 3e-2 in half, 0 for whole numbers."""

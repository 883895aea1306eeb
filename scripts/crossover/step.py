"""The value that a user's function may return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Step:
    """A model, its inputs, and how to train it, or a plain function: `from crossover import Step`."""

    model: Any = None
    """A torch.nn.Module on the CPU. Without model and inputs, the step is the function `run`."""
    inputs: Any = None
    """A tensor, a tuple (several arguments) or dict (keywords) of them, a list or any other object with tensors (one
    argument), or a Dataset or DataLoader that gives (inputs, targets)."""
    targets: Any = None
    """A tensor, a list or dict of them, or None. The default loss takes integers as class labels."""
    loss: Callable[..., Any] | None = None
    """Called with the model's output, and with the targets if there are any. A Module is moved, cast and trained with
    the model. By default, the output's own `loss` if it has one, or else the sum of a dict of losses, cross entropy for
    integer targets, or mean squared error for other targets."""
    optimizer: Any = None
    """An optimizer, or a function that makes one from a list of parameters; by default, SGD."""
    run: Callable[..., Any] | None = None
    """The whole training step, called with model, inputs, targets and optimizer; a fifth argument is `amp`, whose
    autocast(), backward(loss) and step(optimizer) follow the precision. The result of such a step is not checked.
    Without a model, `run` is a function without arguments, whose result is compared between devices."""
    samples: int | Callable[..., int] | None = None
    """Number of samples per step, or a function of inputs and targets that counts them; without a model, a function
    without arguments. By default, the batch size, which must be the length of some part of a model's batch. For a
    plain function that takes no batch size, calls are counted.
    """
    host: str | Sequence[str] = ()
    """Names of the model's arguments that stay in host memory, such as the lengths for pack_padded_sequence; if the
    inputs are one dict or object, names of its keys or fields."""
    unit: str = ""
    """What `samples` counts, such as "rows"; for a plain function."""
    result: Callable[[], Any] | None = None
    """Called after a step of a plain function; returns the numbers and arrays to compare. By default, the return value
    of `run` is compared."""
    tolerance: float | None = None
    """Largest allowed relative difference between the results of two devices, in the Euclidean norm. By default, 1e-6
    for double precision, 1e-3 for single precision and Python floats, 3e-2 for half precision, 0 for integers."""

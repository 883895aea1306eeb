"""What the function of a user's model may return beside plain tuples: a step with its loss and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Step:
    """A model, its inputs, and how to train it: `from crossover import Step`."""

    model: Any
    """A torch.nn.Module, on the CPU."""
    inputs: Any
    """A tensor, a tuple (several arguments) or dict (keywords) of them, a list or any other object with tensors (one
    argument), or a Dataset or DataLoader that gives (inputs, targets)."""
    targets: Any = None
    """A tensor, a list or dict of them, or None; a tensor in whole numbers holds classes."""
    loss: Callable[..., Any] | None = None
    """Called with the model's output, and with the targets if there are any. A Module is moved, cast and trained with
    the model. None: cross entropy for targets in whole numbers, mean squared error for others, the output's own `loss`
    where it has one, the sum of a dict of losses."""
    optimizer: Any = None
    """An optimizer, or a function that makes one of a list of parameters. None: SGD."""
    run: Callable[..., Any] | None = None
    """The whole step, called with model, inputs, targets and optimizer, and, if it takes a fifth argument, with `amp`,
    whose autocast(), backward(loss) and step(optimizer) follow the precision. Its result is not checked. None: forward,
    backward, optimizer."""
    samples: int | Callable[[Any, Any], int] | None = None
    """Samples of a step, or a function of inputs and targets that counts them. None: the batch size, which some part of
    the batch must have."""
    host: str | Sequence[str] = ()
    """Names of the model's arguments that stay in host memory, as the lengths for pack_padded_sequence; of a single
    object its fields."""

"""What a model of a user's own may return beside plain tuples: a step with its loss and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Step:
    """A model, its inputs, and how a step trains it: `from crossover import Step`."""

    model: Any
    """A torch.nn.Module, on the CPU."""
    inputs: Any
    """A tensor, a tuple or dict of them, or a Dataset or DataLoader that gives (inputs, targets)."""
    targets: Any = None
    """A tensor, or None; in whole numbers they are classes."""
    loss: Callable[..., Any] | None = None
    """Called with the model's output, and with the targets if there are any. None: cross entropy for targets in whole
    numbers, mean squared error for others, the output's own `loss` where it has one."""
    optimizer: Callable[..., Any] | None = None
    """Called with the model's parameters. None: SGD."""
    run: Callable[..., Any] | None = None
    """The whole step, called with model, inputs, targets and optimizer; its answer is not checked. None: forward,
    backward, optimizer."""

"""What a step's memory is for, at the moment of the step's peak.

The parts do not exist all at once: activations fall while gradients rise, and the largest values of each can sum to
more than the peak. So one eager step runs under observation, and the parts are read at the operation that sets the
peak. A step that is timed is never observed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves

from crossover.measurement.memory.storages import Ledger, Observer


@dataclass(frozen=True)
class Subject:
    """What the memory pass looks at."""

    step: Callable[[], None]
    """One whole step of training or inference, as it was timed."""
    model: nn.Module
    optimizers: tuple[torch.optim.Optimizer, ...] = ()
    """Empty for inference."""
    resident: tuple[torch.Tensor, ...] = ()
    """The dataset's tensors that lie on the device."""
    eager_step: Callable[[], None] | None = None
    """The same step run eagerly; None where it cannot be, and then there is no split."""


@dataclass(frozen=True)
class Split:
    """Bytes at the peak of a step, by what they are for; each storage counts once, in the first part that fits."""

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    """Storages that the backward pass needs, among them the batch unless it is a view of resident data, and the copies
    of the weights that autocast makes in its own precision."""
    resident_bytes: int
    """Resident data and the model's buffers."""
    added_bytes: int
    """What these parts grew by from the start of the step to its peak; negative where the step begins by freeing."""

    @property
    def parts_bytes(self) -> int:
        """All parts together."""
        return (
            self.parameter_bytes
            + self.gradient_bytes
            + self.optimizer_bytes
            + self.activation_bytes
            + self.resident_bytes
        )


def split_step(
    subject: Subject, eager_step: Callable[[], None], device: torch.device, level: Callable[[], int] | None = None
) -> Split:
    """Run one step under observation and split its memory on `device` at the step's peak.

    `level` reads the device's high-water mark; without one the peak is where the tensors' sum is largest, which leaves
    out what kernels take for themselves. Raises what the step raises.
    """
    ledger = Ledger(device.type, level)
    parameters = _parameters(subject)

    def claim_what_is_known() -> None:
        ledger.claim(parameters, "parameter")
        ledger.claim((*subject.resident, *subject.model.buffers()), "resident")
        ledger.claim(tree_leaves([list(optimizer.state.values()) for optimizer in subject.optimizers]), "optimizer")
        ledger.claim([parameter.grad for parameter in parameters], "gradient")

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        ledger.claim([tensor], "activation")
        return tensor.detach()  # an output would hold the node that holds it, and neither would be freed

    claim_what_is_known()
    start = ledger.clock
    ledger.tick()
    with ExitStack() as stack:
        for parameter in parameters:
            if parameter.requires_grad:  # seen here too, since the step may drop its gradients before it ends
                hook = parameter.register_post_accumulate_grad_hook(lambda p: ledger.claim([p.grad], "gradient"))
                stack.enter_context(hook)
        stack.enter_context(saved_tensors_hooks(keep, lambda kept: kept))
        stack.enter_context(Observer(ledger))
        eager_step()
    claim_what_is_known()
    return _read(ledger, start)


def _parameters(subject: Subject) -> list[torch.Tensor]:
    """The model's parameters and whatever else the optimizers update, each once."""
    groups = [group["params"] for optimizer in subject.optimizers for group in optimizer.param_groups]
    found: list[Any] = [*subject.model.parameters(), *(parameter for group in groups for parameter in group)]
    return list({id(parameter): parameter for parameter in found}.values())


def _read(ledger: Ledger, start: int) -> Split:
    roles = ("parameter", "gradient", "optimizer", "activation", "resident")
    before, at_peak = ledger.bytes_at(start), ledger.bytes_at(ledger.peak_moment)
    parts = {f"{role}_bytes": at_peak[role] for role in roles}
    return Split(**parts, added_bytes=sum(at_peak[role] - before[role] for role in roles))

"""The default loss of a user's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from crossover.measurement.step.trees import tensors_of


def kind_of(value: Any) -> str:
    """A value's type, for error messages."""
    count = f" of {len(value)}" if isinstance(value, tuple) else ""
    return "None" if value is None else f"a {type(value).__name__}{count}"


def outputs_of(output: Any) -> list[torch.Tensor]:
    """All tensors of a model's output, also those that are attributes of an object."""
    return tensors_of(output) or tensors_of(getattr(output, "__dict__", None))


def default_loss(output: Any, targets: Any) -> torch.Tensor:
    """The output's own loss, or one that suits the targets: cross entropy, mean squared error.

    Without targets the mean square of the output, which costs as much. Raises ValueError if no default loss applies.
    """
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    if isinstance(output, Mapping) and (losses := _losses(output, targets)):
        return torch.stack(losses).sum()
    scores = _scores(output)
    if targets is None:
        return scores if scores.dim() == 0 and scores.is_floating_point() else _mean_square(scores)
    if not isinstance(targets, torch.Tensor):
        raise ValueError(f"no default loss takes {kind_of(targets)} as the targets; give a crossover.Step with a loss")
    if targets.is_floating_point() or targets.is_complex():
        if scores.numel() == targets.numel():
            is_real = scores.is_floating_point() and targets.is_floating_point()
            scores = scores.reshape(targets.shape)
            return functional.mse_loss(scores, targets) if is_real else _mean_square(scores - targets)
    elif scores.shape[:-1] == targets.shape:
        return functional.cross_entropy(scores.flatten(0, -2), targets.flatten().long())
    elif scores.dim() > 1 and scores.shape[:1] + scores.shape[2:] == targets.shape:
        return functional.cross_entropy(scores, targets.long())
    elif scores.dim() > 1 and scores.shape == targets.shape:
        raise ValueError(
            "targets in whole numbers have the shape of the outputs: make them floats, or give a crossover.Step with a "
            "loss, such as nn.BCEWithLogitsLoss()"
        )
    raise ValueError(
        f"the model returns {list(scores.shape)} for targets of {list(targets.shape)} in {str(targets.dtype)[6:]}, "
        "which no default loss compares; give a crossover.Step with a loss"
    )


def _losses(output: Mapping[str, Any], targets: Any) -> list[torch.Tensor]:
    """The losses in a model's dict: its scalars that require gradients."""
    values = [value for value in tensors_of(list(output.values())) if value.is_floating_point()]
    losses = [value for value in values if value.dim() == 0 and value.requires_grad]
    if losses and isinstance(targets, torch.Tensor) and any(value.dim() for value in values):
        raise ValueError("the model returns losses and other tensors in one dict; give a crossover.Step with a loss")
    return losses


def _scores(output: Any) -> torch.Tensor:
    """The output's logits, or else its first tensor of floating-point or complex numbers."""
    if isinstance(logits := getattr(output, "logits", None), torch.Tensor):
        return logits
    if hasattr(output, "to_tuple"):  # an output of transformers
        output = output.to_tuple()
    for tensor in tensors_of(output):
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor
    raise ValueError(
        f"the model returns {kind_of(output)} without a tensor of floating point; give a crossover.Step with a loss"
    )


def _mean_square(values: torch.Tensor) -> torch.Tensor:
    return (values.abs() if values.is_complex() else values).square().mean()

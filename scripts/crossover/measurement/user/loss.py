"""The default loss of a user's model, and the check that the model has an output for each class label."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from crossover.errors import UserError
from crossover.measurement.step.trees import tensors_of

IGNORED_LABEL = -100
"""The default `ignore_index` of torch's cross entropy."""


@dataclass(frozen=True)
class ClassLabels:
    least: int
    most: int
    shown: str
    """The beginning of an error message about the labels."""
    advice: str

    @classmethod
    def of_table(cls, column: str, classes: int, numeric: bool) -> ClassLabels:
        what = "different whole numbers, which are treated as classes" if numeric else "classes"
        regression = "for a regression write them as 1.0; for classes " if numeric else ""
        return cls(0, classes - 1, f"{column} has {classes} {what}", f"{regression}give it {classes} outputs")

    @classmethod
    def of_targets(cls, targets: Any) -> ClassLabels | None:
        """The range of a batch's labels; None if the targets are not whole numbers, or are all IGNORED_LABEL."""
        if not isinstance(targets, torch.Tensor) or targets.is_floating_point() or targets.is_complex():
            return None
        targets = targets.long()  # torch cannot compute the minimum of uint16
        labels = targets[targets != IGNORED_LABEL]
        if not labels.numel():
            return None
        least, most = int(labels.min()), int(labels.max())
        advice = "number them from 0" if least else f"give it {most + 1} outputs, or number them without gaps"
        return cls(least, most, f"its targets are class labels from {least} to {most}", advice)

    def check(self, outputs: int) -> None:
        if self.least < 0 or self.most >= outputs:
            have = f"{outputs} outputs, for labels 0 to {outputs - 1}" if outputs > 1 else "1 output, for label 0"
            raise UserError(f"{self.shown}, but the model has {have}; {self.advice}")


def kind_of(value: Any) -> str:
    """A value's type with its article, for error messages: "an int", "a tuple of 3", "None"."""
    count = f" of {len(value)}" if isinstance(value, tuple) else ""
    name = type(value).__name__
    if name == "ndarray":
        return "a NumPy array (torch.from_numpy makes a tensor of it)"
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}{count}"


def outputs_of(output: Any) -> list[torch.Tensor]:
    """The tensors in a model's output, which may be an object with tensors as attributes."""
    return tensors_of(output) or tensors_of(getattr(output, "__dict__", None))


def default_loss(output: Any, targets: Any, labels: ClassLabels | None = None) -> torch.Tensor:
    """Return the loss in the output (the sum, if there are several losses), or else a default loss:

    - cross entropy if the targets are whole numbers
    - mean squared error for other targets
    - without targets, the output if it is a scalar, or else its mean square

    Raises UserError if the model has too few outputs for `labels`, ValueError if no default loss applies.
    """
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    if isinstance(loss, int | float):
        raise ValueError("the model returns its loss as a number, which has no gradient; return the tensor")
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
        return _cross_entropy(scores.flatten(0, -2), targets.flatten(), labels)
    elif scores.dim() > 1 and scores.shape[:1] + scores.shape[2:] == targets.shape:
        return _cross_entropy(scores, targets, labels)
    elif scores.dim() > 1 and scores.shape == targets.shape:
        raise ValueError(
            "whole numbers as targets have the shape of the outputs; make them floats, or give a crossover.Step with a "
            "loss, such as nn.BCEWithLogitsLoss()"
        )
    elif scores.numel() == targets.numel() and labels is not None:
        labels.check(outputs=1)
    raise ValueError(
        f"the model returns {list(scores.shape)} for targets of {list(targets.shape)} in {str(targets.dtype)[6:]}, "
        "which no default loss compares; give a crossover.Step with a loss"
    )


def loss_without_changes(output: Any, targets: Any) -> Callable[[Any, Any], torch.Tensor] | None:
    """Torch's function that `default_loss` applies, if it applies it to the output and targets as they are."""
    if type(output) is not torch.Tensor or not output.is_floating_point() or type(targets) is not torch.Tensor:
        return None
    if output.shape == targets.shape and targets.is_floating_point():
        return functional.mse_loss
    is_plain = output.dim() == 2 and output.shape[:1] == targets.shape and targets.dtype is torch.int64
    return functional.cross_entropy if is_plain else None


def _losses(output: Mapping[str, Any], targets: Any) -> list[torch.Tensor]:
    values = [value for value in tensors_of(list(output.values())) if value.is_floating_point()]
    losses = [value for value in values if value.dim() == 0 and value.requires_grad]
    if losses and isinstance(targets, torch.Tensor) and any(value.dim() for value in values):
        raise ValueError("the model returns losses and other tensors in one dict; give a crossover.Step with a loss")
    return losses


def _scores(output: Any) -> torch.Tensor:
    if isinstance(logits := getattr(output, "logits", None), torch.Tensor):
        return logits
    if hasattr(output, "to_tuple"):  # an output of transformers
        output = output.to_tuple()
    for tensor in tensors_of(output):
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor
    raise ValueError(
        f"the model returns {kind_of(output)} without a floating-point tensor; give a crossover.Step with a loss"
    )


def _cross_entropy(scores: torch.Tensor, targets: torch.Tensor, labels: ClassLabels | None) -> torch.Tensor:
    """Cross entropy of (batch, classes, ...) scores, for labels of any integer dtype."""
    if labels is not None:
        labels.check(scores.shape[1])
    return functional.cross_entropy(scores, targets.long())


def _mean_square(values: torch.Tensor) -> torch.Tensor:
    return (values.abs() if values.is_complex() else values).square().mean()

"""Whole-number targets, which the default loss takes as classes, beside the outputs that a model has for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from crossover.errors import UserError

IGNORED = -100
"""The label that cross entropy leaves out."""


@dataclass(frozen=True)
class ClassLabels:
    """The range of class labels, as far as it is known before a step."""

    least: int
    most: int
    shown: str
    """They in a message, as the subject of its sentence."""
    advice: str

    @classmethod
    def of_table(cls, place: str, classes: int, numeric: bool) -> ClassLabels:
        """Those of a table's column, numbered from 0."""
        what = "different whole numbers, which are taken as classes" if numeric else "classes"
        regression = "for a regression write them as 1.0; for classes " if numeric else ""
        return cls(0, classes - 1, f"{place} has {classes} {what}", f"{regression}give it {classes} outputs")

    @classmethod
    def of_targets(cls, targets: Any) -> ClassLabels | None:
        """Those of a batch on the host; None if its targets are no whole numbers."""
        if not isinstance(targets, torch.Tensor) or targets.is_floating_point() or targets.is_complex():
            return None
        targets = targets.long()  # torch finds no least of uint16
        labels = targets[targets != IGNORED]
        if not labels.numel():
            return None
        least, most = int(labels.min()), int(labels.max())
        advice = "number them from 0" if least else f"give it {most + 1} outputs, or number them without gaps"
        return cls(least, most, f"its targets are class labels from {least} to {most}", advice)

    def check(self, outputs: int) -> None:
        """Raise UserError if a model with so many outputs has none for some label."""
        if self.least < 0 or self.most >= outputs:
            have = f"{outputs} outputs, for labels 0 to {outputs - 1}" if outputs > 1 else "1 output, for label 0"
            raise UserError(f"{self.shown}, but the model has {have}; {self.advice}")


def class_loss(scores: torch.Tensor, targets: torch.Tensor, labels: ClassLabels | None) -> torch.Tensor:
    """Cross entropy; the classes of `scores` lie in their second dimension, as PyTorch has it."""
    if labels is not None:
        labels.check(scores.shape[1])
    return functional.cross_entropy(scores, targets.long())  # torch takes no int32 and no booleans here

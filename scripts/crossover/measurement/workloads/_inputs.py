"""Inputs that a workload draws itself, on the device, with torch's seeded generator of that device."""

from __future__ import annotations

import torch

from crossover.measurement.step.precision import Arithmetic

CLASSES = 1000
"""Classes of ImageNet, for which the image classifiers have their last layer."""


def draw_normal(arithmetic: Arithmetic, *shape: int) -> torch.Tensor:
    """Standard-normal numbers in the arithmetic's type."""
    return torch.randn(shape, device=arithmetic.device, dtype=arithmetic.dtype)


def draw_images(arithmetic: Arithmetic, batch_size: int, side: int) -> torch.Tensor:
    """Images of `side` x `side` pixels: (batch, 3, side, side)."""
    return draw_normal(arithmetic, batch_size, 3, side, side)


def draw_integers(arithmetic: Arithmetic, below: int, *shape: int) -> torch.Tensor:
    """Whole numbers from 0 to below - 1, int64."""
    return torch.randint(below, shape, device=arithmetic.device)

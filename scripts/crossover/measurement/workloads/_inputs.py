"""Random inputs drawn on the device, with torch's seeded generator of that device."""

from __future__ import annotations

import torch

from crossover.measurement.step.precision import Arithmetic

IMAGENET_CLASSES = 1000


def draw_normal(arithmetic: Arithmetic, *shape: int) -> torch.Tensor:
    """Standard-normal numbers in the arithmetic's type."""
    return torch.randn(shape, device=arithmetic.device, dtype=arithmetic.dtype)

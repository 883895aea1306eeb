"""Random inputs of workloads, drawn on the device with torch's generator."""

from __future__ import annotations

import torch

from crossover.measurement.step.precision import Arithmetic

IMAGENET_CLASSES = 1000


def draw_normal(arithmetic: Arithmetic, *shape: int) -> torch.Tensor:
    return torch.randn(shape, device=arithmetic.device, dtype=arithmetic.dtype)

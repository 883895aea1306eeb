"""Noise that stands for rounding, added to every operation of the numerical check's reference."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PERIOD = 65537
"""Random numbers of the noise, reused from a random start; prime, so that they do not align with a tensor's rows."""


class RoundingNoise(TorchDispatchMode):
    """Multiplies each new value in forward and backward pass by 1 + x, with x uniform between -share and share.

    How far that moves the answer tells how well the model is conditioned (Parker 1997, Monte Carlo arithmetic). Whole
    numbers stay as they are: floating point holds them exactly, and masks and counts are made of them.
    """

    def __init__(self, share: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random = random.Random(seed)
        self.share = share
        generator = torch.Generator().manual_seed(seed)
        self.noise = torch.empty(2 * PERIOD, dtype=torch.float64).uniform_(-1, 1, generator=generator)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if any(map(_has_fractions, tree_leaves((args, kwargs)))):
            returned = results if isinstance(results, tuple | list) else (results,)
            for tensor, declared in zip(returned, func._schema.returns, strict=False):
                # A view has no values of its own.
                if _has_fractions(tensor) and (declared.alias_info is None or declared.alias_info.is_write):
                    self._add_to(tensor)
        return results

    def _add_to(self, tensor: torch.Tensor) -> None:
        share = max(self.share, torch.finfo(tensor.dtype).eps)  # a model may compute in its own, coarser type
        start = self.random.randrange(PERIOD)
        values = tensor.reshape(-1)
        noise = self.noise[start : start + min(PERIOD, len(values))].to(tensor.dtype)
        if len(values) > PERIOD:
            noise = noise.repeat(-(-len(values) // PERIOD))[: len(values)]
        noisy = torch.where(values == values.trunc(), values, values + values * noise * share)
        tensor.copy_(noisy.reshape(tensor.shape))


def _has_fractions(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout == torch.strided

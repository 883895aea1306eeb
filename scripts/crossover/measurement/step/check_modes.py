"""Two modes of the numerical check: the same random numbers on all devices, and noise that simulates rounding."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DRAWING = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "binomial", "multinomial", "normal", "poisson"),
    *("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"),
    "kaiming_uniform_",  # of torch.nn.init, in which the mode sees no other call
}


class SameDraws(TorchFunctionMode):
    """Draws a model's random numbers from one sequence on the host; dropout becomes the identity.

    If the state of torch's default generator on the host changes while the mode is active, the model drew numbers that
    the mode could not intercept, for example in compiled code or inside a torch function.
    """

    state: torch.Tensor
    drew = False

    def __enter__(self) -> SameDraws:
        self.state = torch.Generator().manual_seed(0).get_state()
        self.drew = False
        random.seed(0)
        np.random.seed(0)
        super().__enter__()  # type: ignore[no-untyped-call]  # torch has no types here
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if "dropout" in name:
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            kwargs = dict(zip(("attn_mask", "dropout_p", "is_causal"), args[3:], strict=False)) | kwargs
            return func(*args[:3], **{**kwargs, "dropout_p": 0.0})
        return self._draw(func, args, kwargs) if name in DRAWING else func(*args, **kwargs)

    def _draw(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        self.drew = True
        host_kwargs = {key: value for key, value in kwargs.items() if key not in ("generator", "out", "pin_memory")}
        if "device" in host_kwargs:
            host_kwargs["device"] = "cpu"
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            drawn: torch.Tensor = func(*args, **kwargs)
            # The host draws in double precision; `_on_host` converts arguments that are tensors.
            has_tensors = any(isinstance(value, torch.Tensor) for value in tree_leaves((args, host_kwargs)))
            if drawn.is_floating_point() and ("dtype" in kwargs or not has_tensors):
                host_kwargs["dtype"] = torch.float64
            torch.set_rng_state(self.state)
            numbers = func(*tree_map(_on_host, args), **tree_map(_on_host, host_kwargs))
            self.state = torch.get_rng_state()
            return drawn.copy_(numbers)


def _on_host(value: Any) -> Any:
    """Copy a tensor to the host, with a fixed layout and floating-point type, since these affect the draws."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to("cpu", torch.float64 if value.is_floating_point() else value.dtype, copy=True).contiguous()


VARYING_TERMS, EQUAL_TERMS = 64, 128
"""Square root of the number of terms that vary, and number of equal terms, whose sum rounds no more than noise does."""

LARGEST_SHARE = 0.01
"""Largest share of noise because of a long sum."""

PERIOD = 65537
"""Elements after which the noise repeats; prime, so that rows of usual lengths get different noise."""


class RoundingNoise(TorchDispatchMode):
    """Multiplies computed values, in forward and backward pass, by 1 + x, with x uniform between -share and share.

    The effect on the result shows how well the model is conditioned (Monte Carlo arithmetic, Parker 1997). Whole
    numbers, as in masks and counts, get no noise, since floating point usually represents them exactly.
    """

    def __init__(self, share: float, seed: int, sums_round: bool = False) -> None:
        """`sums_round` tells that sums are in the precision of `share`, so that long ones round more."""
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.random = random.Random(seed)
        self.share = share
        self.sums_round = sums_round
        generator = torch.Generator().manual_seed(seed)
        self.noise = torch.empty(2 * PERIOD, dtype=torch.float64).uniform_(-1, 1, generator=generator)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if any(map(_has_fractions, tree_leaves((args, kwargs)))):
            returned = results if isinstance(results, tuple | list) else (results,)
            growth = _growth_in_sums(func, args) if self.sums_round else repeat(1.0)
            for tensor, declared, factor in zip(returned, func._schema.returns, growth, strict=False):
                # A view contains no new values.
                if _has_fractions(tensor) and (declared.alias_info is None or declared.alias_info.is_write):
                    self._add_to(tensor, max(self.share, min(self.share * factor, LARGEST_SHARE)))
        return results

    def _add_to(self, tensor: torch.Tensor, share: float) -> None:
        share = max(share, torch.finfo(tensor.dtype).eps)  # a model may compute in a less precise type
        start = self.random.randrange(PERIOD)
        values = tensor.reshape(-1)
        noise = self.noise[start : start + min(PERIOD, len(values))].to(tensor.device, tensor.dtype)
        if len(values) > PERIOD:
            noise = noise.repeat(-(-len(values) // PERIOD))[: len(values)]
        noisy = torch.where(values == values.trunc(), values, values + values * noise * share)
        tensor.copy_(noisy.reshape(tensor.shape))


def _growth_in_sums(func: Any, args: Any) -> Iterable[float]:
    """Factors by which rounding grows in long sums, for the results of an operator that adds term by term.

    oneDNN adds up a convolution's gradients so, over all samples and places. The relative error of n terms grows as
    sqrt(n) if they vary, as for the weights, and as n if they are equal, as may be those of a bias (Higham, "Accuracy
    and Stability of Numerical Algorithms", 2002, section 4.2). The constants are from networks in fp32.
    """
    if func.overloadpacket is not torch.ops.aten.convolution_backward:
        return repeat(1.0)
    terms = args[0].numel() / args[0].shape[1]
    return 1.0, max(1.0, math.sqrt(terms) / VARYING_TERMS), max(1.0, terms / EQUAL_TERMS)


def _has_fractions(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout == torch.strided

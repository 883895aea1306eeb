"""Random numbers that are the same on every device and in every precision, so that stochastic models compare."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

DRAWING = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "binomial", "multinomial", "normal", "poisson"),
    *("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"),
}


class SameDraws(TorchFunctionMode):
    """Takes what a model draws from one sequence, drawn in double precision on the host; dropout passes its input on.

    Torch's generators are left as they were found. So who finds the host's changed knows of draws that were not seen
    here: in compiled code, or within a function of torch.
    """

    state: torch.Tensor
    """Of the sequence."""
    drew = False
    """Whether anything was drawn since the sequence last began."""

    def __enter__(self) -> SameDraws:
        """Begin the sequence, and those of Python's and NumPy's generators."""
        self.state = torch.Generator().manual_seed(0).get_state()
        self.drew = False
        random.seed(0)
        np.random.seed(0)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The function's own result, unless it draws."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if "dropout" in name:
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            kwargs = dict(zip(("attn_mask", "dropout_p", "is_causal"), args[3:], strict=False)) | kwargs
            return func(*args[:3], **{**kwargs, "dropout_p": 0.0})
        return self._draw(func, args, kwargs) if name in DRAWING else func(*args, **kwargs)

    def _draw(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        """What the function draws on the host, in the place of what it draws."""
        self.drew = True
        on_host = {key: value for key, value in kwargs.items() if key not in ("generator", "out", "pin_memory")}
        if "device" in on_host:
            on_host["device"] = "cpu"
        if (dtype := on_host.get("dtype")) is not None and dtype.is_floating_point:
            on_host["dtype"] = torch.float64
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            drawn: torch.Tensor = func(*args, **kwargs)
            torch.set_rng_state(self.state)
            numbers = func(*tree_map(_on_host, args), **tree_map(_on_host, on_host))
            self.state = torch.get_rng_state()
            return drawn.copy_(numbers)


def _on_host(value: Any) -> Any:
    """A copy of a tensor that draws the same numbers whatever its device, type and layout."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to("cpu", torch.float64 if value.is_floating_point() else value.dtype, copy=True).contiguous()

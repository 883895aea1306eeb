"""Floating-point operations of a step as torch counts them: matmuls, convolutions and attention, nothing else.

A multiplication and an addition are two. The step is counted as it runs eagerly, with accumulated batches, repeated
forward passes of checkpoints and an optimizer's matmuls. So the number says what the step asks for, whatever a compiler
or a graph leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

SLOW_STEP_S = 1.0
"""Steps longer than this are counted in the first trial of a cell only: the number is the same in all of them."""

FORWARD = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_attention_math_for_mps",
)
BACKWARD = (
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
)
"""Fused attention off CUDA, which torch's counter (2.13) leaves out."""


def count_flops(step: Callable[[], None], execution: str) -> int:
    """Run a task's step once, always eagerly, and return its floating-point operations.

    The counter about doubles the step's launch time (measured: 6.4 ms instead of 3.4 ms).
    """
    eager = torch.compiler.set_stance("force_eager") if execution == "compile" else nullcontext()
    with eager, FlopCounterMode(display=False, custom_mapping=_attention()) as counter:
        step()
    return int(counter.get_total_flops())


def _attention() -> dict[Any, Callable[..., int]]:
    """Torch's own formulas for CUDA's fused attention, for the other devices' operations."""
    named: dict[str, Callable[..., int]] = dict.fromkeys(FORWARD, _forward_flops)
    named |= dict.fromkeys(BACKWARD, _backward_flops)
    return {getattr(torch.ops.aten, name): count for name, count in named.items() if hasattr(torch.ops.aten, name)}


def _forward_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _backward_flops(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))

"""Floating-point operations of a step, as torch counts them: matmuls, convolutions and attention, nothing else.

A multiplication and an addition are two. What is counted is an eager step as it runs, so accumulated batches, forward
passes repeated for checkpoints, and matmuls of an optimizer are in it. What a compiler or a graph leaves out is not
left out here: the number says what the step asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

SLOW_STEP_S = 1.0
"""A step that takes longer is counted in the first trial of a cell only: the number is the same in all of them."""


def count_flops(step: Callable[[], None], execution: str) -> int:
    """Run a task's step once, eagerly whatever the execution, and return its floating-point operations.

    A step costs about twice its time of launching under the counter (measured: 6.4 ms where it takes 3.4 ms).
    Raises what the step raises, out of memory included.
    """
    with _eager(execution), FlopCounterMode(display=False, custom_mapping=_attention()) as counter:
        step()
    return int(counter.get_total_flops())


def _eager(execution: str) -> AbstractContextManager[Any]:
    """Has a compiled model run as it was written; a task's own step is no captured graph."""
    return torch.compiler.set_stance("force_eager") if execution == "compile" else nullcontext()


def _attention() -> dict[Any, Callable[..., int]]:
    """Formulas for fused attention off CUDA, which torch's counter (2.13) leaves out: those that it has for CUDA."""
    forward = (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_attention_math_for_mps",
    )
    backward = (
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        "_scaled_dot_product_fused_attention_overrideable_backward",
    )
    named: dict[str, Callable[..., int]] = {
        **dict.fromkeys(forward, _forward_flops),
        **dict.fromkeys(backward, _backward_flops),
    }
    return {getattr(torch.ops.aten, name): count for name, count in named.items() if hasattr(torch.ops.aten, name)}


def _forward_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _backward_flops(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))

"""Floating-point operations of torch's operators; a multiplication and an addition count as two.

Counted are matrix products, convolutions and attention. Operators without products, such as element-wise ones, sums,
norms and pooling, count as zero. The count of a step is unknown if it runs an operator with products for which there is
no formula, such as a recurrent layer, a Fourier transform or a product of integers, or an operator that is not torch's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    conv_flop_count,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

Formula = Callable[..., float]

COMPLEX = 4
"""Multiplications and additions of real numbers in one of complex numbers, by pairs."""

COMPRESSED = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
BLOCKED = (torch.sparse_bsr, torch.sparse_bsc)

WITH_PRODUCTS = re.compile(
    r"(mm|mv|dot|matmul)(_|$)|conv(?!ert)|linear|attention|encoder_layer|multi_head|rnn|lstm|gru|fft"
    r"|linalg|cholesky|solve|geqrf|ormqr|cdist|pdist|euclidean_dist"
)
"""Names of operators with products; those without a formula make the count unknown."""

WITHOUT_PRODUCTS = re.compile(
    r"upsample|linalg_(vector_norm|cross|_powsum|check_errors)|_thnn_fused|fftfreq|reorder|flatten_weight|choice"
)
"""Names that WITH_PRODUCTS matches too, but whose operators compute no products."""

KNOWN_LIBRARIES = re.compile(
    r"aten|prims?|profiler|inductor|rngprims|c10d|_c10d_functional(_autograd)?|torchvision|torch_scatter|torch_cluster"
)
"""Namespaces of operators whose names tell whether they compute products."""


class NoModuleTracking(nullcontext[None]):
    """Replaces the counter's module tracker, whose hooks fail if a forward pass computes derivatives."""

    parents = frozenset({"Global"})


def flop_counter() -> Any:
    """Torch's counter with the formulas of this module; its total is NaN if a formula does not apply."""
    counter: Any = FlopCounterMode(display=False)
    counter.mod_tracker = NoModuleTracking()
    formulas = {**counter.flop_registry, **_formulas()}
    counter.flop_registry = {operator: _or_unknown(formula) for operator, formula in formulas.items()}
    return counter


def is_uncounted(operator: Any) -> bool:
    """Return True if an operator (an OpOverload) may compute products; to be asked only where there is no formula."""
    library, _, name = operator._schema.name.partition("::")
    if not KNOWN_LIBRARIES.fullmatch(library):
        return True
    is_elementwise = torch.Tag.pointwise in operator.tags
    return not is_elementwise and bool(WITH_PRODUCTS.search(name)) and not WITHOUT_PRODUCTS.search(name)


def _or_unknown(formula: Formula) -> Formula:
    """The formula, which returns NaN instead of an error; nested tensors, for example, have no single shape."""

    def count(*args: Any, **kwargs: Any) -> float:
        try:
            return int(formula(*args, **kwargs))
        except Exception:
            return math.nan

    return count


def product_flops(left: torch.Tensor, right: torch.Tensor, *_: Any, **__: Any) -> int:
    """FLOPs of the product of two vectors, matrices or batches of matrices, one of which may be sparse.

    Each stored value of a sparse matrix is multiplied by a whole row or column of the other one. Raises ValueError for
    integers, for two sparse matrices, and for sparse ones that are stored by block or batch.
    """
    if not (left.is_floating_point() or left.is_complex()):
        raise ValueError("a product of integers has no floating-point operations")
    scale = 2 * (COMPLEX if left.is_complex() else 1)
    if is_sparse_tensor(right):
        if is_sparse_tensor(left):
            raise ValueError("the product of two sparse matrices depends on their patterns")
        return scale * _stored_values(right) * left.shape[-2]
    stored = _stored_values(left) if is_sparse_tensor(left) else left.numel()
    return scale * stored * (right.shape[-1] if right.dim() > 1 else 1)


def is_sparse_tensor(tensor: torch.Tensor) -> bool:
    return tensor.layout in COMPRESSED or tensor.layout in BLOCKED


def _stored_values(sparse: torch.Tensor) -> int:
    if sparse.layout in BLOCKED or (sparse.layout != torch.sparse_coo and sparse.dim() > 2):
        raise ValueError("stored by block or batch")
    return int(sparse._nnz())


def _added_product_flops(_added: Any, left: torch.Tensor, right: torch.Tensor, *_: Any, **__: Any) -> int:
    return product_flops(left, right)


def _convolution_backward_flops(
    gradient: torch.Tensor,
    inputs: torch.Tensor,
    weights: torch.Tensor,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    wanted: list[bool],
    **_: Any,
) -> int:
    """FLOPs of the gradients of inputs and weights, each of which takes as many as the forward pass.

    Torch's formula multiplies those of the weights by the number of groups.
    """
    forward = conv_flop_count(list(inputs.shape), list(weights.shape), list(gradient.shape), transposed)
    return int(forward) * sum(wanted[:2])


def _attention_flops(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _attention_backward_flops(gradient: torch.Tensor, *inputs: Any, **_: Any) -> int:
    query, key, value = inputs[:3]
    return int(sdpa_backward_flop_count(gradient.shape, query.shape, key.shape, value.shape))


def _multi_head_flops(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, width: int, _heads: int, *_: Any, **__: Any
) -> int:
    """FLOPs of four projections, of queries by keys and of weights by values; inputs are (batch, tokens, width)."""
    batch, queries, _width = query.shape
    keys = key.shape[1]
    projections = batch * (2 * queries + keys + value.shape[1]) * width * width
    return 2 * (projections + 2 * batch * queries * keys * width)


def _encoder_layer_flops(inputs: torch.Tensor, width: int, heads: int, *others: Any, **_: Any) -> int:
    """FLOPs of self-attention and of the two layers of the feed-forward part, the 15th and 17th argument."""
    tokens = inputs.shape[0] * inputs.shape[1]
    weights = int(others[11].numel() + others[13].numel())
    return _multi_head_flops(inputs, inputs, inputs, width, heads) + 2 * tokens * weights


def _formulas() -> dict[Any, Formula]:
    """Formulas that torch's counter (2.13) lacks or gets wrong, by operator."""
    named: dict[str, Formula] = {
        **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot"), product_flops),
        **dict.fromkeys(
            (f"{name}{end}" for name in ("addmm", "addmv", "addbmm", "baddbmm") for end in ("", "_")),
            _added_product_flops,
        ),
        **dict.fromkeys(("_addmm_activation", "_sparse_addmm"), _added_product_flops),
        "convolution_backward": _convolution_backward_flops,
        **dict.fromkeys(
            (
                "_scaled_dot_product_flash_attention_for_cpu",
                "_scaled_dot_product_fused_attention_overrideable",
                "_scaled_dot_product_attention_math_for_mps",
            ),
            _attention_flops,
        ),
        **dict.fromkeys(
            (
                "_scaled_dot_product_flash_attention_for_cpu_backward",
                "_scaled_dot_product_fused_attention_overrideable_backward",
            ),
            _attention_backward_flops,
        ),
        "_native_multi_head_attention": _multi_head_flops,
        "_transformer_encoder_layer_fwd": _encoder_layer_flops,
    }
    aten = torch.ops.aten
    return {getattr(aten, name): formula for name, formula in named.items() if hasattr(aten, name)}

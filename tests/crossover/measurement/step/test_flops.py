"""FLOPs of single operators, forward and backward, by arithmetic; None where the count is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.step.devices import open_device
from crossover.measurement.step.operators import count_work


def flops_of(step: Callable[[], object]) -> int | None:
    flops: int | None = count_work(step, "eager", open_device("cpu"))["flops_per_step"]
    return flops


@pytest.mark.parametrize(
    ("kind", "extent", "groups"),
    [
        (nn.Conv2d, (6, 7), 1),
        (nn.Conv2d, (6, 7), 8),
        (nn.Conv3d, (4, 5, 6), 2),
        (nn.ConvTranspose2d, (6, 7), 2),
    ],
)
def test_convolutions(kind: Any, extent: tuple[int, ...], groups: int) -> None:
    """Each input of a transposed convolution, or output of another, meets the channels of a group and the kernel."""
    layer = kind(8, 16, 3, stride=2, padding=1, groups=groups)
    inputs = torch.randn(2, 8, *extent)
    met = (inputs.numel() * 16 if layer.transposed else layer(inputs).numel() * 8) // groups
    forward = 2 * met * 3 ** len(extent)
    assert flops_of(lambda: layer(inputs)) == forward
    assert flops_of(lambda: layer(inputs).sum().backward()) == 2 * forward  # with gradients of the weights
    inputs.requires_grad_()
    assert flops_of(lambda: layer(inputs).sum().backward()) == 3 * forward  # and of the inputs
    layer.requires_grad_(False)
    assert flops_of(lambda: layer(inputs).sum().backward()) == 2 * forward


MATRIX, OTHER = torch.randn(5, 7), torch.randn(7, 3)
VECTOR, SHORT = torch.randn(7), torch.randn(5)
BATCH = torch.randn(2, 5, 7)
SPARSE = torch.zeros(7, 7).index_put_((torch.tensor([0, 0, 3, 6]), torch.tensor([1, 4, 3, 0])), torch.ones(4))
INTEGERS = torch.ones(32, 32, dtype=torch.int8)


@pytest.mark.filterwarnings("ignore:Sparse C")
@pytest.mark.parametrize(
    ("step", "flops"),
    [
        (lambda: MATRIX @ OTHER, 2 * 5 * 7 * 3),
        (lambda: MATRIX @ VECTOR, 2 * 5 * 7),
        (lambda: torch.vdot(VECTOR, VECTOR), 2 * 7),
        (lambda: torch.addmv(SHORT, MATRIX, VECTOR), 2 * 5 * 7),
        (lambda: torch.zeros(5, 3).addmm_(MATRIX, OTHER), 2 * 5 * 7 * 3),
        (lambda: torch.addbmm(torch.zeros(5, 5), BATCH, BATCH.mT), 2 * 2 * 5 * 7 * 5),
        (lambda: torch.einsum("bij,jk->bik", BATCH, OTHER), 2 * 2 * 5 * 7 * 3),
        (lambda: MATRIX.cfloat() @ OTHER.cfloat(), 4 * 2 * 5 * 7 * 3),
        (lambda: torch.linalg.cross(MATRIX[:, :3], MATRIX[:, 3:6]), 0),
        (lambda: functional.interpolate(BATCH, scale_factor=2, mode="linear"), 0),
        (lambda: torch.sparse.mm(SPARSE.to_sparse(), OTHER), 2 * 4 * 3),
        (lambda: SPARSE.to_sparse_csr() @ VECTOR, 2 * 4),
        (lambda: torch.sparse.addmm(OTHER, SPARSE.to_sparse(), OTHER), 2 * 4 * 3),
        (lambda: MATRIX @ SPARSE.to_sparse_csc(), 2 * 4 * 5),
        (lambda: SPARSE.to_sparse() @ SPARSE.to_sparse(), None),
        (lambda: INTEGERS @ INTEGERS, None),
        (lambda: torch.linalg.svd(MATRIX), None),
        (lambda: torch.fft.rfft(MATRIX), None),
    ],
)
def test_products(step: Callable[[], object], flops: int | None) -> None:
    assert flops_of(step) == flops


TOKENS, KEYS = torch.randn(2, 6, 16), torch.randn(2, 9, 16)
PROJECTION = 2 * 16 * 16
"""FLOPs of the projection of one token of width 16."""


def product_with_keys(keys: int) -> int:
    """FLOPs of queries by keys, or of weights by values, in two sequences of 6 tokens."""
    return 2 * 2 * 6 * keys * 16


def inferred(layer: nn.Module, *inputs: torch.Tensor, **options: Any) -> Callable[[], object]:
    return torch.no_grad()(lambda: layer.eval()(*inputs, **options))


@pytest.mark.parametrize("fused", [True, False])
def test_attention_whether_or_not_it_is_fused(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", fused)
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    encoder = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    own = 4 * 12 * PROJECTION + 2 * product_with_keys(6)
    assert flops_of(inferred(attention, TOKENS, TOKENS, TOKENS)) == own
    crossed = (2 * 12 + 2 * 18) * PROJECTION + 2 * product_with_keys(9)
    assert flops_of(inferred(attention, TOKENS, KEYS, KEYS)) == crossed
    assert flops_of(inferred(encoder, TOKENS)) == own + 2 * 12 * 2 * 16 * 24


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_attention_in_training_and_over_sequences_of_different_lengths() -> None:
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    trained = flops_of(lambda: attention(TOKENS, TOKENS, TOKENS, need_weights=False)[0].sum().backward())
    # The inputs need no gradients, so the three projections of them take two products, the fourth takes three.
    assert trained == (3 * 2 + 3) * 12 * PROJECTION + (2 + 5) * product_with_keys(6)
    padding = torch.arange(6).expand(2, 6) >= torch.tensor([[6], [4]])
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2)
    assert flops_of(inferred(encoder, TOKENS, src_key_padding_mask=padding)) is None


@torch.library.custom_op("crossover_tests::product", mutates_args=())
def custom_product(values: torch.Tensor) -> torch.Tensor:
    return values @ values.mT


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_an_operator_of_another_library_makes_the_count_unknown() -> None:
    assert flops_of(lambda: custom_product(MATRIX)) is None
    layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    quantised = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
    assert flops_of(inferred(quantised, torch.randn(4, 8))) is None

"""The modes of the check: the same random numbers for any device and precision, and noise after each operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.step.check_modes import PERIOD, RoundingNoise, SameDraws
from crossover.measurement.step.precision import default_dtype

SHARE = 2.0**-10

Draw = Callable[[torch.Tensor], torch.Tensor]


def draws_of(draw: Draw, dtype: torch.dtype, layout: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    values = torch.full((4, 2, 3, 3), 0.5, dtype=dtype).to(memory_format=layout)
    with default_dtype(dtype), SameDraws() as draws:
        drawn = torch.cat([draw(values).flatten().double(), draw(values).flatten().double()])
    assert draws.drew
    return drawn


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.rand(9, dtype=x.dtype, device=x.device),
        lambda x: torch.randn(9, dtype=x.dtype, generator=torch.Generator()),
        lambda x: torch.rand(9, device=x.device),  # of torch's default type
        lambda x: torch.randn(9, dtype=None, out=x.new_empty(9)),
        lambda _: torch.randint(0, 99, (9,)),
        lambda x: x.new_empty((9, 1)).bernoulli_(0.8),
        lambda x: torch.empty_like(x).exponential_(),
        lambda x: torch.multinomial(x[0, 0, 0], 2),
        lambda x: torch.nn.init.kaiming_uniform_(torch.empty_like(x)),
        lambda x: torch.nn.Linear(4, 4, dtype=x.dtype).bias.detach(),
    ],
)
def test_random_numbers_are_the_same_in_every_precision_and_layout(draw: Draw) -> None:
    before = torch.get_rng_state()
    exact = draws_of(draw, torch.float64)
    assert torch.equal(torch.get_rng_state(), before)
    first, second = exact.chunk(2)
    assert len(first) == 1 or not torch.equal(first, second)  # the sequence goes on
    assert torch.allclose(draws_of(draw, torch.float32), exact, atol=1e-6)
    assert torch.allclose(draws_of(draw, torch.bfloat16, torch.channels_last), exact, rtol=2**-8)


def test_random_numbers_of_python_and_numpy_are_the_same_too() -> None:
    def drawn() -> tuple[float, float]:
        with SameDraws():
            return random.random(), float(np.random.rand())

    assert drawn() == drawn()


@pytest.mark.parametrize(
    "drop",
    [
        lambda x: functional.dropout(x, 0.5),
        lambda x: functional.feature_alpha_dropout(x, 0.5, True),
        lambda x: torch.dropout(x, 0.5, True),
    ],
)
def test_dropout_returns_its_input(drop: Draw) -> None:
    with SameDraws() as draws:
        assert drop(torch.ones(2, 3, 4, 4)).eq(1).all()
    assert not draws.drew


@pytest.mark.parametrize("named", [True, False])
def test_attention_drops_nothing(named: bool) -> None:
    q, k, v = torch.randn(3, 1, 4, 8)
    attend = functional.scaled_dot_product_attention
    expected = attend(q, k, v, is_causal=True)
    with SameDraws():
        attended = attend(q, k, v, dropout_p=0.9, is_causal=True) if named else attend(q, k, v, None, 0.9, True)
    assert torch.equal(attended, expected)


def fractions(count: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(0)).double() + 1.25


@pytest.mark.parametrize("count", [1, 1000, PERIOD, 3 * PERIOD + 7])
def test_noise_differs_from_value_to_value(count: int) -> None:
    values = fractions(count)
    with RoundingNoise(SHARE, 0):
        doubled = values * 2
    off = doubled / (2 * values) - 1
    assert 0 < off.abs().max() <= SHARE
    if count > 1:
        assert off.std() == pytest.approx(SHARE / 3**0.5, rel=0.1)  # uniform noise
    assert torch.equal(values, fractions(count))


def test_every_operation_of_both_passes_adds_noise() -> None:
    """(1.5 x) 0.7 and its gradient have two operations each, whose noise is sqrt(2) times that of one operation."""
    x = fractions(1000).requires_grad_()
    with RoundingNoise(SHARE, 0):
        y = x * 1.5 * 0.7
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(x))
    for noisy, exact in ((y, x * 1.05), (gradient, 1.05)):
        assert (noisy / exact - 1).detach().std() == pytest.approx(SHARE * (2 / 3) ** 0.5, rel=0.1)


def test_whole_numbers_views_and_other_types_get_no_noise() -> None:
    mask = torch.tensor([0.0, 1.0, -torch.inf, 3.0])
    values = fractions(6)
    with RoundingNoise(SHARE, 0):
        assert torch.equal(mask.repeat(2).clone(), torch.cat([mask, mask]))
        assert values.view(2, 3).t()[1, 0].data_ptr() == values[1:].data_ptr()
        assert torch.equal(torch.arange(3) * 2, torch.tensor([0, 2, 4]))
        assert torch.equal(torch.full((3,), 0.5), torch.tensor([0.5] * 3))  # nothing is rounded in a constant
        assert (values * 1j).is_complex()
    assert torch.equal(values, fractions(6))


@pytest.mark.parametrize(("sums_round", "weights", "bias"), [(False, 1.0, 1.0), (True, 2.0, 128.0)])
def test_noise_grows_with_the_number_of_terms_of_a_convolutions_gradients(
    sums_round: bool, weights: float, bias: float
) -> None:
    """Over 16 x 32 x 32 terms: sqrt(16384) / 64 = 2 for the weights and 16384 / 128 for the bias, and 1 % at most."""
    layer = nn.Conv2d(64, 64, 1, groups=64, dtype=torch.float64)
    inputs = torch.randn(16, 64, 32, 32, dtype=torch.float64)

    def gradients(noise: AbstractContextManager[Any]) -> Any:
        gradient = torch.full_like(inputs, 0.3)
        with torch.no_grad(), noise:
            return torch.ops.aten.convolution_backward(
                *(gradient, inputs, layer.weight, [64], [1, 1], [0, 0], [1, 1]),
                *(False, [0, 0], 64, [True, True, True]),
            )

    exact = gradients(nullcontext())
    for share, most in ((1e-8, 1.0), (1e-3, 0.01)):
        noisy = gradients(RoundingNoise(share, 0, sums_round=sums_round))
        for factor, result, right in zip((1.0, weights, bias), noisy, exact, strict=True):
            largest = float(((result - right).abs() / right.abs()).max())
            assert largest <= min(factor * share, most) * (1 + 1e-6)
            assert largest >= 0.8 * min(factor * share, most)

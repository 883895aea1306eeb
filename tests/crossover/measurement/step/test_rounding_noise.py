"""The noise after each operation of the numerical check."""

from __future__ import annotations

import pytest
import torch

from crossover.measurement.step.rounding_noise import PERIOD, RoundingNoise

SHARE = 2.0**-10


def fractions(count: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(0)).to(dtype) + 1.25


@pytest.mark.parametrize("count", [1, 1000, PERIOD, 3 * PERIOD + 7])
def test_each_value_gets_noise_of_its_own(count: int) -> None:
    values = fractions(count)
    with RoundingNoise(SHARE, 0):
        doubled = values * 2
    off = doubled / (2 * values) - 1
    assert 0 < off.abs().max() <= SHARE
    if count > 1:
        assert off.std() == pytest.approx(SHARE / 3**0.5, rel=0.1)  # uniform noise
    assert torch.equal(values, fractions(count))


def test_every_operation_of_both_passes_adds_noise() -> None:
    """Two for (1.5 x) 0.7 and two for its gradient: together by the root of 2 more than one."""
    x = fractions(1000).requires_grad_()
    with RoundingNoise(SHARE, 0):
        y = x * 1.5 * 0.7
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(x))
    for found, exact in ((y, x * 1.05), (gradient, 1.05)):
        assert (found / exact - 1).detach().std() == pytest.approx(SHARE * (2 / 3) ** 0.5, rel=0.1)


def test_whole_numbers_views_and_other_types_stay_as_they_are() -> None:
    mask = torch.tensor([0.0, 1.0, -torch.inf, 3.0])
    values = fractions(6)
    with RoundingNoise(SHARE, 0):
        assert torch.equal(mask.repeat(2).clone(), torch.cat([mask, mask]))
        assert values.view(2, 3).t()[1, 0].data_ptr() == values[1:].data_ptr()
        assert torch.equal(torch.arange(3) * 2, torch.tensor([0, 2, 4]))
        assert torch.equal(torch.full((3,), 0.5), torch.tensor([0.5] * 3))  # which no rounding has touched
        assert (values * 1j).is_complex()
    assert torch.equal(values, fractions(6))


def test_noise_is_at_least_the_rounding_of_a_coarser_type() -> None:
    """2^-50 is nothing to fp32, whose values lie 2^-23 apart."""
    values = fractions(1000, torch.float32)
    with RoundingNoise(2.0**-50, 0):
        assert not torch.equal(values * 2, 2 * values.double())

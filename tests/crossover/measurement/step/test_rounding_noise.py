"""Noise after each operation: how large it is, and what it leaves alone."""

from __future__ import annotations

import pytest
import torch

from crossover.measurement.step.rounding_noise import PERIOD, RoundingNoise

SHARE = 2.0**-10


def fractions(count: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(0)).to(dtype) + 1.25


@pytest.mark.parametrize("count", [1, 1000, PERIOD, 3 * PERIOD + 7])
def test_each_value_is_off_by_a_share_of_its_own(count: int) -> None:
    values = fractions(count)
    with RoundingNoise(SHARE, 0):
        doubled = values * 2
    off = doubled / (2 * values) - 1
    assert 0 < off.abs().max() <= SHARE
    if count > 1:
        assert off.std() == pytest.approx(SHARE / 3**0.5, rel=0.1)  # of evenly spread noise
    assert torch.equal(values, fractions(count))


def test_every_operation_of_both_passes_adds_noise_of_its_own() -> None:
    """Two for (1.5 x) 0.7 and two for its gradient: together by the root of 2 more than one."""
    x = fractions(1000).requires_grad_()
    with RoundingNoise(SHARE, 0):
        y = x * 1.5 * 0.7
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(x))
    for found, exact in ((y, x * 1.05), (gradient, 1.05)):
        assert (found / exact - 1).detach().std() == pytest.approx(SHARE * (2 / 3) ** 0.5, rel=0.1)


def test_a_seed_gives_the_same_noise_again() -> None:
    def once(seed: int) -> torch.Tensor:
        with RoundingNoise(SHARE, seed):
            return fractions(100) * 2

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))


def test_whole_numbers_views_and_other_types_stay_as_they_are() -> None:
    mask = torch.tensor([0.0, 1.0, -torch.inf, 3.0])
    values = fractions(6)
    with RoundingNoise(SHARE, 0):
        assert torch.equal(mask.repeat(2).clone(), torch.cat([mask, mask]))
        assert values.view(2, 3).t()[1, 0].data_ptr() == values[1:].data_ptr()
        assert torch.equal(torch.arange(3) * 2, torch.tensor([0, 2, 4]))
        assert torch.equal(torch.full((3,), 0.5), torch.tensor([0.5] * 3))  # which no rounding has touched
        assert (values * 1j).is_complex()
        assert values[0].item() == 1.25 + torch.rand(1, generator=torch.Generator().manual_seed(0)).item()


def test_an_operation_in_place_and_in_any_layout_gets_noise() -> None:
    values = fractions(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    exact = values * 2
    with RoundingNoise(SHARE, 0):
        values.mul_(2)
    assert 0 < (values / exact - 1).abs().max() <= SHARE
    assert values.is_contiguous(memory_format=torch.channels_last)


def test_a_coarser_type_within_the_model_is_rounded_as_it_is() -> None:
    """2^-50 is nothing to fp32, whose values lie 2^-23 apart."""
    values = fractions(1000, torch.float32)
    with RoundingNoise(2.0**-50, 0):
        assert not torch.equal(values * 2, 2 * values.double())

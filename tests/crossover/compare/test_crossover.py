"""The crossover of two sides, checked by algebra for trials without spread, otherwise by brute force and Welch's t."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.interpolate import PchipInterpolator

from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossover_curve import LEVEL, MOST_WRONG, STAIR, Advantages, advantages_of_table
from crossover.compare.intervals import CLOCK_RESOLUTION, ENERGY_RESOLUTION, SampleMean, sure_signs

Trials = Mapping[float, tuple[Sequence[float], Sequence[float]]]
"""Seconds of the trials of the CPU and of the GPU, by size."""


def table(cells: Trials) -> pd.DataFrame:
    rows = [
        (size, side, trial, seconds)
        for size, sides in cells.items()
        for side, times in zip(("cpu", "gpu"), sides, strict=True)
        for trial, seconds in enumerate(times, start=1)
    ]
    return pd.DataFrame(rows, columns=["size", "side", "trial", "step_time_s"])


def estimate(cells: Trials) -> Crossover:
    return crossover_of(advantages_of_table(table(cells), "cpu", "gpu"))


def ends(result: Crossover) -> tuple[float, float]:
    assert result.low is not None
    assert result.high is not None
    return result.low, result.high


def around(ratio: float, spread: float = 0.05, trials: int = 3) -> tuple[list[float], list[float]]:
    """Trials of a CPU around `ratio` seconds and of a GPU around 1 s, evenly spaced on the log scale."""
    steps = np.linspace(-1, 1, trials) * spread
    return list(ratio * np.exp(steps)), list(np.exp(-steps))


SIZES = (1, 2, 4, 8)


def ratio(*ratios: float | None) -> Crossover:
    """The crossover from single trials: the GPU takes 1 s, the CPU these times at sizes 1, 2, 4, 8."""
    return estimate(
        {size: ([] if cpu_s is None else [cpu_s], [1.0]) for size, cpu_s in zip(SIZES, ratios, strict=True)}
    )


@given(
    exponent=st.floats(0.5, 3),
    crossing=st.floats(4.4, 225),
    scale=st.floats(1e-7, 1e3),
)
def test_power_laws_cross_where_algebra_says(exponent: float, crossing: float, scale: float) -> None:
    sizes = [2.0**k for k in range(11)]
    result = estimate({n: ([scale * (n / crossing) ** exponent], [scale]) for n in sizes})
    assert result.status == "bracketed"
    assert result.size == pytest.approx(crossing, rel=1e-6)
    assert (result.low, result.high) == (None, None)
    assert result.bracket is not None
    assert result.bracket[0] <= result.size <= result.bracket[1]


@pytest.mark.parametrize(
    ("ratios", "status"),
    [
        ((0.5, 0.8, 2, 4), "bracketed"),
        ((0.5, 1, 2, 4), "bracketed"),  # the tie is the crossover
        ((0.5, 1, 0.5, 0.2), "above_range"),  # touching a tie is not a crossing
        ((2, 3, 4, 5), "below_range"),
        ((0.1, 0.2, 0.3, 0.6), "edge_tie"),  # a lead below twice is not significant for single trials
        ((0.9, 1.1, 0.9, 1.1), "undecided"),
        ((4, 2, 0.8, 0.5), "reversed"),
        ((0.5, 2, 0.5, 2), "multiple"),
        ((1, 1, 1, 1), "undecided"),
        ((0.2, 0.4, 0.8, 1), "edge_tie"),
        ((0.5, None, 2, 4), "incomplete"),
        ((0.1, 0.2, 0.3, None), "incomplete"),
    ],
)
def test_statuses(ratios: tuple[float | None, ...], status: str) -> None:
    result = ratio(*ratios)
    assert result.status == status
    assert (result.size is not None) == (status in ("bracketed", "reversed"))


@pytest.mark.parametrize(
    ("ratios", "bracket"),
    [
        ((0.4, 0.49, 2.1, 4), (2, 4)),
        ((0.4, 1.1, 0.9, 4), (1, 8)),
        ((3, 2.1, 0.6, 0.4), (2, 8)),
        ((0.4, 0.49, 0.9, 1.1), (2, None)),
        ((1.1, 2, 4, 1.1), None),
    ],
)
def test_single_trials_are_bracketed_by_sufficient_leads(
    ratios: tuple[float, ...], bracket: tuple[float | None, float | None] | None
) -> None:
    assert ratio(*ratios).bracket == bracket


def test_all_roots_of_several_crossings_are_given() -> None:
    """By PCHIP's slopes, the root of the middle gap is halfway; in the outer gaps -2 u^2 + 4 u - 1 = 0."""
    result = ratio(0.5, 2, 0.5, 2)
    u = 1 - math.sqrt(0.5)
    assert result.roots == (pytest.approx(2**u), pytest.approx(math.sqrt(8)), pytest.approx(8 * 2**-u))


@pytest.mark.parametrize("size", [math.nan, math.inf, 0.0])
def test_an_invalid_size_is_an_error(size: float) -> None:
    with pytest.raises(ValueError, match="a finite number above 0"):
        estimate({size: ([1.0], [1.0])})


@settings(max_examples=20)
@given(st.permutations(range(16)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    cells = {size: ([ratio, ratio * 1.1], [1.0, 1.1]) for size, ratio in zip(SIZES, (0.5, 0.8, 2, 4), strict=True)}
    assert crossover_of(advantages_of_table(table(cells).iloc[order], "cpu", "gpu")) == estimate(cells)


def drawn(seed: int, sizes: Sequence[float], trials: int = 4, noise: float = 0.08) -> Trials:
    """Trials of a CPU with a knee and a GPU with a constant part, which cross near 130."""
    draw = np.random.default_rng(seed)
    return {
        size: tuple(
            list(truth * np.exp(draw.normal(0, noise, draw.integers(2, trials + 1))))
            for truth in (size * (1 + size / 200) / 200, 1 + size / 2000)
        )
        for size in sizes
    }


GRID = (5, 10, 32, 100, 133, 180, 320, 1000, 2000)


def shared_spread(side: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Squared standard errors and degrees of freedom of a side, by limma's squeezeVar with at most 4 degrees of freedom
    of the prior; no variance becomes smaller than the cell's own.
    """
    freedom = np.array([len(logs) - 1 for logs in side])
    variances = np.array([logs.var(ddof=1) for logs in side])
    gamma = stats.loggamma(freedom / 2)
    e = np.log(variances) - gamma.mean() + np.log(freedom / 2)
    excess = e.var(ddof=1) - gamma.var().mean()
    prior, common = 4.0, (variances * freedom).sum() / freedom.sum()
    if excess > 0:
        half = optimize.brentq(lambda x: stats.loggamma.var(x) - excess, 1e-3, 1e6)
        common = np.exp(e.mean() + stats.loggamma.mean(half)) / half
        prior = min(prior, 2 * half)
    squeezed = (prior * common + freedom * variances) / (prior + freedom)
    return np.maximum(squeezed, variances) / (freedom + 1), np.minimum(prior + freedom, freedom.sum())


def shared_spreads(cells: Trials) -> tuple[np.ndarray, np.ndarray]:
    sides = [shared_spread([np.log(cells[size][side]) for size in sorted(cells)]) for side in (0, 1)]
    variances, freedom = zip(*sides, strict=True)
    return np.column_stack(variances), np.column_stack(freedom)


def independent(cells: Trials) -> tuple[float, float, float]:
    """Root and ends of the connected part of the set, by brute force on 3,001 points."""
    x = np.log(sorted(cells))
    logs = [[np.log(side) for side in cells[size]] for size in sorted(cells)]
    mean = np.array([base.mean() - gpu.mean() for base, gpu in logs])
    parts, freedom = shared_spreads(cells)
    points = np.linspace(x[0], x[-1], 3_001)
    curve = PchipInterpolator(x, mean)(points)
    inside = []
    for point, value in zip(points, curve, strict=True):
        j = min(int(np.searchsorted(x, point, side="right")) - 1, len(x) - 2)
        w = (point - x[j]) / (x[j + 1] - x[j])
        weighed = np.array([(1 - w) ** 2, w**2])[:, None] * parts[j : j + 2]
        t = stats.t.ppf((1 + LEVEL) / 2, weighed.sum() ** 2 / (weighed**2 / freedom[j : j + 2]).sum())
        line = (1 - w) * mean[j] + w * mean[j + 1]
        bend = abs(value - line)
        if 0 < j < len(x) - 2:
            before, slope, after = np.abs(np.diff(mean) / np.diff(x))[j - 1 : j + 2]
            if slope > STAIR * max(before, after):
                bend = math.inf
            # the nearer of both neighbouring lines if they are on the same side of `line`
            led = [np.polyval(np.polyfit(x[k : k + 2], mean[k : k + 2], 1), point) for k in (j - 1, j + 1)]
            if (led[0] > line) == (led[1] > line):
                bend = max(bend, abs(value - min(led, key=lambda end: abs(end - line))))
        inside.append(abs(value) <= t * math.sqrt(weighed.sum()) + bend)
    root = int(np.flatnonzero(np.diff(np.sign(curve)))[0])
    outside = np.flatnonzero(~np.array(inside))
    low, high = outside[outside < root].max(), outside[outside > root].min()
    scanned = np.exp(points[[root, low, high]])
    return float(scanned[0]), float(scanned[1]), float(scanned[2])


@pytest.mark.parametrize(("seed", "noise"), [(3, 0.08), (4, 0.001), (8, 0.001)])
def test_the_root_and_the_set_agree_with_a_brute_force_scan(seed: int, noise: float) -> None:
    cells = drawn(seed, GRID, noise=noise)
    result = estimate(cells)
    root, low, high = independent(cells)
    assert result.status == "bracketed"
    assert (result.size, result.low, result.high) == pytest.approx((root, low, high), rel=3e-3)
    assert noise < 0.01 or low < 0.99 * root < root < 0.99 * high


CLEAR = {1: around(0.2), 2: around(0.5), 4: around(2.0), 8: around(4.0)}


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 0.0])
def test_an_invalid_time_counts_as_missing(seconds: float) -> None:
    assert estimate({**CLEAR, 16: ([seconds] * 3, [1.0] * 3)}).high == estimate(CLEAR).high


def test_variances_and_significant_signs_agree_with_welch_for_shared_spreads() -> None:
    cells = drawn(1, GRID, trials=5, noise=0.3)
    advantages = advantages_of_table(table(cells), "cpu", "gpu")
    parts, freedom = shared_spreads(cells)
    welch = parts.sum(axis=1) ** 2 / (parts**2 / freedom).sum(axis=1)
    assert advantages.variance == pytest.approx(parts.sum(axis=1))
    assert advantages.variance**2 / advantages.fourth == pytest.approx(welch)
    chances = stats.t.sf(np.abs(advantages.mean) / np.sqrt(parts.sum(axis=1)), welch)
    sure = list(chances < MOST_WRONG / len(GRID))
    assert list(advantages.sure_signs() != 0) == sure
    assert 0 < sum(sure) < len(GRID)


@pytest.mark.parametrize("together", [1, 4])
def test_a_sign_is_significant_from_its_corrected_quantile_on(together: int) -> None:
    """With one degree of freedom, t has Cauchy's distribution, with quantiles tan(pi (p - 1/2)); p = 1 - 0.025 / 3."""
    quantile, ones = math.tan(math.pi * (0.5 - 0.025 / 3 / together)), np.ones(3)
    mean = np.array([1.001, 0.999, -1.001]) * quantile
    advantages = Advantages(np.array([1.0, 2.0, 4.0]), mean, ones, ones, (), together=together)
    assert advantages.sure_signs().tolist() == [1, 0, -1]


@pytest.mark.parametrize("together", [1, 4])
def test_stepwise_signs_are_corrected_for_undecided_sizes_only(together: int) -> None:
    """With one degree of freedom; the second size is corrected for two, once the first of three is significant."""
    quantiles = [math.tan(math.pi * (0.5 - 0.025 / left / together)) for left in (3, 2, 1)]
    mean, ones = np.array(quantiles) * [1.001, -1.001, 0.999], np.ones(3)
    advantages = Advantages(np.array([1.0, 2.0, 4.0]), mean, ones, ones, (), together=together)
    assert sure_signs(mean, advantages.stepwise_errors()).tolist() == [1, -1, 0]
    assert advantages.sure_signs().tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("ratios", "status"),
    [
        ((0.2, 0.5, 2, 4), "bracketed"),
        ((0.2, 0.97, 1.03, 4), "bracketed"),  # undecided sizes near the crossing
        ((4, 2, 0.5, 0.2), "reversed"),
        ((0.2, 0.3, 0.4, 0.5), "above_range"),
        ((0.2, 0.3, 0.5, 0.97), "edge_tie"),
        ((0.2, 0.3, 0.5, 1.03), "edge_tie"),  # a sign that is not significant does not count
        ((0.98, 1.02, 1.01, 0.99), "undecided"),
        ((0.2, 4, 0.2, 4), "multiple"),
        ((4, 0.98, 3, 4), "undecided"),  # may cross and cross back
        ((4, 1.02, 3, 4), "below_range"),
    ],
)
def test_statuses_depend_on_significant_signs(ratios: tuple[float, ...], status: str) -> None:
    result = estimate({size: around(ratio) for size, ratio in zip((1, 2, 4, 8), ratios, strict=True)})
    assert result.status == status
    assert (result.size is not None) == (status in ("bracketed", "reversed"))
    assert (result.low is not None and result.high is not None) == (status in ("bracketed", "reversed"))


def stairs(*ratios: float) -> Crossover:
    """The crossover from three trials of a CPU that takes these times at sizes 1, 2, 4, ...; the GPU takes 1 s."""
    return estimate({2.0**power: around(ratio, 0.02) for power, ratio in enumerate(ratios)})


def test_at_a_stair_the_interval_is_the_whole_gap() -> None:
    """Two gaps without slope surround one in which the CPU's time grows 1.96-fold; its ends are significant."""
    stair = stairs(0.7, 0.7, 1 / 1.4 + 0.001, 1.4, 1.4, 1.4)
    assert (stair.low, stair.high, stair.bracket, stair.sure) == (4, 8, (4, 8), (4, 8))
    turned = stairs(1.4, 1.4, 1.4, 0.7, 0.7, 0.7)
    assert (turned.status, turned.low, turned.high, turned.sure) == ("reversed", 4, 8, (4, 8))
    # Between equally steep gaps, L = (power - 2.5) ln 1.4 has a narrow interval around its zero.
    low, high = ends(stairs(*(1.4 ** (power - 2.5) for power in range(6))))
    assert 4 * 1.1 < low < high < 8 / 1.1


def test_a_gap_is_a_stair_if_it_is_more_than_1_5_times_as_steep_as_both_beside_it() -> None:
    """The gap from 4 to 8 rises by ln 1.96; its neighbours by 1 / 1.6, 1 / 1.4 or all of this."""
    for before, after, is_stair in ((1.6, 1.6, True), (1.4, 1.6, False), (1.6, 1.4, False), (1.6, 1.0, False)):
        rises = np.log(1.96) * np.array([1 / before, 1, 1 / after])
        logs = -np.log(1.4) + np.concatenate([[-rises[0] * 2, -rises[0], 0], np.cumsum(rises[1:])])
        result = stairs(*np.exp(logs))
        assert ((result.low, result.high) == (4, 8)) == is_stair


def test_the_set_goes_on_beyond_a_stair_whose_end_is_not_significant() -> None:
    low, high = ends(stairs(0.7, 0.7, 0.7, 1.01, 1.02, 1.4))
    assert low == 4
    assert high > 16


def test_the_sure_sizes_are_the_nearest_with_significant_signs() -> None:
    around_tie = stairs(0.4, 0.7, 0.99, 1.01, 1.4, 2.0)
    assert (around_tie.bracket, around_tie.sure) == ((4, 8), (2, 16))
    assert (around_tie.slower_up_to, around_tie.faster_from) == (2, 16)
    assert ratio(0.4, 0.49, 2.1, 4).sure is None  # single trials


def test_an_edge_tie_bounds_one_side() -> None:
    """The GPU is significantly slower up to 4 and undecided at 8, or faster from 2 and undecided at 1."""
    above = estimate({1: around(0.2), 2: around(0.3), 4: around(0.5), 8: around(0.97)})
    assert (above.low, above.high) == (4, None)
    below = estimate({1: around(1.03), 2: around(2), 4: around(3), 8: around(4)})
    assert (below.low, below.high) == (None, 2)
    both = estimate({1: around(1.03), 2: around(2), 4: around(2), 8: around(1.03)})
    assert (both.low, both.high) == (None, None)
    assert (above.caveat_at, below.caveat_at, both.caveat_at) == ((8,), (1,), (1, 8))
    middle = estimate({1: around(0.2), 2: around(0.97), 4: around(0.5), 8: around(0.97)})
    assert (middle.low, middle.caveat_at) == (4, (2, 8))
    assert above.caveat == below.caveat == both.caveat == "unsure_sizes"


def test_crossings_added_by_noise_count_as_one() -> None:
    """L changes its sign three times between 2 and 5, without significance; the set includes these sizes."""
    cells = {1: 0.2, 2: 0.97, 3: 1.03, 4: 0.97, 5: 1.03, 8: 4.0}
    result = estimate({size: around(ratio, 0.1) for size, ratio in cells.items()})
    assert result.status == "bracketed"
    assert result.bracket == (3, 4)
    assert len(result.roots) == 1
    low, high = ends(result)
    assert low < 2 < 5 < high


def test_a_size_with_one_trial_counts_with_the_spread_of_the_others() -> None:
    """It bounds the set, but less tightly than three trials."""
    cells = {1: around(0.15), 2: around(0.5), 4: ([2.0], [1.0]), 8: around(4), 16: around(5)}
    single, three = ends(estimate(cells)), ends(estimate({**cells, 4: around(2)}))
    assert 2.5 < single[0] < three[0]
    assert three[1] < single[1] < 3.3


def test_the_interval_of_equal_trials_depends_on_the_resolution_of_the_cost() -> None:
    """L is -2 ln 2, -ln 2, ln 2 and 2 ln 2 at four sizes: a straight line, so it is 0 midway between the middle two."""
    sides = {1: (1.0, 4.0), 2: (1.0, 2.0), 8: (2.0, 1.0), 16: (4.0, 1.0)}
    trials = table({size: ([cpu] * 3, [gpu] * 3) for size, (cpu, gpu) in sides.items()})
    for resolution in (CLOCK_RESOLUTION, ENERGY_RESOLUTION):
        low, high = ends(crossover_of(advantages_of_table(trials, "cpu", "gpu", resolution)))
        assert low < 4 < high
        # Variance of the four sides at the middle: 4 resolution^2 / 6 / 4; slope 1. The spread is shared over sizes,
        # so there are more degrees of freedom than the 16 of the two sizes, and at most the 32 of all.
        most, least = (stats.t.ppf((1 + LEVEL) / 2, degrees) * resolution / math.sqrt(6) for degrees in (16, 32))
        assert 2 * least <= math.log(high / low) <= 2 * most


def test_between_two_sizes_only_the_sizes_bound_the_crossover() -> None:
    """No other gap tells how the advantage runs between them."""
    assert ends(estimate({64: around(0.3), 4096: around(4.0)})) == (64, 4096)


def test_an_error_that_sizes_share_widens_the_set_by_its_quantile() -> None:
    """L is ln(size / 4), a straight line, and its trials are equal: the set ends where L is a quantile of the error."""
    trials = table({size: ([size / 4] * 3, [1.0] * 3) for size in (1, 2, 8, 16)})
    advantages = replace(advantages_of_table(trials, "cpu", "gpu"), deviation=np.full(4, 0.1))
    result = crossover_of(advantages)
    quantile = stats.norm.ppf((1 + LEVEL) / 2)
    assert ends(result) == (pytest.approx(4 * math.exp(-0.1 * quantile)), pytest.approx(4 * math.exp(0.1 * quantile)))
    assert crossover_of(replace(advantages, deviation=np.full(4, 0.6))).unsure == (1, 2, 8, 16)
    assert advantages.p_value() == pytest.approx(4 * 2 * stats.norm.sf(math.log(4) / 0.1))


def test_single_trials_of_the_baseline_count_with_the_spread_that_is_given() -> None:
    trials = table({1: ([0.1], [1.0] * 3), 2: ([0.4], [1.0] * 3), 8: around(2.0), 16: ([9.0], [1.0] * 3)})
    spread = SampleMean(0.0, 0.04, 30)
    advantages = advantages_of_table(trials, "cpu", "gpu", spread=spread)
    own = advantages_of_table(trials, "cpu", "gpu")
    assert not own.has_intervals
    assert advantages.variance[[0, 1, 3]] == pytest.approx([0.04] * 3)
    assert advantages.variance[2] == own.variance[2] < 0.01


HOLE = ([1.0, 1.1], [])


@pytest.mark.parametrize(
    ("cells", "status", "caveat", "at"),
    [
        ({1: HOLE, 2: ([], [1.0])}, "incomplete", "no_common_size", []),
        ({1: around(0.2), 2: around(0.5), 3: HOLE, 4: around(2), 8: around(4)}, "incomplete", "lost_between", [3]),
        ({1: around(0.2), 2: HOLE, 4: around(4), 8: around(0.2)}, "multiple", "lost_between", [2]),
        ({1: HOLE, 2: around(2), 4: around(3)}, "incomplete", "lost_beyond", [1]),
        ({1: around(0.2), 2: around(4), 4: around(3), 8: around(0.98)}, "bracketed", "may_cross_again", [7.93]),
        ({1: around(4), 2: around(0.98), 4: around(3), 8: around(4)}, "undecided", "may_cross_back", [2]),
        ({1: around(4), 2: around(1.02), 4: around(3), 8: around(4)}, "below_range", "unsure_sizes", [2]),
    ],
)
def test_a_caveat_has_its_sizes(cells: Trials, status: str, caveat: str | None, at: list[float]) -> None:
    result = estimate(cells)
    assert (result.status, result.caveat) == (status, caveat)
    assert list(result.caveat_at) == pytest.approx(at, abs=0.005)
    assert (result.size is None) == (status != "bracketed")  # a missing side is not filled in


TURNED = {"bracketed": "reversed", "below_range": "above_range"}
TURNED |= {after: before for before, after in TURNED.items()}


@pytest.mark.parametrize("seed", range(60))
def test_swapping_the_sides_inverts_the_crossover(seed: int) -> None:
    """Also with missing, tied or single trials. An interval contains its crossover and is within the measured range."""
    draw = np.random.default_rng(seed)
    cells = {}
    for size in sorted(draw.choice(np.arange(1, 100), 6, replace=False).tolist()):
        truths = (size / 30) ** draw.choice([0, 1, 1, 1]), 1.0
        counts = draw.choice([0, 1, 2, 3, 5], size=2, p=[0.02, 0.08, 0.2, 0.5, 0.2])
        cells[size] = tuple(
            (truth * np.exp(draw.normal(0, 0.1 * (seed % 4 > 0), count))).tolist()
            for truth, count in zip(truths, counts, strict=True)
        )
    there, back = estimate(cells), crossover_of(advantages_of_table(table(cells), "gpu", "cpu"))
    if "incomplete" in (there.status, back.status):  # a crossover beyond the measured range is possible at one end only
        return
    assert back.status == TURNED.get(there.status, there.status)
    for first, second in ((there.low, back.low), (there.high, back.high), (there.size, back.size)):
        assert (first is None) == (second is None)
        assert first is None or first == pytest.approx(second)
    if there.size is not None and there.low is not None:
        places = np.array([min(cells), *ends(there), max(cells)])
        assert (np.diff(places) >= -1e-6 * places[1:]).all()
        assert places[1] * 0.999999 <= there.size <= places[2] * 1.000001

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.config.words import AXES
from crossover.statistics.run_comparison import (
    AMBIGUOUS,
    COMPARISON_COLUMNS,
    FASTER,
    MISSING,
    SAME,
    SLOWER,
    Summary,
    compare_runs,
    compare_times,
    summary,
)

Row = Callable[..., dict[str, Any]]


def pair(centre: float, half_width: float) -> list[float]:
    """Two trials against [1, 1]: the interval of the ratio is centre * exp(+-half_width); 1 degree of freedom."""
    d = half_width / 12.706205
    return [centre * math.exp(-d), centre * math.exp(d)]


@pytest.mark.parametrize(
    ("centre", "half_width", "verdict"),
    [
        (1.0, 0.0190, SAME),
        (1.0, 0.0205, AMBIGUOUS),
        (1.01, 0.005, SAME),  # excludes 1, but by too little to matter
        (1 / 1.01, 0.005, SAME),
        (1.015, 0.006, SLOWER),  # reaches beyond 2 %
        (1 / 1.015, 0.006, FASTER),
        (2.0, 0.5, SLOWER),
        (0.5, 0.5, FASTER),
        (2.0, 0.7, AMBIGUOUS),
        (0.5, 0.7, AMBIGUOUS),
    ],
)
def test_verdicts_by_hand(centre: float, half_width: float, verdict: str) -> None:
    found = compare_times([1.0, 1.0], pair(centre, half_width))
    assert (found.low, found.high) == (
        pytest.approx(centre * math.exp(-half_width)),
        pytest.approx(centre * math.exp(half_width)),
    )
    assert found.verdict == verdict


@pytest.mark.parametrize(("second", "ratio"), [([2.0], 2), ([], None)])
def test_one_trial_or_none_is_ambiguous(second: list[float], ratio: float | None) -> None:
    found = compare_times([1.0, 1.0], second)
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert (found.low, found.high, found.verdict) == (None, None, AMBIGUOUS)


def verdicts_of(sd: float, trials: int, difference: float = 0.0, repeats: int = 2000) -> dict[str, float]:
    """Shares of the verdicts where processes scatter by `sd` and the second side takes exp(difference) as long."""
    random = np.random.default_rng(0)
    firsts = np.exp(random.normal(0, sd, (repeats, trials)))
    seconds = np.exp(random.normal(difference, sd, (repeats, trials)))
    found = [compare_times(*sides).verdict for sides in zip(firsts.tolist(), seconds.tolist(), strict=True)]
    return {verdict: found.count(verdict) / repeats for verdict in (FASTER, SLOWER, SAME, AMBIGUOUS)}


@pytest.mark.parametrize("trials", [3, 5])
def test_like_sides_are_rarely_told_apart(trials: int) -> None:
    share = verdicts_of(sd=0.05, trials=trials)
    assert 0.01 < share[FASTER] + share[SLOWER] < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_steady_like_sides_are_the_same() -> None:
    assert verdicts_of(sd=0.003, trials=5)[SAME] > 0.95


def test_a_real_difference_is_found_on_its_side() -> None:
    assert verdicts_of(sd=0.01, trials=3, difference=math.log(1.1))[SLOWER] > 0.97
    assert verdicts_of(sd=0.01, trials=3, difference=-math.log(1.1))[FASTER] > 0.97


def run(row: Row, times: dict[int, list[float]], **values: Any) -> pd.DataFrame:
    """Trials of a run: their times by size."""
    return pd.DataFrame(
        [
            row(size=size, trial=trial, step_time_s=time, **values)
            for size, own in times.items()
            for trial, time in enumerate(own, start=1)
        ]
    )


def test_runs_are_compared_cell_by_cell(row: Row) -> None:
    first = run(row, {3: [1.0, 1.001], 2: [1.0, 1.001]})
    second = run(row, {2: [1.0, 1.001, 0.999], 3: [2.0, 2.001]})
    comparison = compare_runs(first, second)
    assert list(comparison.columns) == [*AXES, *COMPARISON_COLUMNS]
    assert comparison["size"].tolist() == [3, 2]
    assert comparison["verdict"].tolist() == [SLOWER, SAME]
    assert comparison["ratio"].tolist() == pytest.approx([2, 1], rel=1e-3)
    assert comparison["within"].tolist() == [False, True]
    assert comparison["trials_first"].tolist() == [2, 2]
    assert comparison["trials_second"].tolist() == [2, 3]
    assert comparison["missing_in"].isna().all()


@pytest.mark.parametrize("axis", [axis for axis in AXES if axis not in ("batch_size", "size")])
def test_cells_that_differ_in_any_axis_are_not_compared(row: Row, axis: str) -> None:
    first = run(row, {2: [1.0, 1.0]})
    comparison = compare_runs(first, first.assign(**{axis: "x"}))
    assert comparison["verdict"].tolist() == [MISSING, MISSING]
    assert comparison["missing_in"].tolist() == ["second", "first"]
    assert comparison["ratio"].isna().all()
    assert comparison["trials_first"].tolist() == [2, 0]


def test_only_ok_trials_have_a_time(row: Row) -> None:
    first = run(row, {2: [1.0, 1.0]})
    failed = pd.DataFrame([row(size=2, trial=3, status="oom", step_time_s=None)])
    (partly,) = compare_runs(first, pd.concat([first, failed])).to_dict("records")
    assert (partly["trials_second"], partly["status_second"], partly["verdict"]) == (2, "ok oom", SAME)
    (never,) = compare_runs(first, failed).to_dict("records")
    assert (never["trials_second"], never["status_second"], never["verdict"]) == (0, "oom", AMBIGUOUS)
    assert pd.isna(never["ratio"])


def test_the_summary_by_hand(row: Row) -> None:
    """Ratios 1/4, 1/2, 1, 2, 16: their logs to base 2 are -2, -1, 0, 1, 4, with the mean 0.4; only 1 holds 1."""
    ratios = dict(enumerate([1.0, 0.25, 16.0, 0.5, 2.0], start=1))
    first = run(row, {**{size: [1.0, 1.0] for size in ratios}, 8: [1.0, 1.0], 9: [1.0, 1.0]})
    second = run(row, {**{size: [ratio, ratio] for size, ratio in ratios.items()}, 9: [math.nan]}, status="ok")
    second.loc[second["size"] == 9, "status"] = "timeout"
    found = summary(compare_runs(first, second))
    assert (found.cells, found.intervals, found.share_within) == (5, 5, pytest.approx(0.2))
    assert found.geometric_mean == pytest.approx(2**0.4)
    quantiles = (found.minimum, found.lower_quartile, found.median, found.upper_quartile, found.maximum)
    assert quantiles == pytest.approx((0.25, 0.5, 1, 2, 16))


def test_nothing_in_common_is_a_summary_too(row: Row) -> None:
    comparison = compare_runs(run(row, {2: [1.0, 1.0]}), run(row, {3: [1.0, 1.0]}))
    assert summary(comparison) == Summary(0, None, None, None, None, None, None, 0, None)

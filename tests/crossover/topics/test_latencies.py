from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.tables.frames import records
from crossover.topics.latency.table import COLD, MISTAKES, latencies_of

Row = Callable[..., dict[str, Any]]
TRANSFER, _, UNSYNCHRONISED = MISTAKES


def methods(*rows: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {latencies["method"]: latencies for latencies in records(latencies_of(pd.DataFrame(rows)))}


def test_samples_of_ok_trials_are_pooled(row: Row) -> None:
    by_method = methods(
        row(trial=1, latencies_s=[1.0, 2.0]),
        row(trial=2, latencies_s=[3.0]),
        row(trial=3, latencies_s=[90.0], status="invalid"),
        row(trial=4),
    )
    ((right),) = by_method.values()
    assert (right["kind"], right["samples"], right["trials"], right["ratio"]) == ("right", 3, 2, None)
    assert [right[f"{name}_s"] for name in ("mean", "deviation", "low", "high")] == pytest.approx([2, 1, 1, 3])
    # Linear between 1, 2 and 3: percentile p lies at 1 + 2 p.
    quantiles = [right[f"{name}_s"] for name in ("p5", "q1", "median", "q3", "p95")]
    assert quantiles == pytest.approx([1.1, 1.5, 2, 2.5, 2.9])
    assert right["latency_p50_s"] is None  # too few samples


def percentiles(latencies: dict[str, Any], percent: int) -> list[float | None]:
    return [latencies[f"latency_p{percent}{end}_s"] for end in ("", "_low", "_high")]


def test_a_percentile_over_trials_has_the_interval_of_trials(row: Row) -> None:
    """The trials' medians are 2 and 8; the interval is that of two trials, as for the ratios below."""
    by_method = methods(
        *(row(trial=trial, latencies_s=[0.1, *[median] * 98, 99.0]) for trial, median in ((1, 2.0), (2, 8.0)))
    )
    right = by_method["latencies_s"]
    assert right["percentiles_over"] == "trials"
    ends = [4, 2 ** (2 - 12.7062), 2 ** (2 + 12.7062)]
    assert percentiles(right, 50) == percentiles(right, 95) == pytest.approx(ends, rel=1e-4)
    assert percentiles(right, 99) == [None] * 3  # 100 samples are too few


def test_the_percentile_of_one_trial_has_the_interval_of_its_steps(row: Row) -> None:
    """For samples 0 to 400; the ranks are those in tests/crossover/test_percentiles.py."""
    right = methods(row(latencies_s=[float(number) for number in range(401)]))["latencies_s"]
    assert right["percentiles_over"] == "steps"
    assert percentiles(right, 99) == [396, 392, 400]


def test_a_mistake_is_compared_within_each_trial(row: Row) -> None:
    """The ratios of the trials, 2 and 8, have the geometric mean 4; a trial without the mistake does not count."""
    by_method = methods(
        row(trial=1, latencies_s=[1.0, 3.0], latencies_transfer_s=[1.0, 7.0]),
        row(trial=2, latencies_s=[0.5], latencies_transfer_s=[4.0]),
        row(trial=3, latencies_s=[9.0]),
        row(trial=4, latencies_s=[1.0], latencies_transfer_s=[99.0], status="invalid"),
    )
    transfer = by_method[TRANSFER]
    assert (transfer["kind"], transfer["ratio"], transfer["is_error"]) == ("mistake", pytest.approx(4), False)
    # ln 2 and ln 8: mean 2 ln 2, standard error ln 2; Student's t of 0.975 with one degree of freedom is 12.706.
    assert transfer["ratio_high"] == pytest.approx(2 ** (2 + 12.7062), rel=1e-4)


def test_intervals_are_simultaneous_over_the_comparisons_of_a_study(row: Row) -> None:
    """With six comparisons, the quantile is 1 - 0.025 / 6."""
    rows = pd.DataFrame(
        [row(trial=trial, latencies_s=[1.0], latencies_transfer_s=[mean] * 2) for trial, mean in ((1, 2.0), (2, 8.0))]
    )
    # Student's t with one degree of freedom is Cauchy's distribution, whose quantiles are tan(pi (p - 1/2)).
    for together in (1, 6):
        (transfer,) = records(latencies_of(rows, {str(rows["study"].iloc[0]): together}).tail(1))
        quantile = math.tan(math.pi * (0.5 - 0.025 / together))
        assert math.log2(transfer["ratio_high"]) == pytest.approx(2 + quantile)
        assert math.log2(transfer["ratio_low"]) == pytest.approx(2 - quantile)


def test_without_warm_up_the_first_step_is_compared_with_the_median_of_later_ones(row: Row) -> None:
    """The first step takes 50 times the median of the last two, which a mean over many steps would hide."""
    rows = [
        row(trial=trial, latencies_s=[9.0 * pace], latencies_cold_s=[100.0 * pace, 8.0, 1.0 * pace, 3.0 * pace])
        for trial, pace in enumerate((1.0, 1.1, 0.9))
    ]
    cold = methods(*rows)[COLD]
    assert (cold["ratio"], cold["ratio_low"], cold["is_error"]) == (pytest.approx(50), pytest.approx(50), True)


def test_a_mistake_is_compared_with_as_many_correct_samples(row: Row) -> None:
    """The correct method goes on for 98 steps after the other one has ended, on a machine that has become slower."""
    right = [1.0, 1.0, *[3.0] * 98]
    table = methods(row(latencies_s=right, latencies_transfer_s=[2.0, 2.0]))
    assert table[TRANSFER]["ratio"] == pytest.approx(2)


def test_the_ratio_of_a_mistake_is_the_median_over_turns(row: Row) -> None:
    """In one of three turns the machine is four times as slow for the mistake, in another for the correct method.

    Within a turn, the mean counts: without synchronisation, a turn's first steps are short and its last ones long.
    """
    right, mistaken = [1.0] * 20 + [4.0] * 10, [0.5] * 5 + [1.1] * 5 + [3.2] * 10 + [0.8] * 10
    table = methods(row(latencies_s=right + [7.0] * 370, latencies_unsynchronised_s=mistaken))
    assert table[UNSYNCHRONISED]["ratio"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("method", "factors", "is_error"),
    [
        (TRANSFER, (1.5, 1.5), True),
        (TRANSFER, (0.7, 0.7), False),
        (UNSYNCHRONISED, (0.7, 0.7), True),
        (TRANSFER, (1.5,), False),  # one trial has no interval
    ],
)
def test_a_mistake_is_an_error_only_in_the_direction_in_which_it_can_move_the_mean(
    row: Row, method: str, factors: tuple[float, ...], is_error: bool
) -> None:
    rows = [row(trial=trial, latencies_s=[2.0], **{method: [2 * factor]}) for trial, factor in enumerate(factors)]
    assert methods(*rows)[method]["is_error"] is is_error

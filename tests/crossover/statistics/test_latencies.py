from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.statistics.latencies import MISTAKES, latencies_of
from crossover.tables.frames import records

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


def test_intervals_of_all_mistakes_of_a_machine_are_simultaneous(row: Row) -> None:
    """Machine a has three mistakes on two devices: the quantile is 1 - 0.025 / 6. Machine b has one."""
    rows = [
        row(machine=machine, device=device, trial=trial, latencies_s=[1.0], **dict.fromkeys(names, [mean] * 2))
        for machine, device, names in (("a", "cuda", MISTAKES), ("a", "xpu", MISTAKES), ("b", "cuda", [TRANSFER]))
        for trial, mean in ((1, 2.0), (2, 8.0))
    ]
    table = latencies_of(pd.DataFrame(rows)).set_index(["machine", "device", "method"])
    # Student's t with one degree of freedom is Cauchy's distribution, whose quantiles are tan(pi (p - 1/2)).
    for machine, comparisons in (("a", 6), ("b", 1)):
        transfer = table.loc[(machine, "cuda", TRANSFER)]
        quantile = math.tan(math.pi * (0.5 - 0.025 / comparisons))
        assert math.log2(transfer["ratio_high"]) == pytest.approx(2 + quantile)
        assert math.log2(transfer["ratio_low"]) == pytest.approx(2 - quantile)


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

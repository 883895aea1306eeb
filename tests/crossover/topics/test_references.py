"""The interval of a crossover with a GPU measured elsewhere, merged from its steps as measured and as scaled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from crossover.compare.cells import means_of
from crossover.compare.crossover import Crossover, spanned
from crossover.topics.references.table import compared_with_references


def merged(here: Crossover, there: Crossover) -> Crossover:
    return spanned(here, there, by_bracket=False)


def test_sizes_that_are_undecided_in_either_estimate_are_named() -> None:
    there = Crossover("edge_tie", low=500, caveat_at=(1000, 5000))
    here = Crossover("edge_tie", low=1000, caveat_at=(5000,))
    for pair in ((there, here), (here, there)):
        assert (merged(*pair).low, merged(*pair).caveat_at) == (500, (1000, 5000))
        below = merged(*(replace(estimate, status="below_range") for estimate in pair))
        assert (below.caveat, below.caveat_at) == ("unsure_sizes", (1000, 5000))


def between(low: float, at: float, high: float, **sure: Any) -> Crossover:
    return Crossover("bracketed", at, low, high, **sure)


ALWAYS, NEVER = Crossover("below_range"), Crossover("above_range")


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        (between(80, 100, 120), between(160, 200, 240), ("bracketed", 200, 80, 240)),
        (ALWAYS, between(80, 100, 120), ("bracketed", 100, None, 120)),
        (between(80, 100, 120), NEVER, ("bracketed", 100, 80, None)),
        (Crossover("edge_tie", high=50), between(80, 100, 120), ("bracketed", 100, None, 120)),
        (ALWAYS, Crossover("edge_tie", high=50), ("edge_tie", None, None, 50)),
        (ALWAYS, ALWAYS, ("below_range", None, None, None)),
        (ALWAYS, NEVER, ("undecided", None, None, None)),
        (between(80, 100, 120), Crossover("reversed", 90, low=85), ("undecided", None, None, None)),
    ],
)
def test_the_interval_covers_both(there: Crossover, here: Crossover, expected: Any) -> None:
    crossing = merged(here, there)
    assert (crossing.status, crossing.size, crossing.low, crossing.high) == expected


def test_the_bracket_of_a_single_trial_covers_both() -> None:
    there, here = (Crossover("bracketed", at, bracket=(at - 5, at + 5)) for at in (15, 35))
    crossing = spanned(here, there, by_bracket=True)
    assert (crossing.size, crossing.low, crossing.high, crossing.bracket) == (35, None, None, (10, 40))


def test_a_side_is_significantly_faster_where_both_estimates_say_so() -> None:
    """So `faster_from` is never below the upper end of an interval that covers both."""
    here = between(80, 100, 120, slower_up_to=50, faster_from=150, sure=(50, 150))
    there = between(160, 200, 240, slower_up_to=150, faster_from=400, sure=(150, 400))
    for pair in ((here, there), (there, here)):
        crossing = merged(*pair)
        assert (crossing.slower_up_to, crossing.faster_from, crossing.sure) == (50, 400, (50, 400))
        assert crossing.high is not None
        assert crossing.high <= 400
    unknown = merged(here, replace(there, slower_up_to=None, sure=None))
    assert (unknown.slower_up_to, unknown.faster_from, unknown.sure) == (None, 400, None)


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (ALWAYS, NEVER),
        (between(80, 100, 120), Crossover("reversed", 90, low=85)),
        (Crossover("edge_tie", high=50), Crossover("edge_tie", low=20)),
        (Crossover("undecided"), ALWAYS),
    ],
)
def test_estimates_that_contradict_each_other_are_said_to_disagree(there: Crossover, here: Crossover) -> None:
    for pair in ((there, here), (here, there)):
        crossing = merged(*pair)
        assert (crossing.status, crossing.caveat, crossing.caveat_at) == ("undecided", "estimates_disagree", ())
    assert merged(Crossover("undecided"), Crossover("undecided")).caveat is None


def test_a_crossover_with_a_reference_has_estimates_for_this_cpu_and_for_other_hosts(
    row: Callable[..., dict[str, Any]],
) -> None:
    """The GPU's second as on this CPU, which takes twice as long at the smaller size, and as measured; each also on
    other hosts. No step is small.
    """
    times_s = {("here", "cpu"): (4.0, 4.0), ("h100", "cpu"): (2.0, 1.0), ("h100", "cuda"): (1.0, 1.0)}
    trials = pd.DataFrame(
        [
            row(machine=machine, device=device, size=size, step_time_s=time_s)
            for (machine, device), of_sizes_s in times_s.items()
            for size, time_s in zip((1, 2), of_sizes_s, strict=True)
        ]
    )
    here, there = (trials[trials["machine"] == "here"], trials[trials["machine"] != "here"])
    x_axes = {str(trials["study"].iloc[0]): "size"}
    _, (pair,) = compared_with_references(here, there, x_axes, means_of(trials))

    assert (pair.costs, pair.baseline_machine, pair.series["machine"]) == (["time"], "here", "h100")
    of_hosts = [1, math.exp(-1.96 * 0.13), math.exp(1.96 * 0.13)]
    gpu_s = [estimate.trials.query("side == 'cuda'")["time"].tolist() for estimate in (pair, *pair.others)]
    assert gpu_s == [pytest.approx([scale * factor] * 2) for scale in (2, 1) for factor in of_hosts]
    cpu_s = [estimate.trials.query("side == 'cpu'")["time"].tolist() for estimate in (pair, *pair.others)]
    assert cpu_s == [[4.0, 4.0]] * 6

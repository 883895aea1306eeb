"""The interval of a crossover with a GPU measured elsewhere, merged from its steps as measured and as scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

from crossover.statistics import crossovers, references
from crossover.statistics.pairings import Pairing, machine_pairings
from crossover.statistics.references import SIGNIFICANT, ratios_to_references, reference_lines, spanned


def crossover(status: str, at: float | None = None, *, trials: int = 3, **ends: float) -> dict[str, Any]:
    """A crossover with an interval or, for single trials, a bracket; parameters are ten times the size."""
    names = ["crossover_low", "crossover_high", "bracket_low", "bracket_high", *SIGNIFICANT]
    empty = dict.fromkeys(names)
    crossing = {"status": status, "trials": trials, "crossover": at, "caveat_at": []} | empty | ends
    for of, scale in (("size", 1), ("parameters", 10)):
        interval = {name: crossing[f"crossover{name}"] for name in ("", "_low", "_high")}
        crossing |= {f"crossover_{of}{name}": value and scale * value for name, value in interval.items()}
    return crossing


def test_sizes_that_are_undecided_in_either_row_are_named() -> None:
    there = crossover("edge_tie", crossover_low=500) | {"caveat_at": [1000, 5000]}
    here = crossover("edge_tie", crossover_low=1000) | {"caveat_at": [5000]}
    for pair in ((there, here), (here, there)):
        crossing = spanned(*pair)
        assert (crossing["crossover_low"], crossing["caveat_at"]) == (500, [1000, 5000])
        crossing = spanned(*(row | {"status": "below_range"} for row in pair))
        assert (crossing["caveat"], crossing["caveat_at"]) == ("unsure_sizes", [1000, 5000])


def between(low: float, at: float, high: float) -> dict[str, Any]:
    return crossover("bracketed", at, crossover_low=low, crossover_high=high)


ALWAYS, NEVER = crossover("below_range"), crossover("above_range")


@pytest.mark.parametrize(
    ("there", "here", "status", "at", "low", "high"),
    [
        (between(80, 100, 120), between(160, 200, 240), "bracketed", 200, 80, 240),
        (ALWAYS, between(80, 100, 120), "bracketed", 100, None, 120),
        (between(80, 100, 120), NEVER, "bracketed", 100, 80, None),
        (crossover("edge_tie", crossover_high=50), between(80, 100, 120), "bracketed", 100, None, 120),
        (ALWAYS, crossover("edge_tie", crossover_high=50), "edge_tie", None, None, 50),
        (ALWAYS, ALWAYS, "below_range", None, None, None),
        (ALWAYS, NEVER, "undecided", None, None, None),
        (between(80, 100, 120), crossover("reversed", 90, crossover_low=85), "undecided", None, None, None),
    ],
)
def test_the_interval_covers_both(
    there: dict[str, Any], here: dict[str, Any], status: str, at: float, low: float, high: float
) -> None:
    crossing = spanned(here, there)
    assert (crossing["status"], crossing["crossover"]) == (status, at)
    assert (crossing["crossover_low"], crossing["crossover_high"]) == (low, high)
    assert (crossing["crossover_parameters_low"], crossing["crossover_parameters_high"]) == (
        low and 10 * low,
        high and 10 * high,
    )


def test_the_bracket_of_a_single_trial_covers_both() -> None:
    there = crossover("bracketed", 15, trials=1, bracket_low=10, bracket_high=20)
    here = crossover("bracketed", 35, trials=1, bracket_low=30, bracket_high=40)
    crossing = spanned(here, there)
    assert (crossing["crossover"], crossing["bracket_low"], crossing["bracket_high"]) == (35, 10, 40)
    assert (crossing["crossover_low"], crossing["crossover_high"]) == (None, None)


def test_a_side_is_significantly_faster_where_both_estimates_say_so() -> None:
    """So `faster_from` is never below the upper end of an interval that covers both."""
    here = between(80, 100, 120) | {"slower_up_to": 50, "faster_from": 150, "sure_low": 50, "sure_high": 150}
    there = between(160, 200, 240) | {"slower_up_to": 150, "faster_from": 400, "sure_low": 150, "sure_high": 400}
    for pair in ((here, there), (there, here)):
        assert [spanned(*pair)[name] for name in SIGNIFICANT] == [50, 400, 50, 400]
        assert spanned(*pair)["crossover_high"] <= spanned(*pair)["faster_from"]
    unknown = there | {"slower_up_to": None, "sure_low": None}
    assert [spanned(here, unknown)[name] for name in SIGNIFICANT] == [None, 400, None, 400]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (ALWAYS, NEVER),
        (between(80, 100, 120), crossover("reversed", 90, crossover_low=85)),
        (crossover("edge_tie", crossover_high=50), crossover("edge_tie", crossover_low=20)),
        (crossover("undecided"), ALWAYS),
    ],
)
def test_estimates_that_contradict_each_other_are_said_to_disagree(there: Any, here: Any) -> None:
    for pair in ((there, here), (here, there)):
        merged = spanned(*pair)
        assert (merged["status"], merged["caveat"], merged["caveat_at"]) == ("undecided", "estimates_disagree", [])
    assert spanned(crossover("undecided") | {"caveat": None}, crossover("undecided"))["caveat"] is None


def test_the_sides_of_a_reference_are_paired_once_for_all_its_estimates(
    row: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU's second as on this CPU, which takes twice as long, and as measured; each also on other hosts."""
    times_s = {("here", "cpu"): 4.0, ("h100", "cpu"): 2.0, ("h100", "cuda"): 1.0}
    trials = pd.DataFrame(
        [
            row(machine=machine, device=device, size=size, step_time_s=time_s)
            for (machine, device), time_s in times_s.items()
            for size in (1, 2)
        ]
    )
    here, there = (trials[(trials["machine"] == "here") == is_here] for is_here in (True, False))
    x_axes = {str(trials["study"].iloc[0]): "size"}
    ratios = ratios_to_references(here, there, x_axes)
    paired: list[int] = []

    def counted(measurements: pd.DataFrame, x_axes: Any) -> Iterator[Pairing]:
        paired.append(len(measurements))
        return machine_pairings(measurements, x_axes)

    for module in (crossovers, references):
        monkeypatch.setattr(module, "machine_pairings", counted, raising=False)
    (line,) = reference_lines(here, there, ratios, x_axes, None)

    assert paired == [6]
    assert (line.cost, line.pairing.baseline_machine, line.pairing.series["machine"]) == ("time", "here", "h100")
    of_hosts = [1, math.exp(-1.96 * 0.13), math.exp(1.96 * 0.13)]
    gpu_s = [estimate.pairing.trials.query("side == 'cuda'")["time"].tolist() for estimate in line.estimates]
    assert gpu_s == [pytest.approx([scale * factor] * 2) for scale in (2, 1) for factor in of_hosts]
    cpu_s = [estimate.pairing.trials.query("side == 'cpu'")["time"].tolist() for estimate in line.estimates]
    assert cpu_s == [[4.0, 4.0]] * 6

"""A study's row on the first screen, from made-up answers and claims."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from crossover.report.study_rows import bar_of, row_of
from crossover.report.templates import environment_of
from crossover.topics.candidates import Best
from crossover.topics.crossovers.answers import Crossover
from crossover.topics.latency.answers import Latency
from crossover.topics.references.answers import Reference
from report_pages import TEMPLATES

WORDS: Any = environment_of(TEMPLATES).get_template("words.j2").module


PLAIN: dict[str, Any] = dict.fromkeys(entry.name for entry in fields(Crossover) if entry.default is MISSING) | {
    "status": "bracketed",
    "crossover": 100.0,
    "crossover_low": 80.0,
    "crossover_high": 120.0,
    "unit": "neurons",
    "winner": "GPU",
    "loser": "CPU",
    "cost": "time",
    "smallest": 1.0,
    "largest": 10_000.0,
    "roots": [],
    "caveat_at": [],
    "trials": 3,
}
"""A crossover at 100 (80 to 120), for sizes from 1 to 10,000."""


def answer(**changes: Any) -> Crossover:
    return Crossover(**PLAIN | changes)


def ends(low: float | None, high: float | None) -> dict[str, Any]:
    return {"crossover_low": low, "crossover_high": high}


def best(**changes: Any) -> Best:
    configurations = {"winner_configurations": ["one CUDA graph"], "loser_configurations": ["1 core"]}
    moved = {"moved_status": "bracketed", "moved_from": 100.0, "factor": 0.3}
    place = {"crossover": 30.0, "crossover_low": 20.0, "crossover_high": 40.0}
    return Best(**PLAIN | place | configurations | moved | changes)


def claim(**columns: Any) -> dict[str, Any]:
    return {
        "form": "crossover_between",
        "machine": "here",
        "source": "Somebody",
        "published": "100",
        "condition": None,
        "metric": None,
        "over_metric": None,
        "elsewhere": "",
        "unit": None,
        "measured": None,
        "verdict": "no_data",
        "caveats": [],
    } | columns


@pytest.mark.parametrize(
    ("columns", "sides", "shares"),
    [
        (ends(10.0, 100.0), ["cpu", "inconclusive", "gpu"], [1 / 4, 1 / 4, 1 / 2]),
        (
            {"crossover_low": None, "crossover_high": None, "bracket_low": 10, "bracket_high": 100},
            ["cpu", "inconclusive", "gpu"],
            None,
        ),
        (ends(0.5, 100.0), ["inconclusive", "gpu"], [1 / 2, 1 / 2]),
        (
            ends(10.0, 100.0) | {"status": "reversed"},
            ["gpu", "inconclusive", "cpu"],
            [1 / 4, 1 / 4, 1 / 2],
        ),
        ({"status": "below_range"}, ["gpu"], [1]),
        (
            ends(100.0, None) | {"status": "edge_tie", "reach": 100.0},
            ["gpu", "inconclusive"],
            [1 / 2, 1 / 2],
        ),
        (ends(None, None) | {"status": "edge_tie", "reach": None}, ["inconclusive"], [1]),
        ({"status": "multiple", "roots": [10, 100]}, ["inconclusive"], [1]),
        ({"smallest": None}, [], []),
        ({"cost": "energy"}, [], []),
    ],
)
def test_a_bar_is_inconclusive_within_the_interval(
    columns: dict[str, Any], sides: list[str], shares: list[float] | None
) -> None:
    parts = bar_of(answer(**columns))
    assert [part["side"] for part in parts] == sides
    assert sum(part["share"] for part in parts) == pytest.approx(1.0 if sides else 0.0)
    if shares is not None:
        assert [part["share"] for part in parts] == pytest.approx(shares)


def test_a_bar_of_two_settings_on_a_device_names_both() -> None:
    parts = bar_of(answer(winner="bf16 on the GPU", loser="fp32 on the GPU"))
    assert [(part["side"], part["label"]) for part in parts] == [
        ("other", "fp32"),
        ("inconclusive", "…"),
        ("gpu", "bf16"),
    ]


def test_a_bar_of_several_gpus_tells_them_from_one() -> None:
    sides = [part["side"] for part in bar_of(answer(winner="2 GPUs", loser="1 GPU"))]
    assert sides == ["gpu", "inconclusive", "gpus-2"]
    sides = [part["side"] for part in bar_of(answer(winner="4 GPUs", loser="2 GPUs"))]
    assert sides == ["gpus-2", "inconclusive", "gpus-4"]
    assert bar_of(answer(winner="8 GPUs", loser="1 GPU"))[-1]["side"] == "gpus-more"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ({}, True),
        ({"moved_from": 35.0}, False),  # within its interval
        ({"status": "below_range"}, True),
        ({"status": "below_range", "moved_status": "below_range", "moved_from": None}, False),
        ({"machine": "elsewhere"}, False),
    ],
)
def test_the_tuned_answer_is_shown_if_it_differs(columns: dict[str, Any], shown: bool) -> None:
    row = row_of([answer(), best(**columns)], [])
    assert (row.tuned is not None) is shown
    assert len(bar_of(row.tuned) if row.tuned else []) == (0 if not shown else 1 if "status" in columns else 3)


def test_a_row_has_the_answer_its_interval_the_published_value_and_the_tuned_answer() -> None:
    claims = [
        claim(source="ours", published="1"),
        claim(form="ratio", published="4"),
        claim(machine="there", published="5"),
        claim(published="90 to 110", verdict="reproduced"),
    ]
    row = row_of([answer(series="resident"), answer(series="as published", crossover=200.0), best()], claims)
    assert row.text() == ("resident: GPU faster above 100 neurons (95 % CI 80 to 120); first of 2 series")
    assert not row.machines
    assert str(WORDS.published(row)).startswith("published 90 to 110: ")
    of_range = {"claim": claim(published="tested: 90 to 110", verdict="reproduced"), "series": 1, "verdicts": {}}
    assert str(WORDS.published(of_range)) == "tested: 90 to 110: ✓ reproduced"
    assert row.tuned.configurations() == "GPU: one CUDA graph; CPU: 1 core"
    assert row.tuned_text() == "GPU faster above 30 neurons (95 % CI 20 to 40)"


def test_a_claim_judged_elsewhere_has_its_value_beside_the_verdict() -> None:
    """The row's answer is about this CPU; the value that is judged, beside the other machine's own."""
    there = {"elsewhere": "an H100 measured elsewhere", "unit": "parameters", "verdict": "reproduced"}
    for measured, value in ((803_000.0, " (803 k)"), (None, "")):
        row = row_of([answer()], [claim(**there, published="703,142", measured=measured)])
        said = f"published 703,142: on an H100 measured elsewhere: ✓ reproduced there{value}"
        assert str(WORDS.published(row)) == said


@pytest.mark.parametrize(
    ("verdicts", "tally"),
    [
        (["reproduced"], ""),
        (["reproduced", "differs"], "; of 2 statements: 1 reproduced, 1 differs"),
        (["compatible", "differs", "differs"], "; of 3 statements: 1 compatible, 2 differ"),
        (["no_data", "reproduced"], ""),
        (["no_data"] * 3, ""),
        (["reproduced"] * 3, "; all 3 statements reproduced"),
        (["differs"] * 2, "; all 2 statements differ"),
    ],
)
def test_a_row_has_the_verdicts_on_all_published_claims_of_its_machine(verdicts: list[str], tally: str) -> None:
    published = [claim(verdict=verdict) for verdict in verdicts]
    others = [claim(source="ours", verdict="reproduced"), claim(machine="there", verdict="differs")]
    row = row_of([answer(machine="here")], [*published, *others])
    said = str(WORDS.published(row))
    assert said.partition(": ")[2].partition("; ")[2] == tally.removeprefix("; ")
    assert not row_of([answer()], others[:1]).verdicts


def test_each_machine_has_a_row_with_its_own_number_of_series() -> None:
    of_b = [answer(machine="b", series=f"b, {name}", crossover=200.0) for name in ("resident", "cold")]
    row = row_of([answer(machine="a", series="a"), *of_b, best(machine="b", series="b, resident")], [])
    assert (row.text(), row.tuned) == ("a: GPU faster above 100 neurons (95 % CI 80 to 120)", None)
    (other,) = row.machines
    assert other.text() == "b, resident: GPU faster above 200 neurons (95 % CI 80 to 120); first of 2 series"
    assert row.shown == [row.answer, of_b[0]]


def test_estimates_for_several_references_share_a_row() -> None:
    estimates = [Reference(**PLAIN | {"measured_on": "2026-11-23", "machine": name}) for name in ("h100", "h200")]
    assert not row_of(estimates, []).machines


def test_a_summary_lists_the_first_main_answer_of_each_other_kind() -> None:
    latencies = [Latency(status="single_trial", device=device) for device in ("CPU", "GPU")]
    row = row_of([answer(), best(), latencies[0], answer(series="as published"), latencies[1]], [])
    assert row.further == [latencies[0]]


def test_a_summary_lists_the_first_main_answer_on_money() -> None:
    others = [answer(cost=cost, crossover=place) for cost in ("energy", "money") for place in (50.0, 60.0)]
    assert row_of([answer(), *others], []).further == [others[2]]


@pytest.mark.parametrize(("device", "published"), [("CPU", None), ("GPU (NVIDIA H100)", "0.984")])
def test_an_answer_has_the_published_value_of_its_own_device(device: str, published: str | None) -> None:
    row = row_of(
        [Latency(status="single_trial", device=device)],
        [claim(form="ratio_below", condition="resident, GPU", published="0.984")],
    )
    assert (row.claim or {}).get("published") == published


SIGNS = {"sure_low": 50.0, "sure_high": 200.0}


@pytest.mark.parametrize(
    ("columns", "notes"),
    [
        (SIGNS, "95 % CI 80 to 120; significantly slower at 50, faster at 200"),
        (SIGNS | {"crossover_low": 50.0}, "95 % CI 50 to 120; significantly slower at 50, faster at 200"),
        (SIGNS | {"crossover_low": 50.0, "crossover_high": 200.0}, "95 % CI 50 to 200"),
        (SIGNS | {"status": "reversed"}, "95 % CI 80 to 120; significantly faster at 50, slower at 200"),
        (SIGNS | {"cost": "energy"}, "95 % CI 80 to 120; significantly more at 50, less at 200"),
    ],
)
def test_an_interval_is_followed_by_the_nearest_significant_sizes_beyond_it(
    columns: dict[str, Any], notes: str
) -> None:
    assert answer(**columns).notes() == notes
    estimate = Reference(**PLAIN | columns | {"measured_on": "2026-11-23"})
    assert "significantly" not in estimate.notes()

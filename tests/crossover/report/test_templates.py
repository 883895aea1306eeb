"""Filters of the templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from crossover.report.templates import environment_of, escaped_markdown, in_code
from crossover.topics.asked import Asked
from crossover.topics.claims.findings import REASONS
from crossover.topics.wording import interval_text, off_text, places_text, position_text, range_text


def test_positions_on_different_scales_each_have_a_unit() -> None:
    several = "39.6 parameters, 105 parameters, 528 parameters and 195 k parameters"
    assert places_text([39.6, 105, 528, 195_278], "parameters") == several
    assert places_text([100, 10_000], "neurons") == "100 and 10,000 neurons"
    assert range_text([763_000, 700_000, 612_000], "parameters") == "612 k to 763 k parameters"
    assert range_text([2.0], "neurons") == "2 neurons"
    assert interval_text([29.2, 75_252.4], "parameters") == "29.2 parameters to 75.3 k parameters"
    assert interval_text([612_000, 763_000], "parameters") == "612 k to 763 k"
    assert interval_text([0.001, 2.0], "s") == "1.00 ms to 2.00 s"


def test_a_size_with_a_letter_for_its_name_is_set_equal() -> None:
    assert position_text(1150, "n") == "n = 1,150"
    assert range_text([100, 1000], "n") == "n = 100 to 1,000"
    assert places_text([100, 195_278.5], "n") == "n = 100 and n = 195 k"
    assert interval_text([100, 1000], "n") == "100 to 1,000"


def test_a_batch_is_named_before_its_number_and_a_single_core_is_in_the_singular() -> None:
    assert position_text(64, "samples per batch") == "batch 64"
    assert range_text([8, 64], "samples per batch") == "batch 8 to 64"
    assert range_text([105, 19_600.4], "samples per batch") == "batch 105 to batch 19.6 k"
    assert places_text([1], "CPU cores") == "1 CPU core"
    assert places_text([1, 8], "CPU cores") == "1 and 8 CPU cores"


@pytest.mark.parametrize(("ratio", "text"), [(1.005, "under 1 %"), (0.7, "30 %"), (0.25, "4x")])
def test_the_deviation_of_a_ratio_from_1(ratio: float, text: str) -> None:
    assert off_text(ratio) == text


def test_text_is_escaped_for_markdown() -> None:
    assert escaped_markdown("a|b *c*\n<d> $e$") == r"a\|b \*c\* \<d\> \$e\$"
    assert in_code("a `b` c") == "`` a `b` c ``"


def worded(macro: str, values: Mapping[str, object]) -> str:
    environment = environment_of(Path(__file__).parents[3] / "report")
    template = environment.from_string(f'{{% import "words.j2" as words %}}{{{{ words.{macro}(values) }}}}')
    return template.render(values=values).strip()


@pytest.mark.parametrize("source", ["ours", "a published source"])
def test_every_verdict_on_a_claim_has_words(source: str) -> None:
    claims = [{"verdict": verdict, "source": source, "elsewhere": ""} for verdict in dict.fromkeys(REASONS.values())]
    texts = [worded("verdict", claim) for claim in claims]
    ours = ["✓ holds", "≈ may hold", "✗ does not hold"]
    published = ["✓ reproduced", "≈ compatible", "✗ differs"]
    assert texts == [*(ours if source == "ours" else published), "? inconclusive", "– no data"]


@pytest.mark.parametrize(
    ("status", "value", "text"),
    [
        ("better", 0.9, "bf16 takes 10 % less memory than fp32"),
        ("equivalent", 1.0, "bf16 needs the same memory as fp32"),
        ("inconclusive", 1.0, "bf16 needs the same memory as fp32"),
        ("inconclusive", 1.5, "no significant difference in memory between bf16 and fp32"),
    ],
)
def test_memory_of_two_sides_is_compared_in_words(status: str, value: float, text: str) -> None:
    asked = Asked(status=status, metric="peak_allocated_bytes", ratio=value, winner="bf16", loser="fp32", place="")
    assert asked.without_place([asked]) == text


@pytest.mark.parametrize(
    ("flagged", "flags", "text"),
    [
        (3, {"drift": 2, "trials_differ": 1}, "3 of 54 cells flagged: 2 "),
        (2, {"drift": 2, "trials_differ": 1}, "2 of 54 cells flagged, some for several reasons: 2 "),
    ],
)
def test_flags_that_add_up_to_more_than_the_flagged_cells_are_explained(
    flagged: int, flags: Mapping[str, int], text: str
) -> None:
    counts = {"cells": 54, "trials_low": 3, "trials_high": 12, "lost": 0, "statements": 0, "disturbed": 0}
    cells = {**counts, "flagged": flagged, "flags": [*flags.items()]}
    assert text in worded("trust", cells)

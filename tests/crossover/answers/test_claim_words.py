from __future__ import annotations

import pandas as pd
import pytest

from crossover.answers.claim_words import VERDICT_MARKS, VERDICT_WORDS, claim_group, measured_text, tally
from crossover.answers.sentences import place
from crossover.claims.findings import VERDICTS


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (4.771, 4.6, 4.95, "4.77 (4.6 to 4.95)"),
        (703142.4, 176806, 2804390, "703,142 (176,806 to 2,804,390)"),
        (4.771, None, None, "4.77"),
        (999.9999, 99.99, 99999.6, "1,000 (100 to 100,000)"),
        (-0.00123, -0.002, 0.0004, "-0.00123 (-0.002 to 0.0004)"),
        (None, None, 100, "below 100"),
        (None, 100, None, "above 100"),
        (None, None, None, ""),
    ],
)
def test_what_was_measured_in_words(value: float | None, low: float | None, high: float | None, text: str) -> None:
    assert measured_text(value, low, high) == text


@pytest.mark.parametrize(
    ("x_axis", "text"), [("parameters", "681 k (612 k to 763 k)"), ("size", "681 k (612,000 to 763 k)")]
)
def test_a_crossover_reads_as_it_does_in_its_studys_answer(x_axis: str, text: str) -> None:
    """The lower end is a size that was measured."""
    row = {"x_axis": x_axis, "crossover": 680_612.3, "crossover_low": 612_000.0, "crossover_high": 763_400.2}
    row |= {f"crossover_{x_axis}{end}": row[f"crossover{end}"] for end in ("", "_low", "_high")}
    assert measured_text(680_612.3, 612_000.0, 763_400.2, x_axis) == place(row) == text


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (["reproduced"], "Of 1 published statement, 1 is reproduced."),
        (
            ["not_testable", "differs", "reproduced", "not_testable"],
            "Of 4 published statements, 1 is reproduced, 1 differs, 2 are not testable here.",
        ),
        (["differs", "differs"], "Of 2 published statements, 2 differ."),
    ],
)
def test_verdicts_are_counted(verdicts: list[str], text: str) -> None:
    assert tally(pd.DataFrame({"verdict": verdicts, "source": [None, *["A"] * (len(verdicts) - 1)]})) == text


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (["reproduced"], "Of 1 statement of our own, 1 holds."),
        (
            ["reproduced", "reproduced", "differs", "not_testable"],
            "Of 4 statements of our own, 2 hold, 1 does not hold, 1 is not testable here.",
        ),
    ],
)
def test_statements_of_our_own_are_counted_apart(verdicts: list[str], text: str) -> None:
    ours = pd.DataFrame({"verdict": verdicts, "source": "ours"})
    assert tally(ours) == text
    published = pd.DataFrame({"verdict": ["differs"], "source": ["A"]})
    assert tally(pd.concat([ours, published])) == f"Of 1 published statement, 1 differs. {text}"


def test_every_verdict_has_a_word_and_a_mark_of_its_own() -> None:
    assert set(VERDICT_WORDS) == set(VERDICT_MARKS) == set(VERDICTS)
    assert len(set(VERDICT_WORDS.values())) == len(set(VERDICT_MARKS.values())) == 3


def claims_from(*sources: str | None) -> pd.DataFrame:
    numbers = dict.fromkeys(("measured", "measured_low", "measured_high", "x_axis"))
    return pd.DataFrame([{"source": source, "verdict": "differs", **numbers} for source in sources])


PUBLISHED = {"statement": "it is so", "source": "Somebody (2019)"}


@pytest.mark.parametrize(
    ("sources", "published", "statement", "source", "of_claims"),
    [
        (("A", "A"), PUBLISHED, None, "A", [None, None]),
        (("A", "B"), PUBLISHED, None, None, ["A", "B"]),
        (("A", None), None, None, None, ["A", None]),
        (("A", "ours", "A"), PUBLISHED, None, "A", [None, "ours", None]),
        (("A", "B", "ours"), PUBLISHED, None, None, ["A", "B", "ours"]),
        (("ours",), PUBLISHED, "it is so", "Somebody (2019)", ["ours"]),
        ((), PUBLISHED, "it is so", "Somebody (2019)", []),
        ((), None, None, None, []),
    ],
)
def test_a_source_is_said_once_where_the_claims_share_it(
    sources: tuple[str | None, ...],
    published: dict[str, str] | None,
    statement: str | None,
    source: str | None,
    of_claims: list[str | None],
) -> None:
    found = claim_group(claims_from(*sources), published)
    assert (found["statement"], found["source"]) == (statement, source)
    assert [row["source"] for row in found["claims"]] == of_claims


def test_a_verdict_on_our_own_statement_does_not_speak_of_reproducing() -> None:
    words = [row["verdict_words"] for row in claim_group(claims_from("A", "ours"), None)["claims"]]
    assert words == ["differs", "does not hold"]

"""What was published on a question and whether it holds, in lines."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.claim_lines import claim_lines
from crossover.claims.claims import CLAIM_COLUMNS

PUBLISHED = {"statement": "it starts at 700", "source": "Somebody (2019)"}


def claims(*rows: dict[str, Any]) -> pd.DataFrame:
    plain = {
        "study": "disc_depth",
        "machine": "here",
        "statement": "it starts at 700",
        "source": "Somebody (2019)",
        "published": "700 (tested: 600 to 800)",
        "measured": 680.0,
        "measured_low": 610.0,
        "measured_high": 760.0,
        "quantity": "crossover in parameters",
        "verdict": "reproduced",
        "reason": "the whole interval lies within",
    }
    return pd.DataFrame([plain | row for row in rows], columns=list(CLAIM_COLUMNS))


NOTHING = {"measured": None, "measured_low": None, "measured_high": None, "verdict": "not_testable", "reason": "no GPU"}


def test_a_statement_stands_with_its_values_and_its_verdict_with_the_reason() -> None:
    assert claim_lines(claims({}), PUBLISHED) == [
        "✓ reproduced (the whole interval lies within): it starts at 700 "
        "[crossover in parameters: published 700, measured 680 (610 to 760)]"
    ]


def test_a_reason_that_statements_share_is_given_once() -> None:
    rows = claims(NOTHING, {"statement": "it is flat"}, NOTHING | {"statement": "it ends at 9"})
    lines = claim_lines(rows, PUBLISHED)
    assert len(lines) == 2
    assert lines[0] == (
        "– not testable here (no GPU): it starts at 700 [crossover in parameters: published 700]; "
        "it ends at 9 [crossover in parameters: published 700]"
    )


def test_each_machine_has_its_lines_together() -> None:
    rows = claims(
        {"machine": "a", "statement": "1"},
        {"machine": "b", "statement": "1"} | NOTHING,
        {"machine": "a", "statement": "2"} | NOTHING,
    )
    assert [line.partition(" [")[0] for line in claim_lines(rows, PUBLISHED)] == [
        "a: ✓ reproduced (the whole interval lies within): 1",
        "a: – not testable here (no GPU): 2",
        "b: – not testable here (no GPU): 1",
    ]


def test_of_a_statement_of_our_own_the_range_is_what_is_tested() -> None:
    (line,) = claim_lines(claims({"source": "ours", "published": "below 1"}), None)
    assert line.startswith("✓ holds (")
    assert "[crossover in parameters: tested below 1, measured 680 (610 to 760)]" in line


def test_what_was_published_stands_alone_where_nothing_was_tested() -> None:
    assert claim_lines(claims(), PUBLISHED) == ["published: it starts at 700"]
    assert claim_lines(claims(), None) == []

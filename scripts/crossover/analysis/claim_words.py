"""The table of claims as a reader sees it, and the sentence before it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.analysis.findings import DIFFERS, NOT_TESTABLE, REPRODUCED
from crossover.analysis.tables import records
from crossover.claim_forms import short_number

VERDICT_WORDS = {REPRODUCED: "reproduced", DIFFERS: "differs", NOT_TESTABLE: "not testable here"}
VERDICT_MARKS = {REPRODUCED: "✓", DIFFERS: "✗", NOT_TESTABLE: "–"}
"""A verdict is told by its mark and its word, so that it survives print and colour blindness."""


def claim_rows(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """The claims, with `measured` as text beside its interval, and each verdict in a word and a mark."""
    return [
        row
        | {
            "measured": measured_text(row["measured"], row["measured_low"], row["measured_high"]),
            "verdict_words": VERDICT_WORDS[row["verdict"]],
            "mark": VERDICT_MARKS[row["verdict"]],
        }
        for row in records(claims)
    ]


def measured_text(value: float | None, low: float | None, high: float | None) -> str:
    """'4.77 (4.60 to 4.95)', or as much of it as is known."""
    if low is not None and high is not None:
        interval = f"{short_number(low)} to {short_number(high)}"
    elif low is not None:
        interval = f"above {short_number(low)}"
    else:
        interval = "" if high is None else f"below {short_number(high)}"
    if value is None:
        return interval
    return f"{short_number(value)} ({interval})" if interval else short_number(value)


def tally(claims: pd.DataFrame) -> str:
    """How the verdicts are shared out: 'Of 3 published statements, 2 are reproduced, 1 differs.'"""
    counts = {verdict: int((claims["verdict"] == verdict).sum()) for verdict in VERDICT_WORDS}
    parts = [f"{count} {_predicate(verdict, count)}" for verdict, count in counts.items() if count]
    noun = "statement" if len(claims) == 1 else "statements"
    return f"Of {len(claims)} published {noun}, {', '.join(parts)}."


def _predicate(verdict: str, count: int) -> str:
    if verdict == DIFFERS:
        return "differs" if count == 1 else "differ"
    return f"{'is' if count == 1 else 'are'} {VERDICT_WORDS[verdict]}"

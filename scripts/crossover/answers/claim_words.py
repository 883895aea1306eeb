"""The table of claims as a reader sees it, and the sentence before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from crossover.answers.sentences import crossover_text, end_text
from crossover.claims.findings import DIFFERS, NOT_TESTABLE, REPRODUCED
from crossover.config.claim_forms import OURS, short_number
from crossover.config.words import HERE
from crossover.tables.frames import records

VERDICT_WORDS = {REPRODUCED: "reproduced", DIFFERS: "differs", NOT_TESTABLE: "not testable here"}
VERDICT_MARKS = {REPRODUCED: "✓", DIFFERS: "✗", NOT_TESTABLE: "–"}
"""A verdict is told by its mark and its word, so that it survives print and colour blindness."""
OWN_WORDS = VERDICT_WORDS | {REPRODUCED: "holds", DIFFERS: "does not hold"}
"""The verdicts on a statement of our own, which nobody published."""


def claim_group(claims: pd.DataFrame, published: Mapping[str, Any] | None) -> dict[str, Any]:
    """A study's claims, and its source; claims that do not share one each name their own, and the study names none.

    `published` is what the study's file says: its statement stands only where no published claim does. A statement of
    our own always says that it is.
    """
    rows = claim_rows(claims)
    sources = {row["source"] for row in rows if row["source"] != OURS}
    if not sources:
        return {"claims": rows, "statement": None, "source": None} | (
            {key: published[key] for key in ("statement", "source")} if published else {}
        )
    if len(sources) > 1:
        return {"claims": rows, "statement": None, "source": None}
    (source,) = sources
    return {
        "claims": [row | {"source": None if row["source"] == source else row["source"]} for row in rows],
        "statement": None,
        "source": source,
    }


def claim_rows(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """The claims, with `measured` as text beside its interval, and each verdict in a word and a mark."""
    return [
        row
        | {
            "measured": measured_text(*(row[name] for name in ("measured", "measured_low", "measured_high", "x_axis"))),
            "verdict_words": (OWN_WORDS if row["source"] == OURS else VERDICT_WORDS)[row["verdict"]],
            "mark": VERDICT_MARKS[row["verdict"]],
        }
        | ({} if row.get("machine", HERE) == HERE else {"quantity": f"{row['quantity']}, on {row['machine']}"})
        for row in records(claims)
    ]


def measured_text(value: float | None, low: float | None, high: float | None, x_axis: str | None = None) -> str:
    """'4.77 (4.60 to 4.95)', or as much of it as is known; a crossover on its x axis as every answer writes it."""
    point = short_number if x_axis is None else crossover_text
    end = short_number if x_axis is None else partial(end_text, x_axis)
    if low is not None and high is not None:
        interval = f"{end(low)} to {end(high)}"
    elif low is not None:
        interval = f"above {end(low)}"
    else:
        interval = "" if high is None else f"below {end(high)}"
    if value is None:
        return interval
    return f"{point(value)} ({interval})" if interval else point(value)


def tally(claims: pd.DataFrame) -> str:
    """How the verdicts are shared out: 'Of 3 published statements, 2 are reproduced, 1 differs.' And of our own.

    Where machines are named, each is told by itself: 'On h200: of 3 published statements, ...'
    """
    if "machine" in claims and (claims["machine"] != HERE).any():
        told = [(machine, _tally(own)) for machine, own in claims.groupby("machine", sort=False)]
        return " ".join(f"On {machine}: {text[0].lower()}{text[1:]}" for machine, text in told)
    return _tally(claims)


def _tally(claims: pd.DataFrame) -> str:
    own = (claims["source"] == OURS).fillna(False).astype(bool)
    kinds = (("published {}", claims[~own], _predicate), ("{} of our own", claims[own], _own_predicate))
    return " ".join(_shares(words, table["verdict"], predicate) for words, table, predicate in kinds if len(table))


def _shares(words: str, verdicts: pd.Series, predicate: Callable[[str, int], str]) -> str:
    counts = {verdict: int((verdicts == verdict).sum()) for verdict in VERDICT_WORDS}
    parts = [f"{count} {predicate(verdict, count)}" for verdict, count in counts.items() if count]
    noun = "statement" if len(verdicts) == 1 else "statements"
    return f"Of {len(verdicts)} {words.format(noun)}, {', '.join(parts)}."


def _predicate(verdict: str, count: int) -> str:
    if verdict == DIFFERS:
        return "differs" if count == 1 else "differ"
    return f"{'is' if count == 1 else 'are'} {VERDICT_WORDS[verdict]}"


def _own_predicate(verdict: str, count: int) -> str:
    if verdict == REPRODUCED:
        return "holds" if count == 1 else "hold"
    if verdict == DIFFERS:
        return "does not hold" if count == 1 else "do not hold"
    return _predicate(verdict, count)

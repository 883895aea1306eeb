"""Words that sentences share: counts, lists, capitals, whose a device is, and what one trial is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from crossover.config.words import HERE

INDICATIVE = "one trial a cell: indicative"


class Answer(str):
    """An answer in a few words with its notes in brackets behind it; the page sets the two apart."""

    said: str
    notes: tuple[str, ...]

    def __new__(cls, said: str, notes: Iterable[str] = ()) -> Answer:
        kept = tuple(notes)
        answer = super().__new__(cls, f"{said} ({'; '.join(kept)})" if kept else said)
        answer.said, answer.notes = said, kept
        return answer


def count_text(value: float, digits: int = 2) -> str:
    """A count to two significant digits, or as many as are asked for: 6.5, 680, 1,200, 310 k, 2.8 million."""
    if value <= 0:
        return f"{value:g}"
    rounded = round(value, digits - 1 - math.floor(math.log10(value)))
    for limit, scale, unit in ((1e9, 1e9, " billion"), (1e6, 1e6, " million"), (1e4, 1e3, " k")):
        if rounded >= limit:
            return f"{rounded / scale:g}{unit}"
    return f"{rounded:,g}"


def known_count_text(value: float) -> str:
    """A count that was measured or given: to the last digit up to 10 k, from there on to three: 1,414, 177 k."""
    return f"{value:,.0f}" if value < 1e4 else count_text(value, 3)


def capitalised(text: str) -> str:
    """A sentence with its first letter in upper case, the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


CAUTION = f" {capitalised(INDICATIVE)} only."
"""Behind a sentence of one trial a cell."""


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def machine_words(preposition: str, machine: str) -> str:
    """' of h200' or ' on h200', behind a device; empty where machines have no names."""
    return "" if machine == HERE else f" {preposition} {machine}"

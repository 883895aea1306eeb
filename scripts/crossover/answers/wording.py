"""Words that sentences share: counts, lists, capitals, whose a device is, and what one trial is worth."""

from __future__ import annotations

from collections.abc import Iterable

from crossover.tables.labels import machine_words as machine_words
from crossover.text import capitalised as capitalised
from crossover.text import count_text as count_text
from crossover.text import known_count_text as known_count_text
from crossover.text import listed as listed

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


CAUTION = f" {capitalised(INDICATIVE)} only."
"""Behind a sentence of one trial a cell."""

"""Words that sentences share: lists, capitals, whose a device is, and what one trial is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crossover.records import HERE

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

"""How much trust a run's numbers deserve, in a few words: trials, flags, and cells without a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from crossover.answers.caveats import CAVEATS


@dataclass(frozen=True)
class Term:
    """A flag or a status, in words, and how many cells have it."""

    name: str
    count: int

    @property
    def words(self) -> str:
        """'30 less precise than asked'."""
        return f"{self.count:,} {CAVEATS[self.name]}"


@dataclass(frozen=True)
class Phrase:
    """A phrase on cells, and behind it what it counts, the most frequent first."""

    text: str
    terms: Sequence[Term] = ()

    def __str__(self) -> str:
        said = ", ".join(f"{term.words} ({term.name})" for term in self.terms)
        return f"{self.text}: {said}" if said else self.text


def trust_words(cells: pd.DataFrame) -> list[Phrase]:
    """Phrases on the trials, the flags and the failures of these cells; where not one ended ok, the last alone."""
    if cells.empty:
        return []
    failures = Counter(cells.loc[cells["status"] != "ok", "status"])
    if not (cells["trials"] > 0).any():
        none = f"None of {len(cells):,} cells was" if len(cells) > 1 else "The only cell was not"
        return [Phrase(f"{none} measured ok", _terms(failures))]
    flags = Counter(flag for own in cells["flags"] for flag in own)
    flagged = int((cells["flags"].map(len) > 0).sum())
    lost = sum(failures.values())
    return [
        Phrase(trials_words(cells)),
        Phrase(f"{flagged} of {_cells(len(cells))} flagged" if flags else "no cell flagged", _terms(flags)),
        Phrase(
            f"{lost} of {_cells(len(cells))} without a full result" if lost else "every measured cell has a result",
            _terms(failures),
        ),
    ]


def trials_words(cells: pd.DataFrame) -> str:
    """'3 trials a cell', of those cells that have any; one trial is no more than a hint."""
    counts = cells.loc[cells["trials"] > 0, "trials"]
    low, high = int(counts.min()), int(counts.max())
    if high == 1:
        return "1 trial a cell: indicative only"
    return f"{low} trials a cell" if low == high else f"{low} to {high} trials a cell"


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _terms(counter: Counter[str]) -> list[Term]:
    return [Term(name, count) for name, count in counter.most_common()]

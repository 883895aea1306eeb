"""How much trust a run's numbers deserve, in a few words: trials, flags, and cells without a result."""

from __future__ import annotations

from collections import Counter

import pandas as pd


def trust_words(cells: pd.DataFrame) -> dict[str, str]:
    """Phrases on `trials`, `flags` and `failures` of these cells; where not one ended ok, that alone."""
    if cells.empty:
        return {}
    failures = Counter(cells.loc[cells["status"] != "ok", "status"])
    if not (cells["trials"] > 0).any():
        return {"failures": f"None of {_cells(len(cells))} was measured ok: {_counts(failures)}"}
    found = {"trials": trials_words(cells)}
    flags = Counter(flag for own in cells["flags"] for flag in own)
    flagged = int((cells["flags"].map(len) > 0).sum())
    found["flags"] = f"{flagged} of {_cells(len(cells))} flagged: {_counts(flags)}" if flags else "no cell flagged"
    lost = sum(failures.values())
    found["failures"] = (
        f"{lost} of {_cells(len(cells))} without a full result: {_counts(failures)}"
        if lost
        else "every cell has a result"
    )
    return found


def trials_words(cells: pd.DataFrame) -> str:
    """'3 trials a cell', of those cells that have any; one trial is no more than a hint."""
    counts = cells.loc[cells["trials"] > 0, "trials"]
    low, high = int(counts.min()), int(counts.max())
    if high == 1:
        return "1 trial a cell: indicative only"
    return f"{low} trials a cell" if low == high else f"{low} to {high} trials a cell"


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _counts(counter: Counter[str]) -> str:
    """'drift 34, noisy 8': the most frequent first."""
    return ", ".join(f"{name} {count:,}" for name, count in counter.most_common())

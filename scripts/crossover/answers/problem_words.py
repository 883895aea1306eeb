"""What the report says of problems, and of how much of a run has finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.caveats import with_name
from crossover.answers.wording import listed
from crossover.statistics.problems import FLAGGED, REMEDIES
from crossover.statistics.unfinished import UNFINISHED
from crossover.tables.frames import records

PLURALS = {"trial": "trials", "training": "trainings", "search": "searches"}


def problems_view(
    problems: pd.DataFrame, tables: Mapping[str, pd.DataFrame], studies: Sequence[str], partial: bool
) -> dict[str, Any]:
    """How many problems there are of each kind, flags and what is `lost`, and each entry.

    Of a partial report, also how much has finished.

    `tables` holds the rows of what has finished, by work: trials, trainings, searches.
    """
    counts: dict[tuple[str, str], int] = {}
    for entry in records(problems):
        # A trial may carry several flags, so these are not added up.
        kind = entry["reason"].partition(":")[0] if entry["kind"] == FLAGGED else entry["kind"]
        counts[kind, entry["work"]] = counts.get((kind, entry["work"]), 0) + entry["count"]
    return {
        "counts": [_counted_kind(*key, count) for key, count in counts.items()],
        "lost": [_counted_kind(*key, count) for key, count in counts.items() if key[0] in REMEDIES],
        "entries": [entry | {"count": counted(entry["count"], entry["work"])} for entry in records(problems)],
        "timed": any((table["status"] == "ok").any() for table in tables.values()),
        "partial": _partial(progress(problems, tables), studies) if partial else None,
    }


def _counted_kind(kind: str, work: str, count: int) -> str:
    return f"{counted(count, work)} {with_name(kind)}"


def counted(count: int, work: str) -> str:
    """'1 trial', '1,200 trials'."""
    return f"{count:,} {work if count == 1 else PLURALS[work]}"


def progress(problems: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str], tuple[int, int]]:
    """How much of a study's work has finished, and how much is asked for, by study and work."""
    finished: dict[tuple[str, str], int] = {}
    for work, table in tables.items():
        for study, count in table["study"].value_counts().items():
            finished[str(study), work] = count
    asked = dict(finished)
    for entry in records(problems[problems["kind"].isin(UNFINISHED)]):
        key = (entry["study"], entry["work"])
        asked[key] = asked.get(key, 0) + entry["count"]
    return {key: (finished.get(key, 0), count) for key, count in asked.items()}


def _finished(totals: Mapping[str, Sequence[int]]) -> str:
    """'3 of 12 trials', and of all of them 'all 12 trials asked for so far', since refinement may ask for more."""
    if any(done < asked for done, asked in totals.values()):
        return listed([f"{done:,} of {counted(asked, work)}" for work, (done, asked) in totals.items()])
    whole = listed([counted(asked, work) for work, (_, asked) in totals.items()])
    if not whole:
        return "nothing"
    only = sum(asked for _, asked in totals.values()) == 1
    return f"{'the only' if only else 'all'} {whole.removeprefix('1 ') if only else whole} asked for so far"


def _partial(found: Mapping[tuple[str, str], tuple[int, int]], studies: Sequence[str]) -> dict[str, Any]:
    """'3 of 12 trials have finished', of all studies and of each."""
    works = [work for work in PLURALS if any(work == own for _, own in found)]
    totals = {work: [sum(pair[i] for (_, own), pair in found.items() if own == work) for i in (0, 1)] for work in works}
    total = sum(asked for _, asked in totals.values())
    return {
        "all": f"{_finished(totals)} {'has' if total <= 1 else 'have'} finished",
        "studies": [
            f"{study}: "
            + ", ".join(f"{found[study, work][0]:,} of {counted(found[study, work][1], work)}" for work in own)
            for study in studies
            if (own := [work for work in works if (study, work) in found])
        ],
    }

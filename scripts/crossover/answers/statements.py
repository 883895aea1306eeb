"""The statements of a report that compare, and how many of them can be expected to be false by chance."""

from __future__ import annotations

import pandas as pd

from crossover.statistics.intervals import FALSE_PER_STUDY, FASTER, SLOWER

CROSSED = ("bracketed", "reversed", "multiple", "below_range", "above_range", "edge_tie")
DIFFERENCES = {
    **dict.fromkeys(("crossover", "best", "reference"), CROSSED),
    "asked": (FASTER, SLOWER, "better", "worse"),
    "ranking": ("throughout", "changes", "in_part"),
    "transfers": ("differ",),
    **dict.fromkeys(("loading", "copying"), ("bounds", SLOWER)),
    **dict.fromkeys(("ratio", "setting", "elsewhere"), (FASTER,)),
    "latency": ("error",),
    "throughput": ("best",),
    "quality": ("better", "worse", "both"),
}
"""Kinds of answers that compare, with the statuses that state a difference. A payback rests on its crossover."""

WITHOUT_DATA = ("no_accelerator", "incomplete", "single_trial", "no_baseline", "nothing_learnt", "only_cpu")


def comparing_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The answers that compare, with column `states_difference`."""
    rows = answers[answers["kind"].isin(DIFFERENCES) & ~answers["status"].isin(WITHOUT_DATA)]
    pairs = zip(rows["kind"], rows["status"], strict=True)
    differs = pd.Series([status in DIFFERENCES[kind] for kind, status in pairs], rows.index, dtype=bool)
    is_tied = (rows["status"] == "edge_tie") & rows["reach"].isna()
    return rows.assign(states_difference=differs & ~is_tied)


ALSO_IN_SUMMARY = ("ranking", "elsewhere", "ratio")
"""Kinds of answers that each summary lists, also if they are no main answer."""


def expected_false(answers: pd.DataFrame) -> tuple[int, float]:
    """The number of statements that compare in each summary, and how many of a report's may be false by chance.

    A summary has the main answers, those of ALSO_IN_SUMMARY, and the claims with a verdict; the page has further
    answers. The second number is a bound if nothing differs: FALSE_PER_STUDY for each study that compares.
    """
    claims = answers[(answers["kind"] == "claim") & (answers["status"] != "no_data")]
    comparing = comparing_answers(answers)
    in_summary = comparing[comparing["main"].astype(bool) | comparing["kind"].isin(ALSO_IN_SUMMARY)]
    studies = [*in_summary["study"], *claims["study"]]
    return len(studies), FALSE_PER_STUDY * len(set(studies))

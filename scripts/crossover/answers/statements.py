"""How many of a report's statements that compare can be expected to be false by chance."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from crossover.answers.answer import Answer
from crossover.statistics.intervals import FALSE_PER_STUDY

ALSO_IN_SUMMARY = ("ranking", "elsewhere", "ratio")
"""Kinds of answers that each summary lists, also if they are no main answer."""


def expected_false(answers: Iterable[Answer], claims: pd.DataFrame) -> tuple[int, float]:
    """The number of statements that compare in each summary, and how many of a report's may be false by chance.

    A summary has the main answers, those of ALSO_IN_SUMMARY, and the claims with a verdict; the page has further
    answers. The second number is a bound if nothing differs: FALSE_PER_STUDY for each study that compares.
    """
    studies = [one.study for one in answers if one.compares and (one.main or one.kind in ALSO_IN_SUMMARY)]
    studies += claims.loc[claims["verdict"] != "no_data", "study"].tolist()
    return len(studies), FALSE_PER_STUDY * len(set(studies))

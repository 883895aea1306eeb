"""A short version of check_statements.py."""

from __future__ import annotations

import numpy as np
import pytest
from check_statements import StatementsCase, statement_rows
from statements import false_statements, null_rows, report_on, studies_of

from crossover.compare.intervals import FALSE_PER_STUDY
from crossover.topics.answers import read_answers
from crossover.topics.correction import expected_false


def test_a_report_on_equal_sides_states_few_differences() -> None:
    """Of 6 default runs, with three studies each. The limit is 0.05 a study plus 2 standard errors.

    Two are stated; without a correction over the study, five would be, which is more than the limit.
    """
    (found,) = statement_rows(StatementsCase("config", 3, 0.1), 6, seed=0).to_dict("records")
    assert found["false"] * 6 <= 3 * 6 * FALSE_PER_STUDY + 2 * (3 * 6 * FALSE_PER_STUDY) ** 0.5


def test_crossovers_over_both_axes_are_corrected_together() -> None:
    """With each corrected for its own sizes only, these rows gave two crossovers over the batch size, at two depths.

    Of 100 such reports, 9 stated a difference.
    """
    studies = [study for study in studies_of("full") if study.name == "size_and_batch"]
    tables = report_on(studies, null_rows(studies, 8, 0.1, np.random.default_rng([5, 0, 8])))
    assert tables.crossovers["second_axis"].sum() == 5
    assert not false_statements(tables).any()


def test_the_report_says_how_many_of_its_statements_may_be_false() -> None:
    studies = studies_of("config")
    tables = report_on(studies, null_rows(studies, 3, 0.1, np.random.default_rng(0)))
    statements, false_at_most = expected_false(read_answers(tables.answers), tables.claims)
    assert 0 < statements <= len(false_statements(tables))
    assert false_at_most == pytest.approx(3 * FALSE_PER_STUDY)

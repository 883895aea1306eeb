"""The page states the config's effort only where no row says another."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from crossover.answers.effort_words import effort_words, short_effort_words
from crossover.config.studies import Effort

RUN = {"blocks_min": 30, "timed_min_s": 2.0, "timed_max_s": 3.0}
OF_THE_RUN = "Effort of the run, where a study has none of its own: blocks_min 30, timed_min_s 2.0, timed_max_s 3.0."
OTHERWISE = "Effort of the trials, as their rows say, which is not all as the config of this page has it: "


def count(study: str, rows: int, **effort: Any) -> dict[str, Any]:
    return {"study": study, "effort": json.dumps(effort) if effort else None, "rows": rows}


def test_rows_that_agree_or_say_nothing_leave_the_configs_sentence() -> None:
    assert effort_words([], RUN, {}) == OF_THE_RUN
    assert effort_words([count("a", 4)], RUN, {}) == OF_THE_RUN
    assert effort_words([count("a", 4), count("a", 2, blocks_min=30, timed_min_s=2)], RUN, {}) == OF_THE_RUN


def test_a_studys_own_effort_is_no_contradiction() -> None:
    # Of a cap the smaller counts, so that 9 s of the study's file are 3 s in its rows.
    studies = {"a": {"effort": {"blocks_min": 5, "timed_max_s": 9}}, "b": {"effort": {}}}
    rows = [count("a", 4, blocks_min=5, timed_max_s=3.0), count("b", 4, blocks_min=30)]
    assert effort_words(rows, RUN, studies) == OF_THE_RUN
    assert effort_words(rows, RUN, {}).startswith(OTHERWISE)


def test_of_merged_runs_each_had_its_own() -> None:
    rows = [count("a", 1, blocks_min=5), count("b", 2, blocks_min=30)]
    assert effort_words(rows, None, {}) == (
        "Effort of the trials, as their rows say: a (1 row): blocks_min 5; b (2 rows): blocks_min 30."
    )
    assert effort_words([count("a", 4)], None, {}) == "The rows do not say the effort of their trials."


def test_each_effort_of_the_rows_is_listed_once_with_its_studies() -> None:
    rows = [count("a", 1, blocks_min=5), count("b", 2000, blocks_min=30), count("c", 3, blocks_min=5), count("c", 7)]
    assert effort_words(rows, RUN, {}) == (
        f"{OTHERWISE}a (1 row), c (3 rows): blocks_min 5; b (2,000 rows): blocks_min 30. "
        "Rows that do not say theirs: 7."
    )


def test_a_key_that_this_version_lacks_is_another_effort() -> None:
    assert effort_words([count("a", 2, patience=1)], RUN, {}) == f"{OTHERWISE}a (2 rows): patience 1."


def test_an_effort_that_cannot_be_read_is_shown_as_it_is() -> None:
    for text in ("{half", "[1]"):
        assert effort_words([{"study": "a", "effort": text, "rows": 2}], RUN, {}) == f"{OTHERWISE}a (2 rows): {text}."


def test_in_short_only_what_is_not_the_default_is_named() -> None:
    usual = asdict(Effort())
    assert short_effort_words([], usual, {}) == "the default"
    short = usual | {"blocks_min": 5}
    assert short_effort_words([count("a", 4, blocks_min=5)], short, {}) == "the default but for blocks_min 5"
    for run in (usual, None):
        assert short_effort_words([count("a", 4, blocks_min=7)], run, {}) == "the default but for blocks_min 7"
    assert short_effort_words([count("a", 4)], None, {}) == "not recorded"


def test_in_short_each_of_several_efforts_has_its_studies() -> None:
    usual = asdict(Effort())
    rows = [count("a", 1, **usual), count("b", 2, blocks_min=5), count("c", 1, blocks_min=5), count("b", 2, **usual)]
    assert short_effort_words(rows, None, {}) == "the default (a and b); the default but for blocks_min 5 (b and c)"
    assert short_effort_words([count("a", 1), count("b", 1, **usual)], None, {}) == "the default"
    assert short_effort_words([{"study": "a", "effort": "{half", "rows": 2}], None, {}) == "{half"

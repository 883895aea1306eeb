from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.problem_words import problems_view
from crossover.report.report_sections import study_section
from crossover.report.report_tables import ReportTables
from crossover.report.run_summary import closing_lines, summary_table
from report_pages import tables_of

PowerLaws = Callable[..., pd.DataFrame]
CLAIM = {
    "study": "disc_depth",
    "statement": "it starts between 100 and 100,000",
    "source": "Somebody (2019)",
    "crossover_between": {"range": [100, 100_000]},
}


def run(rows: pd.DataFrame, claims: Sequence[Mapping[str, Any]] = (CLAIM,)) -> tuple[dict[str, Any], ReportTables]:
    spec = {
        "title": "A title",
        "question": "From which size on?",
        "published": None,
        "figures": ["times"],
        "steps_per_run": None,
    }
    return {"disc_depth": spec}, tables_of(rows, claims)


def closing_of(studies: Mapping[str, Any], tables: ReportTables, partial: bool, *paths: str) -> list[str]:
    problems = problems_view(tables.problems, tables.by_work, list(studies), partial)
    return closing_lines(summary_table(studies, tables), problems, *paths).splitlines()


def test_the_summary_says_what_the_report_says(power_laws: PowerLaws) -> None:
    studies, tables = run(power_laws({2: 100, 4: 100_000}, trials=3))
    (row,) = summary_table(studies, tables).to_dict("records")
    answers = study_section("disc_depth", studies["disc_depth"], tables, [])["answers"]
    assert [(row["line"], row["answer"])] == answers
    assert "1,000 (984 to 1,020) parameters" in row["answer"]
    assert row["published"].startswith("✓ reproduced (the whole 95 % interval lies within 100 to 100,000): it starts ")
    assert (row["trials"], row["flagged"]) == (12, 0)


def test_what_is_of_a_whole_study_stands_on_its_first_row_alone(power_laws: PowerLaws) -> None:
    """Two lines with an answer each: the GPU as above, and one ten times as slow."""
    rows = [power_laws({2: 100, 4: 100_000}, trials=3, gpu_s=s, batch_size=b) for s, b in ((1e-3, 100), (1e-2, 200))]
    claim = {**CLAIM, "crossover_between": {"range": [100, 100_000], "where": {"batch_size": 100}}}
    table = summary_table(*run(pd.concat(rows, ignore_index=True), [claim]))
    assert table["answer"].nunique() == 2
    of_study = table[["published", "trials", "flagged"]]
    assert of_study.notna().all(axis=1).tolist() == [True, False]
    assert (table["trials"][0], table["flagged"][0]) == (24, 0)


def test_a_study_without_a_crossover_says_in_the_summary_what_its_card_says(power_laws: PowerLaws) -> None:
    """A GPU alone, in two precisions: 1 ms and 2 ms."""
    rows = [power_laws({2: 100}, trials=3, gpu_s=s, precision=name) for s, name in ((1e-3, "tf32"), (2e-3, "fp32"))]
    alone = pd.concat(rows)
    studies, tables = run(alone[alone["device"] == "cuda"], claims=[])
    studies["disc_depth"]["figures"] = ["comparison"]
    (text,) = summary_table(studies, tables)["answer"]
    assert text.startswith("GPU fastest with tf32: 2.00 times as fast as fp32 (95 %: ")


def test_a_run_ends_with_an_answer_a_line_and_where_the_report_is(power_laws: PowerLaws) -> None:
    studies, tables = run(power_laws({2: 100, 4: 100_000}, trials=3))
    lines = closing_of(studies, tables, False, "out/report.html", "out/summary.md")
    assert len(lines) == 3
    assert lines[0].startswith(
        "disc_depth: On this machine the GPU (Brand G1) beats the CPU (Brand C1) from about 1,000"
    )
    assert "measured on either side" not in lines[0]
    assert lines[1:] == [
        "Report: out/report.html (one file; open it in a browser)",
        "To pass on: out/summary.md; to cite: CITATION.cff",
    ]


def test_nothing_measured_is_no_answer(power_laws: PowerLaws) -> None:
    studies, tables = run(power_laws({2: 100}).iloc[:0])
    assert summary_table(studies, tables)["answer"].tolist() == ["Not measured here."]
    lines = closing_of(studies, tables, True, "a", "b")
    assert lines[:2] == ["Partial: nothing has finished.", "disc_depth: Not measured here."]

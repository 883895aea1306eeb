from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.analysis.problem_words import problems_view
from crossover.analysis.report_sections import study_section
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.run_summary import closing_lines, escaped, summary_markdown, summary_table
from report_pages import FACTS, tables_of

PowerLaws = Callable[..., pd.DataFrame]
CLAIM = {
    "study": "disc_depth",
    "statement": "it starts between 100 and 100,000",
    "source": "Somebody (2019)",
    "crossover_between": {"range": [100, 100_000]},
}


def run(
    rows: pd.DataFrame, question: str = "From which size on?", claims: Sequence[Mapping[str, Any]] = (CLAIM,)
) -> tuple[dict[str, Any], ReportTables]:
    spec = {"title": "A title", "question": question, "published": None, "figures": ["times"], "steps_per_run": None}
    return {"disc_depth": spec}, tables_of(rows, claims)


def markdown_of(studies: Mapping[str, Any], tables: ReportTables, **facts: Any) -> str:
    known = {**FACTS, "effort": {"timed_max_s": 3.0}, "seed": 7, "cpu_threads": 4, **facts}
    return summary_markdown(summary_table(studies, tables), problems_of(studies, tables), tables, known)


def closing_of(studies: Mapping[str, Any], tables: ReportTables, partial: bool, *paths: str) -> list[str]:
    problems = problems_of(studies, tables, partial)
    return closing_lines(summary_table(studies, tables), problems, *paths).splitlines()


def problems_of(studies: Mapping[str, Any], tables: ReportTables, partial: bool = False) -> dict[str, Any]:
    return problems_view(tables.problems, tables.by_work, list(studies), partial)


def test_the_summary_says_what_the_report_says(power_laws: PowerLaws) -> None:
    studies, tables = run(power_laws({2: 100, 4: 100_000}, trials=3))
    (row,) = summary_table(studies, tables).to_dict("records")
    answers = study_section("disc_depth", studies["disc_depth"], tables, [])["answers"]
    assert [(row["line"], row["answer"])] == answers
    assert "1,000 (984 to 1,020) parameters" in row["answer"]
    assert row["published"] == "it starts between 100 and 100,000: reproduced"
    assert (row["trials"], row["flagged"]) == (12, 0)


def test_the_markdown_has_answers_verdicts_hardware_and_the_command(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=3, torch_version="2.13.0", hostname="node17", flags=["noisy"])
    text = markdown_of(*run(rows))
    (line,) = [line for line in text.splitlines() if line.startswith("| From which size on? |")]
    assert line.count(" | ") == 2
    assert "about 1,000 (984 to 1,020) parameters on" in line
    assert line.endswith("| it starts between 100 and 100,000: reproduced |")
    assert "- Measured on: GPU (Brand G1); threads of torch 2, torch 2.13.0" in text
    assert "- Missing, failed or flagged: 12 trials with scattered times (noisy)" in text
    assert '--config "studies=[disc_depth]" trials=3 seed=7 cpu_threads=4`\n' in text
    assert "partial" not in text
    assert "node17" not in text


def test_the_command_is_that_of_the_run_where_it_is_known(power_laws: PowerLaws) -> None:
    run_as = {"command": "snakemake --cores 1 --configfile config/quick.yaml", "folder": "/house"}
    known = {"run": run_as, "code": {"code_version": "abc-dirty"}, "effort": [], "studies": {}}
    text = markdown_of(*run(power_laws({2: 100})), provenance=known)
    assert "- To reproduce: `snakemake --cores 1 --configfile config/quick.yaml`, commit abc-dirty\n" in text


def test_a_study_without_a_crossover_says_in_the_summary_what_its_card_says(power_laws: PowerLaws) -> None:
    """A GPU alone, in two precisions: 1 ms and 2 ms."""
    rows = [power_laws({2: 100}, trials=3, gpu_s=s, precision=name) for s, name in ((1e-3, "tf32"), (2e-3, "fp32"))]
    alone = pd.concat(rows)
    studies, tables = run(alone[alone["device"] == "cuda"], claims=[])
    studies["disc_depth"]["figures"] = ["comparison"]
    (text,) = summary_table(studies, tables)["answer"]
    assert text.startswith("GPU fastest with tf32: 2.00 times as fast as fp32 (95 %: ")


def test_effort_that_is_not_the_usual_one_is_named(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    text = markdown_of(*run(rows), effort={"timed_max_s": 3.0, "blocks_min": 5})
    assert "- Effort of a trial: the default but for blocks\\_min 5\n" in text


def test_what_users_write_is_shown_as_text(power_laws: PowerLaws) -> None:
    question = "a|b `c` <script>alert(1)</script>\n# [x](y) @you"
    text = markdown_of(*run(power_laws({2: 100, 4: 100_000}), question))
    assert "| a\\|b \\`c\\` \\<script\\>alert(1)\\</script\\> \\# \\[x\\](y) \\@you |" in text


@pytest.mark.parametrize(("text", "shown"), [("2 * 3_000", "2 \\* 3\\_000"), ("back\\slash", "back\\\\slash")])
def test_marks_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


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

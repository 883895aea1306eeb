from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.answers.problem_words import problems_view
from crossover.report.markdown_summary import escaped, in_code, summary_markdown
from crossover.statistics.unfinished import Unfinished
from crossover.tables.frames import CELL_AXES, first_row
from report_pages import FACTS, tables_of

PowerLaws = Callable[..., pd.DataFrame]
CLAIM = {
    "study": "disc_depth",
    "statement": "it starts between 100 and 100,000",
    "published": 700,
    "source": "Somebody (2019)",
    "crossover_between": {"range": [100, 100_000]},
}
COMMIT = "c" * 40


def markdown_of(
    rows: pd.DataFrame,
    question: str = "From which size on?",
    *,
    claims: Sequence[Mapping[str, Any]] = (CLAIM,),
    unfinished: Sequence[Unfinished] = (),
    **facts: Any,
) -> str:
    spec = {"title": "A title", "question": question, "published": None, "figures": ["times"], "steps_per_run": None}
    studies, tables = {"disc_depth": spec}, tables_of(rows, claims, unfinished=unfinished)
    known = {**FACTS, "effort": {"timed_max_s": 3.0}, "seed": 7, "cpu_threads": 4, **facts}
    problems = problems_view(tables.problems, tables.by_work, list(studies), known["partial"])
    return summary_markdown(studies, tables, problems, known)


def told(**values: Any) -> dict[str, Any]:
    """What `provenance` gathers, as far as the summary needs it."""
    plain = {
        "run": {"command": "snakemake --cores 1", "folder": "/house"},
        "code": {"code_version": COMMIT},
        "rerun": [f"git checkout {COMMIT}", "snakemake --cores 1"],
        "measured_by": [{"code_version": COMMIT, "rows": 4}],
        "effort": [],
        "studies": {},
        "runs": [],
    }
    return plain | values


def line_of(text: str, start: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith(start))
    return line


def test_a_question_has_a_line_with_answer_interval_published_value_and_verdict_with_why(power_laws: PowerLaws) -> None:
    text = markdown_of(power_laws({2: 100, 4: 100_000}, trials=3))
    _, question, answer, published, _ = line_of(text, "| From which").split("|")
    assert question == " From which size on? "
    assert answer == " GPU from 1,000 parameters on (95 %: 984 to 1,020) "
    assert published.strip() == (
        "✓ reproduced (the whole 95 % interval lies within 100 to 100,000): it starts between 100 and 100,000 "
        "\\[crossover in parameters: published 700, measured 1,000 (984 to 1,020)\\]"
    )


def test_it_says_what_the_answers_rest_on(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=3, torch_version="2.13.0", hostname="node17", flags=["quota"])
    rows = rows.assign(peak_allocated_bytes=2 * 10**9, device_memory_bytes=8 * 10**9)
    text = markdown_of(rows)
    assert "- Measured on: GPU (Brand G1); threads of torch 2, torch 2.13.0" in text
    assert "- Trust: 3 trials a cell; 4 of 4 cells flagged: 4 held back by a CPU quota (quota); every measured" in text
    assert "- Missing or failed: nothing\n" in text
    assert "- Memory of the GPU (Brand G1) is no limit here: tensors take up to 2.00 GB of its 8.00 GB, 25 %" in text
    assert "Study: disc\\_depth.\n" in text
    assert '--config "studies=[disc_depth]" trials=3 seed=7 cpu_threads=4`\n' in text
    assert "partial" not in text
    assert "node17" not in text


def test_memory_that_was_not_measured_has_no_line(power_laws: PowerLaws) -> None:
    assert "- Memory" not in markdown_of(power_laws({2: 100}))


def test_each_device_that_ran_out_of_memory_says_so(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}, device_memory_bytes=8 * 10**9)
    rows.loc[(rows["size"] == 4) & (rows["device"] == "cuda"), ["status", "step_time_s"]] = ["oom", None]
    text = markdown_of(pd.concat([rows.assign(machine=name) for name in ("a", "b")]), claims=[])
    for name in ("a", "b"):
        assert f"- Memory of the GPU (Brand G1) of {name} is a limit: 1 cell ran out of it" in text
    assert "- Missing or failed: 2 trials out of memory (oom)\n" in text


def test_the_commands_are_those_of_the_run_where_they_are_known(power_laws: PowerLaws) -> None:
    def command(**values: Any) -> str:
        return line_of(markdown_of(power_laws({2: 100}), provenance=told(**values)), "- To reproduce")

    plain = f"- To reproduce: `git checkout {COMMIT} && snakemake --cores 1`"
    assert command() == plain
    assert command(code={"code_version": f"{COMMIT}-dirty"}, measured_by=[]) == f"{plain}, whose files were changed"
    others = [{"code_version": name} for name in (COMMIT, None, "abc")]
    assert command(measured_by=others) == f"{plain}; measured with commit abc"
    assert "--config" in command(run=None)


def test_each_merged_run_has_its_own_commands_or_says_why_not(power_laws: PowerLaws) -> None:
    runs = [
        {"name": "h_200", "provenance": told(), "doubt": "other rows"},
        {"name": "laptop", "provenance": None, "doubt": "its folder is bare"},
        {"name": "older", "provenance": {"run": {"command": "snakemake -c1"}}, "doubt": None},
    ]
    text = markdown_of(power_laws({2: 100}), provenance=told(runs=runs), effort=None)
    assert line_of(text, "- To reproduce h") == (
        f"- To reproduce h\\_200: `git checkout {COMMIT} && snakemake --cores 1` (other rows)"
    )
    assert line_of(text, "- To reproduce l") == (
        "- To reproduce laptop: not known, since its folder is bare; column `command` of measurements.parquet has each "
        "trial's"
    )
    assert line_of(text, "- To reproduce o") == "- To reproduce older: `snakemake -c1`"
    assert line_of(text, "- Missing or failed") == "- Missing or failed: nothing among the rows that were joined"
    assert "- How much of the run of laptop has finished is not known: its folder is bare." in text.splitlines()


def test_a_partial_run_says_how_much_it_is_and_does_not_pass_for_the_whole(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    axes = first_row(rows[CELL_AXES]) | {"size": 9}
    lost = [Unfinished("trial", axes, "missing", "not measured yet")]
    text = markdown_of(rows, unfinished=lost, partial=True, provenance=told())
    assert "\n**This is partial: 4 of 5 trials have finished.**\n" in text
    assert "- Missing or failed: 1 trial missing\n" in text
    assert "- To reproduce" not in text
    assert "`; without its target `partial_report` it measures what is missing\n" in text
    whole = markdown_of(rows, partial=True, provenance=told())
    assert "\n**This is partial: all 4 trials asked for so far have finished.**\n" in whole


def test_where_no_trial_has_a_time_it_says_so_above_the_answers(power_laws: PowerLaws) -> None:
    text = markdown_of(power_laws({2: 100}).assign(status="timeout", step_time_s=None))
    assert text.index("**No trial has a time, so there is no answer yet.**") < text.index("| question |")
    assert "No trial" not in markdown_of(power_laws({2: 100}))


def test_effort_that_is_not_the_usual_one_is_named(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    text = markdown_of(rows, effort={"timed_max_s": 3.0, "blocks_min": 5})
    assert "- Effort of a trial: the default but for blocks\\_min 5\n" in text


def test_what_users_write_is_shown_as_text(power_laws: PowerLaws) -> None:
    question = "a|b `c` <script>alert(1)</script>\n# [x](y) @you"
    text = markdown_of(power_laws({2: 100, 4: 100_000}), question)
    assert "| a\\|b \\`c\\` \\<script\\>alert(1)\\</script\\> \\# \\[x\\](y) \\@you |" in text


@pytest.mark.parametrize(("text", "shown"), [("2 * 3_000", "2 \\* 3\\_000"), ("back\\slash", "back\\\\slash")])
def test_marks_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a  b\nc", "`a  b c`"), ("a `b` c", "`` a `b` c ``"), ("``", "``` `` ```")],
)
def test_code_ends_only_where_it_ends(text: str, shown: str) -> None:
    assert in_code(text) == shown

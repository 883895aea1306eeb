"""Outputs that outlive a failed job, and what has the job run again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crossover.errors import UserError, logged
from crossover.failures import counted_failure, failures

RULES = Path(__file__).parents[2] / "rules"


def test_a_failure_counts_and_a_success_does_not(tmp_path: Path) -> None:
    log = tmp_path / "render_report.log"
    assert failures(log) == 0
    with counted_failure(log):
        assert failures(log) == 1  # a job that is killed never comes further
    assert failures(log) == 0
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), counted_failure(log):
            raise ZeroDivisionError
    assert failures(log) == 2
    with counted_failure(log):
        pass
    assert failures(log) == 2  # the parameter with which it has just succeeded


def test_a_job_that_ends_with_an_error_has_failed(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "check_claims.log"
    with pytest.raises(SystemExit), logged(str(log)):
        raise UserError("no")
    assert failures(log) == 1
    assert log.read_text() == "error: no\n"


def rule_texts() -> dict[str, str]:
    """Each rule of the workflow as it is written."""
    parts = [part for file in RULES.glob("*.smk") for part in re.split(r"^(?=rule )", file.read_text(), flags=re.M)]
    return {part.split()[1].rstrip(":"): part for part in parts if part.startswith("rule ")}


def test_every_rule_that_keeps_its_outputs_knows_how_often_it_has_failed() -> None:
    """Otherwise Snakemake would take what a failed job has left as what it has made."""
    keeping = {name: text for name, text in rule_texts().items() if "kept(" in text or "figure_files(" in text}
    assert len(keeping) > 20
    for name, text in keeping.items():
        log = re.search(r"    log:\n        (.+),\n", text)
        assert log, name
        assert f"failures=failures_of({log[1]})," in text


def test_every_table_figure_and_report_is_kept() -> None:
    local = re.findall(r"^    (\w+),", (RULES / "local.smk").read_text(), flags=re.M)
    texts = rule_texts()
    for name in (*local, "compare_runs"):
        if name != "plan_refinement":  # no reader's file
            output = texts[name].partition("    output:\n")[2].partition("\n    log:")[0]
            paths = re.findall(r'"\{(?:results|RESULTS)\}/', output)
            assert output.count("kept(") == len(paths) or "figure_files(" in output, name

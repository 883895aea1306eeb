"""Outputs that outlive a failed job, and what has the job run again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def test_every_rule_that_keeps_its_outputs_counts_its_failures() -> None:
    """Otherwise Snakemake would take what a failed job left for what it has made."""
    texts = [part for file in RULES.glob("*.smk") for part in re.split(r"^(?=rule )", file.read_text(), flags=re.M)]
    keeping = [text for text in texts if text.startswith("rule ") and "update(" in text]
    assert len(keeping) > 2
    for text in keeping:
        log = re.search(r"    log:\n        (.+),\n", text)
        assert log, text
        assert f"failures=get_failures({log[1]})," in text

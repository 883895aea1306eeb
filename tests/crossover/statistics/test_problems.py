from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.answers.problem_words import problems_view, progress
from crossover.config.words import FLAGS
from crossover.statistics.problems import REMEDIES, list_problems, rows_by_work
from crossover.statistics.summary import summarise
from crossover.statistics.unfinished import Unfinished
from crossover.tables.frames import records

Row = Callable[..., dict[str, Any]]


def found(rows: list[dict[str, Any]], unfinished: list[Unfinished] | None = None) -> list[dict[str, Any]]:
    table = pd.DataFrame(rows)
    return records(list_problems(rows_by_work(table), summarise(table), unfinished or []))


def lacking(row: Row, size: int, kind: str = "missing", reason: str = "not measured yet", **axes: Any) -> Unfinished:
    return Unfinished("trial", row(size=size, **axes), kind, reason)


def test_a_run_without_problems_lists_none(row: Row) -> None:
    assert found([row(trial=trial) for trial in (1, 2)]) == []


def test_cells_that_share_study_kind_and_reason_are_one_entry(row: Row) -> None:
    """Reasons that differ in their numbers alone are one reason, told by the first of them."""
    rows = [
        row(size=size, device="cuda", status="oom", reason=f"tried to allocate {size}.5 GiB", step_time_s=None)
        for size in (2, 3, 5, 7, 9)
    ]
    rows += [row(size=4, status="timeout", reason="not done after 300 s", step_time_s=None), row(size=4, trial=2)]
    oom, timeout = found(rows)
    assert (oom["kind"], oom["count"], oom["cells"]) == ("oom", 5, "GPU: 2 to 9 (5 of them) linear layers")
    assert oom["reason"] == "tried to allocate 2.5 GiB (and others like it)"
    assert oom["remedy"] == REMEDIES["oom"]
    assert (timeout["count"], timeout["cells"], timeout["reason"]) == (
        1,
        "CPU: 4 linear layers",
        "not done after 300 s",
    )


def test_cells_are_named_by_what_their_study_varies(row: Row) -> None:
    rows = [row(size=4, precision=precision) for precision in ("fp32", "bf16")]
    rows.append(row(size=4, precision="fp16", batch_size=2000, status="unsupported", reason="no", step_time_s=None))
    (entry,) = found(rows)
    assert entry["cells"] == "CPU: 4 linear layers, batch 2,000, fp16"


def test_a_flag_has_its_own_words_and_is_counted_by_trials(row: Row) -> None:
    rows = [row(trial=1, flags=["drift", "quota"]), row(trial=2, flags=["drift"]), row(trial=3)]
    first, second = (entry for entry in found(rows) if "trials_differ" not in entry["reason"])
    what, remedy = FLAGS["drift"].split(": ")
    assert (first["count"], first["reason"], first["remedy"]) == (2, f"drift: {what}", remedy)
    assert (second["count"], second["reason"].split(":")[0]) == (1, "quota")


def test_a_flag_of_a_cell_counts_all_of_its_trials(row: Row) -> None:
    (entry,) = found([row(trial=trial, step_time_s=trial * 1e-3) for trial in (1, 2, 3)])
    assert (entry["kind"], entry["count"], entry["reason"].split(":")[0]) == ("flagged", 3, "trials_differ")


def test_a_flag_of_a_trial_that_must_not_count_is_not_listed(row: Row) -> None:
    (entry,) = found([row(status="invalid", reason="foreign work", flags=["quota"], step_time_s=None)])
    assert (entry["kind"], entry["reason"]) == ("invalid", "foreign work")


def test_what_failed_comes_first_and_flags_last(row: Row) -> None:
    rows = [row(flags=["quota"]), row(size=5, status="oom", reason="full", step_time_s=None)]
    lack = [lacking(row, 6), lacking(row, 7, "failed", "no such file")]
    assert [entry["kind"] for entry in found(rows, lack)] == ["failed", "missing", "oom", "flagged"]


def test_nothing_measured_is_a_list_of_what_is_missing(row: Row) -> None:
    table = pd.DataFrame(columns=list(row()))
    (entry,) = records(list_problems(rows_by_work(table), summarise(table), [lacking(row, 2), lacking(row, 3)]))
    assert (entry["kind"], entry["count"], entry["cells"]) == ("missing", 2, "CPU: 2 and 3 linear layers")


def test_ten_thousand_failed_cells_are_a_short_list(row: Row) -> None:
    lack = [
        lacking(row, size, "failed", f"size {size} is too large", precision=precision)
        for size in range(2, 5002)
        for precision in ("fp32", "bf16")
    ]
    (entry,) = found([row()], lack)
    assert entry["count"] == 10_000
    assert entry["cells"] == "CPU: 2 to 5,001 (5000 of them) linear layers, fp32 and bf16"


def test_progress_counts_rows_and_what_has_none(row: Row) -> None:
    """A trial that ended without a time has ended."""
    rows = [row(), row(size=5, status="oom", reason="full", step_time_s=None), row(study="hsf_width")]
    table = pd.DataFrame(rows)
    problems = list_problems(rows_by_work(table), summarise(table), [lacking(row, 6), lacking(row, 7, "failed", "no")])
    tables = rows_by_work(table)
    assert progress(problems, tables) == {("disc_depth", "trial"): (2, 4), ("hsf_width", "trial"): (1, 1)}
    view = problems_view(problems, tables, ["hsf_width", "disc_depth"], partial=True)
    assert view["partial"] == {
        "all": "3 of 5 trials have finished",
        "studies": ["hsf_width: 1 of 1 trial", "disc_depth: 2 of 4 trials"],
    }
    assert view["counts"] == ["1 trial failed", "1 trial missing", "1 trial out of memory (oom)"]
    assert view["timed"]
    assert problems_view(problems, tables, ["hsf_width"], partial=False)["partial"] is None

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.compare.cells import summarise
from crossover.config.statuses import FLAGS, STATUSES
from crossover.report.problems import list_problems
from crossover.tables.finished import MissingResult
from crossover.tables.run_tables import run_tables

Row = Callable[..., dict[str, Any]]


def problems(rows: list[dict[str, Any]], missing: list[MissingResult] | None = None) -> list[dict[str, Any]]:
    table = pd.DataFrame(rows)
    return list_problems(run_tables(measurements=table, cells=summarise(table)), missing or [])


def lacking(row: Row, size: int, kind: str = "missing", reason: str = "not measured yet", **axes: Any) -> MissingResult:
    return MissingResult("trial", row(size=size, **axes), kind, reason)


def test_cells_that_share_study_kind_and_reason_are_one_entry(row: Row) -> None:
    """Reasons that differ only in numbers are the same; the first is shown."""
    rows = [
        row(size=size, device="cuda", status="oom", reason=f"tried to allocate {size}.5 GiB", step_time_s=None)
        for size in (2, 3, 5, 7, 9)
    ]
    rows += [row(size=4, status="timeout", reason="not done after 300 s", step_time_s=None), row(size=4, trial=2)]
    oom, timeout = problems(rows)
    assert (oom["kind"], oom["count"], oom["cells"]) == ("oom", 5, "GPU: 2 to 9 (5 of them) linear layers")
    assert oom["reason"] == "tried to allocate 2.5 GiB (and others like it)"
    assert oom["remedy"] == STATUSES["oom"].remedy
    assert (timeout["count"], timeout["cells"]) == (1, "CPU: 4 linear layers")


def test_cells_are_named_by_the_axes_that_their_study_varies(row: Row) -> None:
    rows = [row(size=4, precision=precision) for precision in ("fp32", "bf16")]
    rows.append(row(size=4, precision="fp16", batch_size=2000, status="unsupported", reason="no", step_time_s=None))
    (entry,) = problems(rows)
    assert entry["cells"] == "CPU: 4 linear layers, batch 2,000, fp16"
    rows[-1] |= {"batch_name": "k"}
    (entry,) = problems(rows)
    assert entry["cells"] == "CPU: 4 linear layers, k = 2,000, fp16"
    rows[-1] |= {"size_name": "m"}
    (entry,) = problems(rows)
    assert entry["cells"] == "CPU: m = 4, k = 2,000, fp16"


def test_a_flag_has_its_own_remedy_and_counts_trials(row: Row) -> None:
    rows = [row(trial=1, flag_names=["steal", "quota"]), row(trial=2, flag_names=["steal"]), row(trial=3)]
    first, second = problems(rows)
    steal = FLAGS["steal"]
    assert (first["count"], first["reason"], first["remedy"]) == (2, f"steal: {steal.meaning}", steal.remedy)
    assert (second["count"], second["reason"].split(":")[0]) == (1, "quota")


def test_a_flag_of_a_cell_counts_all_of_its_trials(row: Row) -> None:
    """A drift in one of the trials is no flag of the cell."""
    rows = [row(trial=trial, step_time_s=3**trial * 1e-3) for trial in (1, 2, 3)]
    (entry,) = problems([*rows[:2], rows[2] | {"flag_names": ["drift"]}])
    assert (entry["kind"], entry["count"], entry["reason"].split(":")[0]) == ("flagged", 3, "trials_differ")


def test_failures_come_first_and_flags_last(row: Row) -> None:
    rows = [row(flag_names=["quota"]), row(size=5, status="oom", reason="full", step_time_s=None)]
    lack = [lacking(row, 6), lacking(row, 7, "failed", "no such file")]
    assert [entry["kind"] for entry in problems(rows, lack)] == ["failed", "missing", "oom", "flagged"]

"""Which trials are measured a second time, and whose row it is then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crossover.measurement import attempts
from crossover.measurement.attempts import measure
from crossover.measurement.requests import Request
from crossover.measurement.supervision import Outcome
from crossover.records import Measurement
from trials import read_row, request


def outcome(status: str, reason: str | None, transient: bool = False) -> Outcome:
    return Outcome(status, reason, False, {"parameters": 6, "step_time_s": 0.5}, transient=transient)


HEAT = outcome("invalid", "heat", transient=True)


@pytest.mark.parametrize(
    ("ends", "attempted", "status", "reason"),
    [
        ([HEAT, outcome("ok", None)], 2, "ok", None),
        ([HEAT, HEAT], 2, "invalid", "heat"),
        ([outcome("invalid", "crashed (SIGSEGV)")], 1, "invalid", "crashed (SIGSEGV)"),
        ([outcome("oom", "full")], 1, "oom", "full"),
        ([outcome("ok", "memory pass: not done after 12 s")], 1, "ok", "memory pass: not done after 12 s"),
    ],
)
def test_only_what_may_pass_is_measured_once_more(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ends: list[Outcome],
    attempted: int,
    status: str,
    reason: str | None,
) -> None:
    made: list[int] = []

    def run(job: Request, _environment: object) -> Outcome:
        made.append(job.attempts)
        return ends[len(made) - 1]

    monkeypatch.setattr(attempts, "run_supervised", run)
    output = tmp_path / "row.parquet"
    measure(request(tmp_path / "data", output), {})
    row = read_row(output)
    assert made == [1, 2][:attempted]
    assert (row["status"], row["reason"], row["step_time_s"], row["parameters"]) == (status, reason, 0.5, 6)


def test_a_row_measured_in_this_process_counts_by_its_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from crossover.measurement import child

    made: list[int] = []

    def run(job: Request) -> Measurement:
        made.append(job.attempts)
        return Measurement(status="invalid", reason="others", foreign_processes=len(made) % 2, recompiles=2)

    monkeypatch.setattr(child, "run_request", run)
    measure(replace(request(tmp_path / "data", tmp_path / "row.parquet"), isolation="none"), {})
    assert made == [1, 2]
    assert read_row(tmp_path / "row.parquet")["foreign_processes"] == 0

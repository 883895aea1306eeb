"""Which trials are measured a second time, whose row it is then, and what a measuring process leaves behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crossover.measurement.process import attempts
from crossover.measurement.process.attempts import measure
from crossover.measurement.process.jobs import Outcome, TrialJob
from trials import read_row, trial_job, write_points


@pytest.mark.usefixtures("own_servers")
@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["process", "server"])
def test_a_trial_leaves_no_temporary_files(isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch makes a folder for its compiler as soon as an optimizer is built."""
    monkeypatch.setattr(attempts.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    trial = trial_job(write_points(tmp_path / "points.safetensors"), tmp_path / "row.parquet", isolation=isolation)
    measure(trial)
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["isolation"]) == ("ok", isolation)
    assert list((tmp_path / "temporary").iterdir()) == []


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

    def run(job: TrialJob) -> Outcome:
        made.append(job.attempts)
        return ends[len(made) - 1]

    monkeypatch.setattr(attempts, "run_supervised", run)
    output = tmp_path / "row.parquet"
    measure(trial_job(tmp_path / "data", output))
    row = read_row(output)
    assert made == [1, 2][:attempted]
    assert (row["status"], row["reason"], row["step_time_s"], row["parameters"]) == (status, reason, 0.5, 6)

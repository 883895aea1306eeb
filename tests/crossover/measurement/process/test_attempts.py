"""Which trials are measured a second time, whose row it is then, and what a measuring process leaves behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from crossover.measurement.process import attempts
from crossover.measurement.process.attempts import measure, run_supervised
from crossover.measurement.process.jobs import Job, Outcome, TrialJob
from crossover.measurement.process.supervision import ChildFailedError
from crossover.tables.columns import Measurement
from trials import read_row, trial_job, write_points


class Writer:
    """A measuring process that leaves files in its folder for temporary ones until it is killed."""

    folders: list[Path]

    def __init__(self, _job: Job, environment: Mapping[str, str]) -> None:
        self.folder = Path(environment["TMPDIR"])
        self.folders.append(self.folder)
        (self.folder / "torchinductor_me" / "deep").mkdir(parents=True)

    def kill(self) -> None:
        (self.folder / "torchinductor_me" / "last").touch()


@pytest.mark.parametrize("fails", [False, True])
def test_temporary_files_go_with_the_measuring_process_however_it_ends(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def supervise(*_: object) -> Outcome:
        if fails:
            raise ChildFailedError("killed")
        return Outcome("ok", None, True, {})

    Writer.folders = []
    monkeypatch.setattr(attempts, "FreshProcess", Writer)
    monkeypatch.setattr(attempts, "supervise", supervise)
    job = trial_job(tmp_path / "data", tmp_path / "row")
    for _ in range(2):
        try:
            run_supervised(job, {})
        except ChildFailedError:
            assert fails
    assert len(set(Writer.folders)) == 2
    assert not any(folder.exists() for folder in Writer.folders)


@pytest.mark.usefixtures("own_servers")
@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["process", "server"])
def test_a_trial_leaves_no_temporary_files(isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch makes a folder for its compiler as soon as an optimizer is built."""
    monkeypatch.setattr(attempts.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    trial = trial_job(write_points(tmp_path / "points.safetensors"), tmp_path / "row.parquet", isolation=isolation)
    attempts.measure(trial, Measurement, os.environ | {"TMPDIR": str(tmp_path / "temporary")})
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

    def run(job: TrialJob, _environment: object) -> Outcome:
        made.append(job.attempts)
        return ends[len(made) - 1]

    monkeypatch.setattr(attempts, "run_supervised", run)
    output = tmp_path / "row.parquet"
    measure(trial_job(tmp_path / "data", output), Measurement, {})
    row = read_row(output)
    assert made == [1, 2][:attempted]
    assert (row["status"], row["reason"], row["step_time_s"], row["parameters"]) == (status, reason, 0.5, 6)


def test_a_row_measured_in_this_process_counts_by_its_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from crossover.measurement.process import child

    made: list[int] = []

    def run(job: TrialJob) -> Measurement:
        made.append(job.attempts)
        return Measurement(status="invalid", reason="others", foreign_processes=len(made) % 2, recompiles=2)

    monkeypatch.setattr(child, "do", run)
    measure(trial_job(tmp_path / "data", tmp_path / "row.parquet", isolation="none"), Measurement, {})
    assert made == [1, 2]
    assert read_row(tmp_path / "row.parquet")["foreign_processes"] == 0

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from crossover.measurement import attempts
from crossover.measurement.attempts import run_supervised
from crossover.measurement.requests import Job
from crossover.measurement.supervision import ChildFailedError, Outcome
from trials import read_row, request, write_points


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
    job = request(tmp_path / "data", tmp_path / "row")
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
    trial = request(write_points(tmp_path / "points.safetensors"), tmp_path / "row.parquet", isolation=isolation)
    attempts.measure(trial, os.environ | {"TMPDIR": str(tmp_path / "temporary")})
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["isolation"]) == ("ok", isolation)
    assert list((tmp_path / "temporary").iterdir()) == []

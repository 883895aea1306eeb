"""What a model writes while it is measured is no input; what others write later is one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from crossover.config.models import Model
from crossover.config.workloads import OWN
from crossover.machine import named_files
from crossover.machine.code_key import Code, code_of
from crossover.machine.written_files import WrittenFiles
from crossover.measurement.process import writes
from crossover.measurement.process.writes import noted_writes, noting_builds


def append(path: Path) -> None:
    with path.open("a") as log:
        log.write("a line\n")


def replace(path: Path) -> None:
    path.with_name("temporary").write_text("new")
    os.replace(path.with_name("temporary"), path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "file.npy": lambda path: np.save(path, np.zeros(2)),
    "file.log": append,
    "file.pt": lambda path: torch.save({"weight": torch.zeros(2)}, str(path)),
    "file.json": replace,
}


class Bench:
    """A folder with a model that names a file, and the record of a results folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.file, self.record = folder, folder / name, folder / "results" / "written_files.json"
        self.record.parent.mkdir()
        (folder / "results" / "plan.json").write_text("{}")
        (folder / "other.txt").write_text("other")
        (folder / "net.py").write_text(f"open('{name}')\n")

    def code(self) -> Code:
        model = Model(str(self.folder / "net.py"), "build")
        return code_of("trial", OWN, model=model, written=self.record)

    def measure(self, write: Callable[[Path], None]) -> None:
        with noted_writes(self.folder) as noted:
            tell = noting_builds(noted, lambda: self.code().digests_of_model, lambda _message: None)
            tell({"doing": "build", "builds": True})
            write(self.file)
            tell({"doing": "a step"})
        (self.folder / "temporary").unlink(missing_ok=True)
        WrittenFiles.read(self.record, self.folder).write(self.record, noted)


@pytest.fixture(params=WRITERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    folder = tmp_path.resolve()
    monkeypatch.chdir(folder)
    return Bench(folder, request.param)


def test_a_file_that_the_model_writes_does_not_change_its_keys(bench: Bench) -> None:
    before = bench.code()
    for _ in range(3):
        bench.measure(WRITERS[bench.file.name])
        after = bench.code()
        assert (after.key, after.model_key) == (before.key, before.model_key)


def test_an_existing_file_counts_as_it_was_before_the_model_wrote_to_it(bench: Bench) -> None:
    bench.file.write_text("of the user")
    before = bench.code()
    bench.measure(WRITERS[bench.file.name])
    assert bench.code().key == before.key


def test_a_written_file_is_recognised_whatever_the_sizes_of_the_models_files(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together, the two files are larger than what is read as a whole; the second alone is not."""
    monkeypatch.setattr(named_files, "MOST_READ_BYTES", 1000)
    (bench.folder / "data.bin").write_bytes(bytes(999))
    (bench.folder / "net.py").write_text(f"open('data.bin')\nopen('{bench.file.name}')\n")
    bench.file.write_text("of the user")
    before = bench.code()
    for _ in range(2):
        bench.measure(lambda path: path.write_bytes(bytes(500)))
        assert bench.code().key == before.key
    bench.measure(lambda path: path.write_bytes(bytes(1500)))
    assert bench.code().key == before.key
    (bench.folder / "data.bin").write_bytes(bytes(998))
    assert bench.code().key != before.key


def test_a_database_that_the_model_writes_does_not_change_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def insert(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("create table if not exists runs (number)")
            database.execute("insert into runs values (1)")

    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path.resolve(), "runs.sqlite")
    before = bench.code()
    for _ in range(2):
        bench.measure(insert)
        assert bench.code().key == before.key


def test_what_others_write_later_is_an_input(bench: Bench) -> None:
    before = bench.code()
    bench.measure(WRITERS[bench.file.name])
    bench.file.write_text("by the user")
    edited = bench.code()
    assert edited.key != before.key
    bench.measure(WRITERS[bench.file.name])
    assert bench.code().key == edited.key


def by_another_process(path: Path) -> None:
    subprocess.run(["sh", "-c", f"date +%N > {path.name}"], check=True)


@pytest.mark.parametrize("existing", [False, True])
def test_a_file_that_compiled_code_or_another_process_writes_during_a_build_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path.resolve(), "labels.parquet")
    if existing:
        bench.file.write_text("of the user")
    before = bench.code()
    for _ in range(3):
        bench.measure(by_another_process)
        assert bench.code().key == before.key
    bench.file.write_text("by the user")
    assert bench.code().key != before.key


def test_what_changes_outside_of_builds_is_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path.resolve(), "labels.parquet")
    noted: dict[Path, str | None] = {}
    tell = noting_builds(noted, lambda: bench.code().digests_of_model, lambda _message: None)
    tell({"doing": "the import", "builds": True})
    tell({"doing": "build", "builds": True})
    tell({"doing": "a step"})
    by_another_process(bench.file)
    tell({"known": {}})
    assert noted == {}


def test_a_build_that_changes_the_working_directory_has_not_written_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path.resolve() / "mine", "labels.parquet")
    there = tmp_path / "elsewhere" / "labels.parquet"
    there.write_text("of the user")
    changed_ns = there.stat().st_ctime_ns
    monkeypatch.setattr(writes.time, "time_ns", lambda: changed_ns + 10**9)
    noted: dict[Path, str | None] = {}
    tell = noting_builds(noted, lambda: bench.code().digests_of_model, lambda _message: None)
    tell({"doing": "build", "builds": True})
    monkeypatch.chdir(tmp_path / "elsewhere")
    tell({"doing": "a step"})
    assert there.resolve() in bench.code().digests_of_model
    assert noted == {}


def test_a_read_is_not_noted_and_the_functions_are_restored(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("x")
    functions = (open, os.rename, os.replace, torch.save, sqlite3.connect)
    with noted_writes(tmp_path) as noted:
        (tmp_path / "input.txt").read_text()
    assert noted == {}
    assert (open, os.rename, os.replace, torch.save, sqlite3.connect) == functions

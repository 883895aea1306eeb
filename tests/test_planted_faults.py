"""Trials that go wrong in every way that was thought of: the row says how, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from crossover.config.options import trial_options
from planting import (
    CRASH,
    CRASH_LATER,
    ELSEWHERE,
    HANG,
    HOG,
    KILLED,
    LITTER,
    NAN,
    RAISE,
    STUBBORN,
    WELL,
    kill_while_hanging,
    plant,
)
from trials import CELL, EFFORT, read_row, run_script, write_points

pytestmark = pytest.mark.slow
ISOLATIONS = ["process", pytest.param("server", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"))]
GROUP = Path("/sys/fs/cgroup/memory/crossover-test")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    plant(folder)
    write_points(folder / "points.safetensors")
    return folder


def options(house: Path, output: Path, fault: int, isolation: str, time_limit_s: float = 60) -> list[str]:
    cell = replace(CELL, workload="planted", batch_size=10, size=fault)
    shared = trial_options(cell, seed=0, cpu_threads=1, time_limit_s=time_limit_s, effort=EFFORT, isolation=isolation)
    return [*shared, f"--dataset={house / 'points.safetensors'}", f"--output={output}"]


def run(house: Path, output: Path, *arguments: Any, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return run_script(options(house, output, *arguments), *prefix, script=house / "scripts" / "measure_cell.py")


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    ("fault", "status", "reason", "attempts"),
    [
        (WELL, "ok", None, 1),
        (CRASH, "invalid", "the measuring process crashed (SIGSEGV); run measure_cell.py with --isolation=none", 1),
        (NAN, "ok", "in double precision, too, the answer is not finite", 1),
        (ELSEWHERE, "invalid", "tensors lie on meta, not on cpu", 1),
        (KILLED, "invalid", "something outside ended the measuring process (SIGKILL)", 2),
    ],
)
def test_a_fault_is_a_row(
    house: Path, tmp_path: Path, fault: int, status: str, reason: str | None, attempts: int, isolation: str
) -> None:
    output = tmp_path / "row.parquet"
    done = run(house, output, fault, isolation)
    assert done.returncode == 0, done.stderr
    row = read_row(output)
    assert (row["status"], row["attempts"], row["isolation"]) == (status, attempts, isolation)
    assert row["reason"] is None if reason is None else row["reason"].startswith(reason)
    assert row["parameters"] == 6
    assert row["hostname"]
    assert ("measuring once more" in done.stderr) is (attempts == 2)
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_crash_after_the_timing_leaves_the_time(house: Path, tmp_path: Path, isolation: str) -> None:
    done = run(house, tmp_path / "row.parquet", CRASH_LATER, isolation)
    assert done.returncode == 0, done.stderr
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["attempts"], row["relative_error"], row["peak_rss_bytes"]) == ("ok", 1, None, None)
    assert row["reason"].startswith("numerical check: the measuring process crashed (SIGSEGV)")
    assert row["reason"].endswith("; not begun: memory pass, profile, count of operations")
    assert row["flags"][-2:] == ["unchecked", "incomplete"]
    assert row["step_time_s"] > 0
    assert row["timed_steps"] == row["block_steps"] * len(row["samples_s"])


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("fault", [HANG, STUBBORN])
def test_a_step_that_never_ends_is_a_timeout(house: Path, tmp_path: Path, fault: int, isolation: str) -> None:
    output = tmp_path / "row.parquet"
    done = run(house, output, fault, isolation, 2.0)
    assert done.returncode == 0, done.stderr
    row = read_row(output)
    assert (row["status"], row["reason"]) == ("timeout", "not done after 2 s; raise time_limit_s")


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_bug_fails_the_job_and_shows_where(house: Path, tmp_path: Path, isolation: str) -> None:
    done = run(house, tmp_path / "row.parquet", RAISE, isolation)
    assert done.returncode == 1
    assert "ValueError: planted" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_group() -> Iterator[tuple[str, ...]]:
    """A command prefix that runs in a control group with 1.5 GB of memory."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text("1500M")
    except OSError as error:
        pytest.skip(f"no control group of memory can be made here ({error})")
    yield ("sh", "-c", f'echo $$ > {GROUP / "cgroup.procs"}; exec "$@"', "sh")
    for pid in (GROUP / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    while (GROUP / "cgroup.procs").read_text():
        time.sleep(0.05)
    GROUP.rmdir()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_memory_without_end_is_out_of_memory(
    house: Path, tmp_path: Path, small_group: tuple[str, ...], isolation: str
) -> None:
    output = tmp_path / "row.parquet"
    done = run(house, output, HOG, isolation, prefix=small_group)
    assert done.returncode == 0, done.stderr
    row = read_row(output)
    assert row["status"] == "oom"
    assert row["reason"].startswith("ended by the kernel's out-of-memory killer")


def descendants_of(marker: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter()
        if process.status() != psutil.STATUS_ZOMBIE and any(marker in part for part in process.cmdline())
    ]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_a_workload_started_ends_with_it(house: Path, tmp_path: Path, isolation: str) -> None:
    done = run(house, tmp_path / "row.parquet", LITTER, isolation)
    assert done.returncode == 0, done.stderr
    assert descendants_of("litter-of-crossover") == []


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_job_leaves_no_process_and_no_file(
    house: Path, tmp_path: Path, isolation: str, number: signal.Signals
) -> None:
    begun, folder = tmp_path / "begun", tmp_path / "results"
    script = house / "scripts" / "measure_cell.py"
    command = [sys.executable, str(script), *options(house, folder / "row.parquet", HANG, isolation)]
    status, said = kill_while_hanging(command, begun, number)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in said
    assert list(folder.iterdir()) == []

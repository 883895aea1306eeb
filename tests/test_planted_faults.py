"""Trials with planted faults: the row gives the reason, and no process or file remains."""

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

import planting
from planting import kill_while_hanging, plant
from trials import CELL, read_row, run_script, trial_options, write_points

pytestmark = pytest.mark.slow
GROUP = Path("/sys/fs/cgroup/memory/crossover-test")


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    plant(folder)
    write_points(folder / "points.safetensors")
    return folder


@pytest.fixture(
    params=["process", pytest.param("server", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux"))]
)
def isolation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def options(workflow: Path, output: Path, fault: int, isolation: str, time_limit_s: float = 60) -> list[str]:
    cell = replace(CELL, workload="planted", batch_size=10, size=fault)
    shared = trial_options(cell, seed=0, cpu_threads=1, time_limit_s=time_limit_s, isolation=isolation)
    return [*shared, f"--dataset={workflow / 'points.safetensors'}", f"--output={output}"]


def run(
    workflow: Path, folder: Path, *arguments: Any, prefix: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a trial with a fault, whose job must succeed; returns its output and its row."""
    output = folder / "row.parquet"
    done = run_script(options(workflow, output, *arguments), *prefix, script=workflow / "scripts" / "measure_cell.py")
    assert done.returncode == 0, done.stderr
    return done, read_row(output)


@pytest.mark.parametrize(
    ("fault", "status", "reason", "attempts"),
    [
        (planting.CRASH, "invalid", "the measuring process crashed (SIGSEGV)", 1),
        (planting.KILLED, "invalid", "the measuring process was ended from outside (SIGKILL)", 2),
    ],
)
def test_a_fault_ends_in_a_row_with_its_reason(
    workflow: Path, tmp_path: Path, fault: int, status: str, reason: str, attempts: int, isolation: str
) -> None:
    done, row = run(workflow, tmp_path, fault, isolation)
    assert (row["status"], row["attempts"], row["isolation"]) == (status, attempts, isolation)
    assert row["reason"].startswith(reason)
    assert row["parameters"] == 6
    assert row["hostname"]
    assert ("measuring once more" in done.stderr) is (attempts == 2)
    assert list(tmp_path.iterdir()) == [tmp_path / "row.parquet"]


def test_a_crash_after_the_timing_keeps_the_time(workflow: Path, tmp_path: Path, isolation: str) -> None:
    _, row = run(workflow, tmp_path, planting.CRASH_LATER, isolation)
    assert (row["status"], row["attempts"], row["relative_error"], row["peak_rss_bytes"]) == ("ok", 1, None, None)
    assert row["reason"].startswith("numerical check: the measuring process crashed (SIGSEGV)")
    assert row["reason"].endswith("; not begun: memory pass, memory split, profile, count of operations, remedies")
    assert row["flag_names"][-2:] == ["not_checked", "incomplete"]
    assert row["step_time_s"] > 0
    assert row["timed_steps"] == row["block_steps"] * len(row["samples_s"])


def test_a_step_that_never_ends_and_ignores_signals_is_a_timeout(
    workflow: Path, tmp_path: Path, isolation: str
) -> None:
    _, row = run(workflow, tmp_path, planting.STUBBORN, isolation, 2.0)
    assert (row["status"], row["reason"]) == ("timeout", "not done after 2 s; raise time_limit_s")


def test_a_bug_fails_the_job_with_a_traceback(workflow: Path, tmp_path: Path) -> None:
    command = options(workflow, tmp_path / "row.parquet", planting.RAISE, "server")
    done = run_script(command, script=workflow / "scripts" / "measure_cell.py")
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


def test_a_process_killed_by_the_kernel_is_out_of_memory(
    workflow: Path, tmp_path: Path, small_group: tuple[str, ...], isolation: str
) -> None:
    _, row = run(workflow, tmp_path, planting.HOG, isolation, prefix=small_group)
    assert row["status"] == "oom"
    assert row["reason"].startswith("ended by the kernel's out-of-memory killer")


def test_processes_that_a_workload_started_end_with_it(workflow: Path, tmp_path: Path, isolation: str) -> None:
    run(workflow, tmp_path, planting.LITTER, isolation)
    alive = [process for process in psutil.process_iter() if process.status() != psutil.STATUS_ZOMBIE]
    assert [p.pid for p in alive if any("litter-of-crossover" in part for part in p.cmdline())] == []


@pytest.mark.parametrize(
    ("isolation", "number"), [("server", signal.SIGTERM), ("process", signal.SIGINT), ("server", signal.SIGKILL)]
)
def test_a_killed_job_leaves_no_process_and_no_file(
    workflow: Path, tmp_path: Path, isolation: str, number: signal.Signals
) -> None:
    begun, folder = tmp_path / "begun", tmp_path / "results"
    script = workflow / "scripts" / "measure_cell.py"
    command = [sys.executable, str(script), *options(workflow, folder / "row.parquet", planting.HANG, isolation)]
    status, said = kill_while_hanging(command, begun, number)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in said
    assert list(folder.iterdir()) == []

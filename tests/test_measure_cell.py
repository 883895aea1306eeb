"""The timing script, run from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossover.config.words import AXES
from crossover.measurement.process.jobs import Outcome
from measure_cell import answer_of
from trials import CELL, EFFORT, SCRIPT, read_row, run_script, trial_options, write_points


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_points(tmp_path_factory.mktemp("data") / "points.safetensors")


NOT_IN_PARENT = {"torch", "numpy", "pyarrow", "pandas", "sqlite3", "platform"} | {
    f"crossover.{name}" for name in ("tables.columns", "machine.code_key", "measurement.process.child")
}
"""Modules that cost time before each trial and are of no use to the process that supervises it."""


def test_a_trial_writes_one_row_and_its_supervising_process_imports_only_what_it_uses(
    dataset: Path, tmp_path: Path
) -> None:
    output = tmp_path / "deep" / "row.parquet"
    options = trial_options(CELL, seed=0, cpu_threads=2, time_limit_s=60, isolation="process")
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import measure_cell; "
        f"measure_cell.main(sys.argv[1:]); print({NOT_IN_PARENT} & set(sys.modules))"
    )
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # as set by Snakemake
    command = [sys.executable, "-c", code, *options, f"--dataset={dataset}", f"--output={output}"]
    done = subprocess.run(command, env={**os.environ, **limits}, capture_output=True, text=True, timeout=600)
    assert done.stdout.endswith("\nset()\n"), done.stdout + done.stderr
    row = read_row(output)
    assert (row["status"], row["trial"], row["parameters"], row["threads"]) == ("ok", 1, 70, 2)
    assert {axis: row[axis] for axis in AXES} == {axis: getattr(CELL, axis) for axis in AXES}
    samples = row["samples_s"]
    assert len(samples) >= 3
    # The mean, if other programs make the blocks differ.
    assert row["step_time_s"] in (pytest.approx(float(np.median(samples))), pytest.approx(float(np.mean(samples))))
    assert row["timed_s"] == pytest.approx(sum(samples) * row["block_steps"])
    assert 0 < row["warmup_s"] + row["timed_s"] < sum(json.loads(row["spent_s"]).values())
    switches = json.loads(row["backend_settings"])
    leaves = [value for name, value in switches.items() if name.endswith("fp32_precision") and name.count(".") == 2]
    assert leaves == ["ieee"] * 6
    assert (switches["threads"], switches["interop_threads"]) == (row["threads"], row["interop_threads"])
    assert row["peak_rss_bytes"] >= row["base_rss_bytes"] > 0
    assert json.loads(row["effort"]) == vars(EFFORT)
    assert f"--dataset={dataset}" in row["command"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["row.parquet"]


def test_running_out_of_memory_is_a_row(dataset: Path, tmp_path: Path) -> None:
    """The weights of sixteen layers take 11 GB, and the process may map 4 GB."""
    options = trial_options(replace(CELL, size=16), seed=0, cpu_threads=1, time_limit_s=60)
    limit = ("prlimit", f"--as={4 * 2**30}")
    done = run_script([*options, f"--dataset={dataset}", f"--output={tmp_path / 'row.parquet'}"], *limit)
    assert done.returncode == 0, done.stderr
    row = read_row(tmp_path / "row.parquet")
    assert row["status"] == "oom"
    assert "can't allocate memory" in row["reason"]
    assert row["step_time_s"] is None


def test_the_script_prints_its_answer_and_ends_without_the_clean_up_of_python(dataset: Path, tmp_path: Path) -> None:
    code = (
        f"import atexit, runpy, sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); "
        "from crossover.measurement.process import attempts; atexit.register(print, 'cleaned up'); "
        "attempts.measure = lambda job: attempts.Outcome('oom', 'full', True, {}); "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    options = [*trial_options(CELL, seed=0, cpu_threads=1, time_limit_s=60), f"--dataset={dataset}"]
    command = [sys.executable, "-c", code, *options, f"--output={tmp_path / 'row'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "oom: full\n", "")


def test_help_works_in_a_bare_environment() -> None:
    """No installed package is importable with -I -S; the script's own folder is added as Python does for a script."""
    code = (
        f"import sys, runpy; sys.path.insert(0, {str(SCRIPT.parent)!r}); sys.argv = ['measure_cell.py', '--help']; "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "--device" in done.stdout


RESULT = {
    **{"step_time_s": 0.0521, "samples_s": [0.05, 0.06] * 10, "flag_names": [], "on": "H200"},
    **{"peak_allocated_bytes": 1_200_000_000, "rss_growth_bytes": 5_000_000},
}
ON_CPU = {"samples_s": [1e-4], "peak_allocated_bytes": None, "on": "cpu"}


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        ({"status": "oom", "reason": "full"}, "oom: full"),
        ({"result": RESULT}, "52.1 ms per step, within ±4.4 % in this trial, peak 1.20 GB, on H200"),
        (
            {"result": {**RESULT, **ON_CPU, "rss_growth_bytes": None, "flag_names": ["drift"]}},
            "52.1 ms per step, on cpu (flagged: drift)",
        ),
        # One or two pages are below what the kernel's counters resolve; the bytes of an allocator are exact.
        ({"result": {**RESULT, **ON_CPU, "rss_growth_bytes": 8192}}, "52.1 ms per step, on cpu"),
        ({"result": {**RESULT, **ON_CPU}}, "52.1 ms per step, peak 5.00 MB, on cpu"),
        (
            {"result": {**RESULT, "samples_s": [1e-4], "peak_allocated_bytes": 8192}},
            "52.1 ms per step, peak 8.19 kB, on H200",
        ),
    ],
)
def test_the_command_prints_the_result(outcome: dict[str, Any], line: str) -> None:
    whole = {"status": "ok", "reason": None, "written": True, "facts": {}, **outcome}
    assert answer_of(Outcome(**whole)) == line

"""The breakdown of a run's wall time, from made-up records of jobs and rows of trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_wall_time import breakdown, job_seconds


def record(folder: Path, name: str, **values: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"log": [f"{values['rule']}.log"], **values}))


def test_a_job_ends_when_its_last_output_is_written(tmp_path: Path) -> None:
    record(tmp_path, "a", rule="analyse_run", starttime=100, endtime=103)
    record(tmp_path / "deeper", "b", rule="analyse_run", starttime=100, endtime=104)
    record(tmp_path, "c", rule="measure_cell", log=["1.log"], starttime=101, endtime=102)
    record(tmp_path, "d", rule="measure_cell", log=["2.log"], starttime=105, endtime=105.5)
    record(tmp_path, "e", rule="measure_cell", log=["3.log"], starttime=50, endtime=60)
    record(tmp_path, "f", rule="measure_cell", log=["4.log"], starttime=106, endtime=None)
    assert job_seconds(tmp_path, since=100) == {"analyse_run": 4, "measure_cell": 1.5}


def test_the_parts_add_up_to_the_wall_time() -> None:
    """Trials take 12 of 20 s; their phases account for 9, of which 4 are timing and 2 warm-up."""
    phases = [
        json.dumps({"import": 0.5, "warm-up and timing": 3.5, "memory pass": 0.5}),
        json.dumps({"import": 0.5, "warm-up and timing": 2.5, "numerical check": 1.5}),
    ]
    table = breakdown(20, {"measure_cell": 12, "analyse_run": 2, "render_report": 1.5}, phases, timed_s=4)
    parts = dict(zip(table["part"], table["seconds"], strict=True))
    assert parts == {
        "Snakemake": 4.5,
        "timing": 4,
        "process": 3,
        "warm-up": 2,
        "tables": 2,
        "page": 1.5,
        "numerical check": 1.5,
        "import": 1,
        "memory pass": 0.5,
    }
    assert sum(parts.values()) == 20
    assert table["share"].sum() == pytest.approx(100)
    assert table["seconds"].is_monotonic_decreasing

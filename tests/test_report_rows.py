"""scripts/report_rows.py: the finished part of a run, and runs of several machines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import report_rows
from crossover.config.studies import CELL_PATH
from crossover.errors import UserError
from crossover.plan import plan_file
from crossover.tables.columns import COLUMNS, SCHEMA_VERSION, arrow_schema
from crossover.tables.frames import read_table, write_rows
from crossover.tables.reference_files import write_reference
from report_pages import CONFIG, study

Row = Callable[..., dict[str, Any]]
WHERE = {"hostname": "node1", "torch_version": "2.13.0", "python_version": "3.12.1", "operating_system": "Linux"}


def trial(row: Row, size: int, device: str, seconds: float, **values: Any) -> dict[str, Any]:
    version = {"schema_version": SCHEMA_VERSION, "plan_key": "a key"}
    return row(size=size, parameters=7 * size, device=device, step_time_s=seconds, **version, **WHERE, **values)


@pytest.fixture
def trials(row: Row) -> list[dict[str, Any]]:
    """Trials of a CPU that is faster than the GPU at size 2 and slower at size 8."""
    times = {(2, "cpu"): 1e-3, (2, "cuda"): 2e-3, (8, "cpu"): 4e-3, (8, "cuda"): 2e-3}
    return [trial(row, size, device, seconds) for (size, device), seconds in times.items()]


def path_of(trial: Mapping[str, Any], results: Path) -> Path:
    return results / "cells" / CELL_PATH.format(**trial) / f"trial-{trial['trial']}.parquet"


def make_run(
    results: Path,
    trials: list[dict[str, Any]],
    figures: Sequence[str] = ("utilisation",),
    references: Sequence[str] = (),
) -> None:
    results.mkdir()
    plan = plan_file.Plan(
        config=CONFIG | {"results": "elsewhere/results"},
        studies={"disc_depth": study(sizes=[2, 8], figures=list(figures))},
        devices=["cpu", "cuda"],
        cells=[],
        trials=1,
        rows=[str(path_of(trial, Path("elsewhere/results"))) for trial in trials],
        trainings=[],
        searches=[],
        keys=[{"key": "a key", "parts": {}}],
        several_hosts=False,
        references=list(references),
        note=None,
    )
    plan_file.write(plan, results / "plan.json")


def write_trial(trial: dict[str, Any], results: Path) -> None:
    path = path_of(trial, results)
    path.parent.mkdir(parents=True)
    write_rows(pa.Table.from_pylist([trial], schema=arrow_schema()), path)


def test_the_report_of_an_unfinished_run_names_what_is_missing(
    tmp_path: Path, trials: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, output = tmp_path / "run", tmp_path / "output"
    make_run(run, trials)
    good, odd, broken, _ = trials
    write_trial(good, run)
    write_trial(odd | {"plan_key": "another key"}, run)
    write_trial(broken, run)
    path_of(broken, run).write_bytes(b"broken")
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    report_rows.main([str(run), "--output", str(output)])
    assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert read_table(output / "cells.parquet")["size"].tolist() == [2]
    problems = json.loads((output / "provenance.json").read_text())["problems"]
    assert {problem["kind"] for problem in problems} == {"missing", "unreadable", "excluded"}
    assert capsys.readouterr().out == (output / "summary.txt").read_text()
    assert "Partial: 1 of 4 trials have finished." in (output / "summary.txt").read_text()


def test_a_run_that_has_only_probed_its_roofs_has_a_report(
    tmp_path: Path, trials: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "run", trials)
    (tmp_path / "run" / "roofs").mkdir()
    roof = {"machine": "here", "device": "cpu", "roof": "matmul", "precision": "fp32", "value": 1e12}
    (tmp_path / "run" / "roofs" / "cpu.json").write_text(json.dumps([roof]))
    report_rows.main([str(tmp_path / "run")])
    assert "Partial: 0 of 4 trials have finished." in capsys.readouterr().out


def test_an_unfinished_run_is_compared_with_a_reference_that_still_exists(
    tmp_path: Path, trials: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {"physical_cores": 4, "started_at": "2026-11-23T10:00:00Z", "model_key": "key"}
    measured = [trial | facts for trial in trials]
    measurements = pd.DataFrame(measured).reindex(columns=list(COLUMNS))
    write_reference(measurements, "far", None, tmp_path / "far")
    cpu = [trial for trial in measured if trial["device"] == "cpu"]
    make_run(tmp_path / "run", cpu, ["times"], [str(tmp_path / "far"), str(tmp_path / "gone")])
    for trial in cpu:
        write_trial(trial, tmp_path / "run")
    report_rows.main([str(tmp_path / "run")])
    assert re.search(r"Estimated from its steps elsewhere \(2026-11-23\)", capsys.readouterr().out)


def test_runs_of_two_machines_are_reported_together(tmp_path: Path, trials: list[dict[str, Any]]) -> None:
    """The second machine takes twice as long, and its run never wrote a report."""
    for name, factor in (("h200", 1), ("laptop", 2)):
        make_run(tmp_path / name, trials, ["times"])
        for trial in trials:
            write_trial(trial | {"step_time_s": factor * trial["step_time_s"]}, tmp_path / name)
    output = tmp_path / "both"
    folders = [f"{name}={tmp_path / name}" for name in ("h200", "laptop")]
    report_rows.main([*folders, "--output", str(output), "--figures"])
    assert (output / "figures" / "disc_depth" / "times.svg").is_file()
    ratios = read_table(output / "ratios.parquet")
    of_machines = ratios[ratios["pair"] == "machine"]
    assert of_machines["ratio"].tolist() == pytest.approx([0.5] * 4)
    answers = read_table(output / "answers.parquet").query("kind == 'crossover' and main")
    assert answers[["machine", "series"]].values.tolist() == [["h200", "h200"], ["laptop", "laptop"]]
    provenance = json.loads((output / "provenance.json").read_text())
    assert [(run["name"], run["caveat"]) for run in provenance["runs"]] == [("h200", "no_file"), ("laptop", "no_file")]
    assert provenance["config"] is None


def test_a_folder_without_a_run_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"plan\.json"):
        report_rows.main([str(tmp_path)])

"""Runs compared by script, and the gate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import compare_runs
from crossover.errors import UserError
from crossover.tables.columns import arrow_schema
from crossover.topics.gate.text import MOST_LINES, cells_shown, comparison_text, read_pair

Row = Callable[..., dict[str, Any]]


def steady(row: Row, size: int, time_s: float, **values: Any) -> list[dict[str, Any]]:
    return [row(size=size, trial=trial, step_time_s=time_s, **values) for trial in (1, 2)]


def written(folder: Path, rows: list[dict[str, Any]]) -> str:
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), folder / "measurements.parquet")
    return str(folder)


@pytest.fixture
def run(row: Row, tmp_path: Path) -> str:
    return written(tmp_path / "run", steady(row, 2, 1.0, study="one") + steady(row, 2, 2.0, study="two"))


@pytest.fixture
def copy(run: str) -> str:
    return shutil.copytree(run, f"{run}-again")


@pytest.mark.parametrize(
    ("first", "second", "studies"),
    [
        ("", "", [["one", "two"], ["one", "two"]]),
        (":two", "", [["two"], ["two"]]),
        ("", ":two", [["two"], ["two"]]),
        (":one", ":two", [["one"], ["one"]]),  # two studies are compared as one
    ],
)
def test_a_run_is_a_folder_or_one_study_of_it(
    run: str, copy: str, first: str, second: str, studies: list[list[str]]
) -> None:
    tables = read_pair(run + first, copy + second)
    assert [table["study"].unique().tolist() for table in tables] == studies
    if second == ":two":
        assert tables[1]["step_time_s"].tolist() == [2.0, 2.0]


def test_a_run_that_cannot_be_compared_is_an_error(run: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"study 'tow' was not measured; allowed: one, two$"):
        read_pair(f"{run}:one", f"{run}:tow")
    with pytest.raises(UserError, match="are the same run"):
        read_pair(run, run)
    with pytest.raises(UserError, match=r"measurements\.parquet: no such table; .*results folder of a finished"):
        read_pair(run, str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("machine", [[1]] * 4, r"not rows of trials \(.*\); name the results folder"),
        ("step_time_s", ["fast"] * 4, "not rows of trials"),
        ("workload", None, "column 'workload' is missing"),
    ],
)
def test_a_run_of_another_version_is_read_if_it_can_be(
    run: str, copy: str, column: str, values: list[Any] | None, message: str
) -> None:
    path = Path(copy) / "measurements.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["cpu_model", "energy_j"]).append_column("new", [[1] * 4]), path)
    first, second = read_pair(run, copy)
    text = comparison_text(compare_runs.compare_runs(first, second), first, second)
    assert "environments\nno difference" in text
    assert text.endswith(
        "code\n"
        + "\n".join(
            f"{part}: not recorded in 2 of 2 cells (one, two)"
            for part in ("code of the model", "code of the measurement", "packages")
        )
    )
    spoilt = table.drop_columns([column])
    pq.write_table(spoilt.append_column(column, pa.array(values)) if values else spoilt, path)
    with pytest.raises(UserError, match=rf"measurements\.parquet: {message}"):
        read_pair(run, copy)


def test_the_script_prints_cells_verdicts_ratios_environments_and_code(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(model: str, torch: str) -> dict[str, str]:
        keys = {"model_key": model, "measurement_key": "a", "code_key": model + torch}
        return keys | {"packages": f'{{"torch": "{torch}"}}'}

    first = [*steady(row, 2, 1.0, **code("a", "2.12")), *steady(row, 3, 1.0, **code("a", "2.12"))]
    first += [*steady(row, 4, 1.0), *(row(size=size, trial=1) for size in (5, 6))]
    second = steady(row, 2, 1.0, **code("a", "2.13"), torch_version="2.13.0")
    second += steady(row, 3, 1.25, **code("b", "2.12"))
    second += [row(size=5, trial=1), row(size=6, trial=1, status="oom", step_time_s=None)]
    folders = written(tmp_path / "first", first), written(tmp_path / "second", second)
    compare_runs.main([*folders, f"--output={tmp_path / 'comparison.csv'}"])
    lines = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert {
        "2 1 1 1 equivalent",
        "3 0.8 0.8 0.8 slower",
        "4 missing second",
        "5 1 single_trial",
        "6 no_data",
        "faster 0",
        "slower 1",
        "missing 1",
        "disc_depth here cpu ok missing 1",
        "disc_depth here cpu ok oom 1",
        "ratios first/second (above 1 the second is faster)",
        "geometric_mean 0.9283",
        "torch_version: none against 2.13.0, none (cpu)",
        "code of the model: not the same in 1 of 4 cells (disc_depth)",
        "packages: not the same in 1 of 4 cells (disc_depth)",
        "torch 2.12 against 2.13",
        "code of the measurement: not recorded in 2 of 4 cells (disc_depth)",
    } <= lines
    verdicts = ["equivalent", "slower", "missing", "single_trial", "no_data"]
    assert pd.read_csv(tmp_path / "comparison.csv")["verdict"].tolist() == verdicts


def gated(*arguments: str) -> int:
    return compare_runs.main([*arguments, "--fail-on", "slower", "--by", "5%"])


def test_a_gate_has_an_exit_status_and_writes_json_and_markdown(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = steady(row, 2, 1.0, torch_version="2.12.0") + steady(row, 3, 1.0, torch_version="2.12.0")
    new = [trial | {"step_time_s": 1.25} if trial["size"] == 3 else trial for trial in old]
    upgraded = [
        trial | {"torch_version": "2.13.0", "hostname": "node7", "flag_names": ["busy_host", "drift"]} for trial in new
    ]
    runs = {name: written(tmp_path / name, rows) for name, rows in (("old", old), ("new", new), ("upgraded", upgraded))}
    json_file, markdown = tmp_path / "gate.json", tmp_path / "gate.md"
    assert gated(runs["old"], runs["new"], f"--json={json_file}", f"--markdown={markdown}") == 1
    record = json.loads(json_file.read_text())
    assert (record["outcome"], record["exit_status"], record["limit"]) == ("slower", 1, 0.05)
    verdicts = [(cell["size"], cell["verdict"], cell["ratio"]) for cell in record["cells"]]
    assert verdicts == [(2, "equivalent", pytest.approx(1)), (3, "slower", pytest.approx(0.8))]
    text = markdown.read_text()
    assert text.startswith("**Slower by more than 5.0 %** (2 cells, 2 with an interval)\n\n- Minimum detectable ")
    assert "\n- 1 slower\n" in text
    assert text.endswith("\n| disc_depth | cpu | 3 | 0.8 | 0.8 | 0.8 | slower |\n")
    assert capsys.readouterr().out.endswith(text)
    assert gated(runs["new"], runs["old"]) == 0
    assert "\n**No cell is significantly slower by more than 5.0 %** (2 cells" in capsys.readouterr().out
    assert gated(runs["old"], runs["upgraded"]) == 2
    output = capsys.readouterr().out
    assert "- torch: torch_version: 2.12.0 against 2.13.0 (cpu)" in output
    assert "- Note: hostname: here against node7 (cpu)" in output
    assert "- Note: 4 of 4 trials of the second run: busy_host" in output
    assert gated(runs["old"], runs["upgraded"], "--allow", "torch") == 1
    assert gated(runs["old"], written(tmp_path / "less", old[:2])) == 2
    output = capsys.readouterr().out
    assert "\n**Not decided: 1 cell is only in one of the runs** (2 cells, 1 with an interval)" in output
    assert "\n- 1 missing\n" in output


@pytest.mark.parametrize(("trials", "where"), [((1, 1), "both runs"), ((2, 1), "the second run")])
def test_a_gate_of_single_trials_says_so(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str], trials: tuple[int, int], where: str
) -> None:
    """Above 40 cells, the terminal lists those that differ or lack a time, which is none here."""
    sizes = range(2, 43)
    folders = [
        written(tmp_path / name, [row(size=size, trial=trial) for size in sizes for trial in range(1, count + 1)])
        for name, count in zip(("old", "new"), trials, strict=True)
    ]
    record = tmp_path / "gate.json"
    assert gated(*folders, f"--json={record}") == 2
    output = capsys.readouterr().out
    sentence = f"41 cells have a single trial in {where}, so no interval"
    assert f"\n**Not decided: {sentence}** (41 cells, 0 with an interval)\n" in output
    assert "\n- 41 single trial\n" in output
    assert "cells (0 of 41 shown)\nnone\n" in output
    assert "missing" not in output.partition("**")[2]
    assert "Empty DataFrame" not in output
    assert json.loads(record.read_text())["outcome"] == "single_trial"


def test_a_gate_says_which_cells_it_lacks(row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = written(tmp_path / "old", [*steady(row, 2, 1.0), *steady(row, 3, 1.0), *steady(row, 4, 1.0)])
    lost = [trial | {"status": "oom", "step_time_s": None} for trial in steady(row, 3, 1.0)]
    new = written(tmp_path / "new", [*lost, *steady(row, 4, 1.0), *steady(row, 5, 1.0)])
    assert gated(old, new) == 2
    sentence = "2 cells are only in one of the runs, 1 cell is without a time in the second run"
    assert f"**Not decided: {sentence}** (4 cells, 1 with an interval)" in capsys.readouterr().out
    none = written(tmp_path / "none", lost)
    also = written(tmp_path / "also", lost)
    assert gated(none, also) == 2
    assert "**Not decided: no cell has a time in both runs** (1 cells" in capsys.readouterr().out


def test_a_gate_that_sees_nothing_is_undecided(row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same code in two folders; trials differ by a factor of 9. The Markdown repeats the terminal's intervals."""
    code = {"measurement_key": "a", "packages": "{}", "model_key": "a", "code_key": "a"}
    old = [
        row(size=size, trial=trial, step_time_s=1.0 + 8 * (trial % 2), model="old/net.py:build", **code)
        for size in (2, 3)
        for trial in range(1, 11)
    ]
    new = [trial | {"step_time_s": trial["step_time_s"] * 2, "model": "new/net.py:build"} for trial in old]
    json_file, table = tmp_path / "gate.json", tmp_path / "cells.csv"
    runs = written(tmp_path / "old", old), written(tmp_path / "new", new)
    assert gated(*runs, f"--json={json_file}", f"--output={table}") == 2
    output = capsys.readouterr().out
    terminal, markdown = output.split("\n**")
    assert markdown.startswith("Undecided: the trials of 2 cells vary too much to detect a slowdown of 25 %** (2 cells")
    assert "\n- 2 inconclusive\n- Inconclusive cells need more `trials`, or a quieter machine\n" in markdown
    assert "code\nno difference" in terminal
    record = json.loads(json_file.read_text())
    assert (record["outcome"], record["exit_status"], record["most_detectable"]) == ("undecided", 2, 0.25)
    for cell, written_cell in zip(record["cells"], pd.read_csv(table).to_dict("records"), strict=True):
        numbers = [f"{cell[name]:.4g}" for name in ("ratio", "ratio_low", "ratio_high")]
        assert f"| disc_depth | cpu | {cell['size']} | {' | '.join(numbers)} | inconclusive |" in markdown
        assert " ".join([str(cell["size"]), *numbers, "inconclusive"]) in " ".join(terminal.split())
        assert written_cell["ratio_low"] == pytest.approx(cell["ratio_low"])


def test_a_gate_is_calibrated_by_identical_runs(row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = (1.0, 1.02, 1.04, 1.06, 1.08)
    same = [written(tmp_path / f"same{time}", steady(row, 2, time)) for time in times]
    new = written(tmp_path / "new", steady(row, 2, 1.07))
    assert gated(same[0], new) == 1
    assert gated(same[0], new, "--calibrate", *same) == 0
    assert (
        "- Limit: significantly slower by more than 8.0 %, corrected for multiple testing\n"
        "- Identical runs: a cell differs by up to 8.0 %; the largest significant difference is at least 8.0 %\n"
        in capsys.readouterr().out
    )
    outlying = written(tmp_path / "outlying", steady(row, 2, 2.0))
    assert gated(same[0], new, "--calibrate", *same[:4], outlying) == 0
    assert f"- Warning: without {outlying}, identical runs differ much less" in capsys.readouterr().out
    with pytest.raises(UserError, match="allowed: 5 or more runs, each named once"):
        gated(same[0], new, "--calibrate", *same[:4], same[0])
    alien = written(tmp_path / "alien", steady(row, 2, 1.0, device_name="Brand C2"))
    with pytest.raises(UserError, match=r"alien differs from the new run in hardware \(device_name: Brand C2 against"):
        gated(same[0], new, "--calibrate", *same[:4], alien)


def test_a_duplicate_trial_is_an_error(row: Row, run: str, tmp_path: Path) -> None:
    twice = written(tmp_path / "twice", 2 * steady(row, 2, 1.0, study="one"))
    with pytest.raises(UserError, match="trial 1 of study 'one', size 2, cpu is in the table twice; allowed: once"):
        read_pair(f"{run}:one", twice)


@pytest.mark.parametrize("text", ["5", "-1%", "five", "nan"])
def test_a_limit_must_be_a_percentage(run: str, copy: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        compare_runs.main([run, copy, "--fail-on=slower", f"--by={text}"])
    allowed = "allowed: a share, such as 5% or 0.05, at most 100%"
    assert capsys.readouterr().err == f"error: argument --by: '{text}' is not allowed; {allowed}\n"
    with pytest.raises(SystemExit, match="2"):
        compare_runs.main([run, copy, "--by=5%"])


def test_a_user_error_has_another_exit_status_than_a_slowdown(run: str, root: Path) -> None:
    command = [sys.executable, str(root / "scripts/compare_runs.py"), run, f"{run}-none", "--fail-on=slower"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.startswith("error: ")) == (2, True)


def test_runs_without_common_cells_are_not_compared(row: Row) -> None:
    first, second = (pd.DataFrame(steady(row, 2, 1.0, device=device)) for device in ("cpu", "cuda"))
    text = comparison_text(compare_runs.compare_runs(first, second), first, second)
    assert "no difference" not in text
    assert text.count("not compared: no cell is in both runs") == 2


def test_of_many_cells_only_differing_ones_are_shown(row: Row) -> None:
    sizes = range(1, MOST_LINES + 2)
    first = pd.DataFrame([trial for size in sizes for trial in steady(row, size, 1.0)])
    comparison = compare_runs.compare_runs(first, first.assign(step_time_s=first["size"].map({7: 2.0}).fillna(1.0)))
    assert cells_shown(comparison)["size"].tolist() == [7]
    assert len(cells_shown(comparison.head(MOST_LINES))) == MOST_LINES

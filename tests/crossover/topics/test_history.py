"""Changes over many runs: false alarms and planted changes in simulations; the table and figure of the script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import history as script
from crossover.errors import UserError
from crossover.tables.columns import arrow_schema
from crossover.topics.gate.history import changes, history_of

Row = Callable[..., dict[str, Any]]
CELLS = 20


def test_at_most_one_in_twenty_histories_has_a_false_alarm() -> None:
    random = np.random.default_rng(0)
    histories = random.normal(0, 0.03, (200, CELLS, 15))
    assert sum(any(changes(line, CELLS) for line in lines) for lines in histories) <= 10


@pytest.mark.parametrize(("change", "runs"), [(10, 20), (16, 20)])
def test_a_change_of_10_percent_is_found_at_its_run(change: int, runs: int) -> None:
    random = np.random.default_rng(0)
    lines = random.normal(0, 0.02, (100, runs)) + 0.1 * (np.arange(runs) >= change)
    changes_of_lines = [changes(line, CELLS) for line in lines]
    assert sum(len(points) == 1 and abs(points[0] - change) <= 1 for points in changes_of_lines) >= 90


def test_a_change_and_its_reversal_are_two_changes() -> None:
    """Levels of 1, 2 and 1 s; runs are within 1 % of their level."""
    assert changes(np.log([1.0, 1.01, 0.99, 1.0, 2.0, 2.02, 1.98, 2.0, 1.0, 1.01, 0.99, 1.0]), 1) == [4, 8]


def test_a_single_run_is_not_a_level() -> None:
    assert not changes(np.log([1.0, 1.01, 0.99, 1.0, 1.01, 2.0]), 1)
    assert not changes(np.log([1.0, 2.0]), 1)


def runs_of(row: Row, times_s: list[float], **values: Any) -> dict[str, pd.DataFrame]:
    """Runs of two cells with two trials each; the cell of size 2 takes the given times."""
    return {
        f"run{number}": pd.DataFrame(
            [
                row(size=size, trial=trial, step_time_s=time if size == 2 else 1 + 0.001 * (number % 2), **values)
                | {"started_at": f"2026-11-{number + 10}T10:00:0{trial}Z", "code_version": f"commit{number}"}
                for size in (2, 3)
                for trial in (1, 2)
            ]
        )
        for number, time in enumerate(times_s)
    }


TIMES_S = [1.0, 1.01, 1.0, 1.25, 1.26, 1.25]


def test_runs_are_sorted_by_their_start(row: Row) -> None:
    runs = runs_of(row, TIMES_S)
    history = history_of(dict(reversed(runs.items())))
    line = history[history["size"] == 2]
    assert line["run"].tolist() == [*runs]
    assert line["speed"].tolist() == pytest.approx([1, 1, 1, 0.8, 0.8, 0.8], rel=0.02)
    (change,) = line[line["ratio"].notna()].to_dict("records")
    assert (change["run"], change["code_version"]) == ("run3", "commit3")
    assert change["ratio"] == pytest.approx(0.8, rel=0.01)
    assert history.loc[history["size"] == 3, "ratio"].isna().all()


def test_another_device_starts_another_line(row: Row) -> None:
    runs = runs_of(row, TIMES_S)
    for number in (3, 4, 5):
        runs[f"run{number}"]["device_name"] = "Brand C2"
    assert history_of(runs)["ratio"].isna().all()


def test_the_script_writes_a_table_and_a_figure_and_prints_the_changes(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for name, run in runs_of(row, TIMES_S).items():
        (tmp_path / name).mkdir()
        table = pa.Table.from_pylist(run.to_dict("records"), schema=arrow_schema())
        pq.write_table(table, tmp_path / name / "measurements.parquet")
        folders.append(str(tmp_path / name))
    script.main([*folders, f"--output={tmp_path / 'history'}"])
    output = capsys.readouterr().out
    assert output.startswith(f"{folders[3]} (2026-11-13, commit3): disc depth, 2, CPU (Brand C1) 1.25x slower")
    assert output.endswith("\n2 of 2 cells judged: in at least 4 of the 6 runs\n")
    assert output.count("\n") == 2
    assert len(pd.read_csv(tmp_path / "history" / "history.csv")) == 12
    assert "disc depth, 2, CPU (Brand C1)" in (tmp_path / "history" / "history.svg").read_text()
    other = pd.read_parquet(tmp_path / "run0" / "measurements.parquet").assign(study="other")
    (tmp_path / "other").mkdir()
    other.to_parquet(tmp_path / "other" / "measurements.parquet")
    script.main([*folders[:3], str(tmp_path / "other"), f"--output={tmp_path / 'short'}"])
    assert capsys.readouterr().out == "0 of 4 cells judged: in at least 4 of the 4 runs\n"
    script.main([*folders[:2], *folders[4:], f"--output={tmp_path / 'short'}"])
    with pytest.raises(UserError, match="run0: no trial has a time"):
        history_of({"run0": runs_of(row, TIMES_S)["run0"].assign(status="oom")})
    with pytest.raises(UserError, match="3 runs; allowed: at least 4"):
        script.main([*folders[:3], folders[0], f"--output={tmp_path / 'short'}"])

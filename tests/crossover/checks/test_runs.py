from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.checks.runs import MOST_LINES, comparison_text, read_pair
from crossover.errors import UserError
from crossover.statistics.run_comparison import compare_runs
from crossover.tables.columns import arrow_schema

Row = Callable[..., dict[str, Any]]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), path)
    return path


def steady(row: Row, size: int, time_s: float, **values: Any) -> list[dict[str, Any]]:
    return [row(size=size, trial=trial, step_time_s=time_s, **values) for trial in (1, 2)]


@pytest.fixture
def two_studies(row: Row, tmp_path: Path) -> Path:
    return written(tmp_path / "m.parquet", steady(row, 2, 1.0, study="one") + steady(row, 2, 2.0, study="two"))


def test_a_run_is_read_whole(two_studies: Path) -> None:
    for trials in read_pair([two_studies, two_studies], [None, None]):
        assert trials["study"].tolist() == ["one", "one", "two", "two"]


@pytest.mark.parametrize("studies", [("two", None), (None, "two"), ("two", "two")])
def test_a_study_named_once_is_taken_of_both(two_studies: Path, studies: tuple[str | None, str | None]) -> None:
    for trials in read_pair([two_studies, two_studies], studies):
        assert trials[["study", "step_time_s"]].to_numpy().tolist() == [["two", 2.0], ["two", 2.0]]


def test_two_studies_are_compared_as_one(two_studies: Path) -> None:
    (cell,) = compare_runs(*read_pair([two_studies, two_studies], ["one", "two"])).to_dict("records")
    assert (cell["study"], cell["ratio"]) == ("one", pytest.approx(2))


def test_an_unknown_study_is_one_line(two_studies: Path) -> None:
    with pytest.raises(UserError, match=r"m\.parquet: study 'tow' was not measured; allowed: one, two$"):
        read_pair([two_studies, two_studies], ["one", "tow"])


def test_a_table_of_something_else_is_one_line(tmp_path: Path, two_studies: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"study": ["one"]}), other)
    with pytest.raises(UserError, match=r"other\.parquet: column 'workload' is missing"):
        read_pair([two_studies, other], [None, None])
    other.write_text("no table")
    with pytest.raises(UserError, match=r"other\.parquet: not a readable table"):
        read_pair([two_studies, other], [None, None])


@pytest.mark.parametrize(
    ("column", "values"),
    [("device", [[1]] * 4), ("machine", [[1]] * 4), ("step_time_s", ["fast"] * 4), ("device", [b"\xff"] * 4)],
)
def test_a_column_of_another_kind_is_one_line(
    tmp_path: Path, two_studies: Path, column: str, values: list[Any]
) -> None:
    table = pq.read_table(two_studies)
    other = tmp_path / "other.parquet"
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), other)
    with pytest.raises(UserError, match=r"other\.parquet: not rows of trials \(.*\); name the results folder of a fin"):
        read_pair([two_studies, other], [None, None])


def test_a_run_of_another_version_is_read_where_it_can_be(tmp_path: Path, two_studies: Path) -> None:
    table = pq.read_table(two_studies).drop_columns(["cpu_model", "energy_j"]).append_column("new", [[1] * 4])
    pq.write_table(table, tmp_path / "old.parquet")
    first, second = read_pair([two_studies, tmp_path / "old.parquet"], [None, None])
    assert "The environments differ" not in comparison_text(compare_runs(first, second), first, second, ["a", "b"])


def text_of(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> str:
    sides = pd.DataFrame(first), pd.DataFrame(second)
    return comparison_text(compare_runs(*sides), *sides, ["old", "new"])


def test_the_text_tells_cells_summary_and_environment(row: Row) -> None:
    first = steady(row, 2, 1.0) + steady(row, 3, 1.0) + steady(row, 4, 1.0)
    second = steady(row, 2, 1.0, torch_version="2.13.0") + steady(row, 3, 1.25)
    text = text_of(first, second)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("Time of new over time of old")
    assert {
        "size ratio interval verdict",
        "2 1.000 1.000 to 1.000 SAME",
        "3 1.250 1.250 to 1.250 SLOWER",
        "4 missing in the second",
        "0 FASTER, 1 SLOWER, 1 SAME, 0 AMBIGUOUS, 1 missing",
        "2 ratios: geometric mean 1.118; smallest 1.000, quartiles 1.057, 1.118, 1.182, largest 1.250",
        "50 % of 2 intervals hold 1; about 95 % do where only chance differs.",
        "torch_version: none against 2.13.0, none (cpu)",
    } <= set(lines)


def test_of_many_cells_only_the_telling_ones_are_shown(row: Row) -> None:
    sizes = range(1, MOST_LINES + 2)
    first = [trial for size in sizes for trial in steady(row, size, 1.0)]
    second = [trial for size in sizes for trial in steady(row, size, 2.0 if size == 7 else 1.0)]
    text = text_of(first, second)
    assert text.count("SAME") == 1  # in the summary
    assert f"({MOST_LINES} cells are not shown; comparison.csv holds all)" in text
    assert any(line.split() == ["7", "2.000", "2.000", "to", "2.000", "SLOWER"] for line in text.splitlines())


def test_one_trial_a_cell_is_told(row: Row) -> None:
    text = text_of([row(step_time_s=1.0)], [row(step_time_s=1.5)])
    assert "No cell has an interval: that takes two trials in each run." in text
    assert "Like environments." in text

"""What the analysis takes must grow with the number of cells, and no faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

from crossover.statistics.cost_models import COST_MODEL_COLUMNS
from crossover.statistics.crossover import estimate_crossover
from crossover.statistics.summary import summarise
from crossover.tables.columns import Measurement
from crossover.tables.frames import DEVICE_LINE_AXES, collect_rows
from crossover.tables.row_files import write_record
from report_pages import html_of, tables_of
from synthetic import STUDY, synthetic_measurements, synthetic_study

NO_MODELS = pd.DataFrame(columns=[*DEVICE_LINE_AXES, *COST_MODEL_COLUMNS])


def rows_of(cells: int) -> pd.DataFrame:
    """Three trials of so many cells of four lines."""
    table: pd.DataFrame = synthetic_measurements(lines=4, sizes=cells // 8, trials=3, samples=5).to_pandas()
    return table


def calls_of(work: Callable[[], Any]) -> int:
    """The Python functions that some work calls: the same on every machine, however busy."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def page_of(rows: pd.DataFrame) -> str:
    """All stages from the rows of trials to the page, without figures and what takes each line as long as any other."""
    tables = tables_of(rows, x_axis="size", cost_models=NO_MODELS)
    return html_of({STUDY: synthetic_study()}, tables)


def test_a_cell_is_summarised_in_few_calls() -> None:
    few, many = rows_of(200), rows_of(1000)
    more = calls_of(lambda: summarise(many)) - calls_of(lambda: summarise(few))
    assert more / 800 < 150  # it was over 4,000 where each cell was a table of its own


def test_a_cell_of_the_page_takes_few_calls() -> None:
    few, many = rows_of(200), rows_of(800)
    assert STUDY in page_of(few)  # what is loaded on first use does not count
    more = calls_of(lambda: page_of(many)) - calls_of(lambda: page_of(few))
    assert more / 600 < 300


def test_a_size_of_a_crossover_takes_few_calls() -> None:
    def line(sizes: int) -> pd.DataFrame:
        rows = pd.DataFrame(product(range(sizes), ("cpu", "gpu"), (1, 2, 3)), columns=["size", "side", "trial"])
        times = np.where(rows["side"] == "cpu", 1.0 + rows["size"], 30.0) * 1.01 ** rows["trial"]
        return rows.assign(size=100 + rows["size"], step_time_s=times)

    few, many = line(50), line(250)
    more = calls_of(lambda: estimate_crossover(many, "cpu", "gpu")) - calls_of(
        lambda: estimate_crossover(few, "cpu", "gpu")
    )
    assert more / 200 < 15


def test_a_row_is_collected_in_few_calls(tmp_path: Path) -> None:
    row = synthetic_measurements(lines=1, sizes=1, trials=1, samples=100).to_pylist()[0]
    paths = [tmp_path / f"{size}.parquet" for size in range(400)]
    for size, path in enumerate(paths):
        write_record(Measurement(**{**row, "size": size}), path)
    more = calls_of(lambda: collect_rows(paths)) - calls_of(lambda: collect_rows(paths[:100]))
    assert more / 300 < 30


def test_rows_of_several_parts_are_joined_in_order(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("crossover.tables.frames.ROWS_AT_ONCE", 2)
    paths = [tmp_path / f"{size}.parquet" for size in (5, 4, 3, 2, 1)]
    for path in paths:
        write_record(Measurement(study="s", size=int(path.stem), samples_s=[0.5], flags=[]), path)
    found = collect_rows(paths, processes=2)
    assert found["size"].to_pylist() == [1, 2, 3, 4, 5]
    assert found["samples_s"].to_pylist() == [[0.5]] * 5
    assert found.schema.field("samples_s").metadata[b"unit"] == b"s"

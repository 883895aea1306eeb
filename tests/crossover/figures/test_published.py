from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from crossover.config.published_rows import read_published_rows
from crossover.figures.view import PUBLISHED_COLUMNS, on_line, published_table

HEAD = "# Somebody (2019)\n"


def table_of(text: str, folder: Path) -> pd.DataFrame:
    path = folder / "runs.csv"
    path.write_text(HEAD + text)
    return published_table({"published": {"rows": read_published_rows(path)[1]}})


def test_the_table_has_every_column_and_the_types_of_ours(tmp_path: Path) -> None:
    table = table_of("size,device,hardware,run_time_ms\n2,cpu,x86_64,1500\n,cuda,,50\n", tmp_path)
    assert list(table.columns) == list(PUBLISHED_COLUMNS)
    assert table["run_time_s"].tolist() == pytest.approx([1.5, 0.05])
    assert table["size"].tolist() == [2, pd.NA]
    assert table["hardware"].tolist() == ["x86_64", None]
    assert table["label"].tolist() == [None, None]
    assert table["samples_per_s"].isna().all()


def test_a_study_without_published_rows_has_an_empty_table() -> None:
    for study in ({"published": None}, {"published": {"crossover": [1, 2]}}):
        table = published_table(study)
        assert (len(table), list(table.columns)) == (0, list(PUBLISHED_COLUMNS))


def test_a_run_belongs_beside_the_lines_that_it_agrees_with(tmp_path: Path) -> None:
    """What the source does not state speaks against no line; a size and a device do not set lines apart."""
    table = table_of(
        "protocol,precision,batch_size,size,device,run_time_s\n"
        "as_published,fp32,,2,cpu,1\nresident,fp32,,2,cpu,2\n,tf32,,2,cpu,3\n,,32,2,cuda,4\n,,64,2,cpu,5\n",
        tmp_path,
    )
    line = {"study": "mine", "protocol": "as_published", "precision": "fp32", "batch_size": 32, "size": 9}
    assert on_line(table, line, "size")["run_time_s"].tolist() == [1, 4]
    assert on_line(table, line | {"size": 2}, "batch_size")["run_time_s"].tolist() == [1, 4, 5]

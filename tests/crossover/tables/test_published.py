from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from crossover.tables.published import PUBLISHED_COLUMNS, on_line, read_published

HEAD = "# Somebody (2019)\n"


def test_the_table_has_every_column(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}size,device,hardware,run_time_ms\n2,cpu,x86_64,1500\n,cuda,,50\n")
    table = read_published(path)
    assert list(table.columns) == list(PUBLISHED_COLUMNS)
    assert table["run_time_s"].tolist() == pytest.approx([1.5, 0.05])
    assert table["size"].tolist() == [2, pd.NA]
    assert table["hardware"].tolist() == ["x86_64", None]
    assert table["label"].tolist() == [None, None]
    assert table["samples_per_s"].isna().all()
    assert set(table["source"]) == {"Somebody (2019)"}


def test_a_run_belongs_beside_the_lines_that_it_agrees_with(tmp_path: Path) -> None:
    """What the source does not state speaks against no line; a size and a device do not set lines apart."""
    path = tmp_path / "runs.csv"
    path.write_text(
        f"{HEAD}protocol,precision,batch_size,size,device,run_time_s\n"
        "as_published,fp32,,2,cpu,1\nresident,fp32,,2,cpu,2\n,tf32,,2,cpu,3\n,,32,2,cuda,4\n,,64,2,cpu,5\n"
    )
    line = {"study": "mine", "protocol": "as_published", "precision": "fp32", "batch_size": 32, "size": 9}
    assert on_line(read_published(path), line)["run_time_s"].tolist() == [1, 4]


def test_a_published_latency_keeps_its_standard_deviation(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}device,latency_ms,latency_std_ms\ncuda,15.567,0.546\ncpu,74.4,\n")
    table = read_published(path)
    assert table["latency_s"].tolist() == pytest.approx([0.015567, 0.0744])
    assert table["latency_std_s"].tolist() == pytest.approx([0.000546, float("nan")], nan_ok=True)

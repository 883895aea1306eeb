from __future__ import annotations

from pathlib import Path

import pandas as pd

from crossover.config.published_rows import read_published_rows
from crossover.figures.view import on_line, published_table

HEAD = "# Somebody (2019)\n"


def table_of(text: str, folder: Path) -> pd.DataFrame:
    path = folder / "runs.csv"
    path.write_text(HEAD + text)
    return published_table({"published": {"rows": read_published_rows(path)[1]}})


def test_a_run_belongs_beside_the_series_that_it_agrees_with(tmp_path: Path) -> None:
    """An axis that the source does not state matches every line; size and device do not distinguish lines."""
    table = table_of(
        "protocol,precision,batch_size,size,device,run_time_s\n"
        "as_published,fp32,,2,cpu,1\nresident,fp32,,2,cpu,2\n,tf32,,2,cpu,3\n,,32,2,cuda,4\n,,64,2,cpu,5\n",
        tmp_path,
    )
    line = {"study": "mine", "protocol": "as_published", "precision": "fp32", "batch_size": 32, "size": 9}
    assert on_line(table, line, "size")["run_time_s"].tolist() == [1, 4]
    assert on_line(table, line | {"size": 2}, "batch_size")["run_time_s"].tolist() == [1, 4, 5]

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.tables import frames
from crossover.tables.frames import read_csv, read_table, write_table, x_axes_of
from crossover.tables.registry import MACHINES
from crossover.tables.run_tables import run_tables, table_of

Row = Callable[..., dict[str, Any]]


def test_a_table_is_written_as_parquet_and_csv(tmp_path: Path) -> None:
    path = tmp_path / "machines.parquet"
    write_table(pd.DataFrame({"size": [1, 2], "flag_names": [["drift", "quota"], []]}), path)
    assert [list(flags) for flags in read_table(path)["flag_names"]] == [["drift", "quota"], []]
    assert path.with_suffix(".csv").read_text() == "size,flag_names\n1,drift quota\n2,\n"
    assert pq.read_schema(path).field("size").metadata == {b"doc": MACHINES["size"].doc.encode(), b"unit": b""}


@pytest.mark.parametrize(
    "change",
    [
        lambda columns: {name: columns[name] for name in list(columns)[1:]},
        lambda columns: columns | {"ratio": replace(columns["ratio"], dtype="string")},
        lambda columns: columns | {"ratio": replace(columns["ratio"], unit="%")},
    ],
)
def test_a_derived_table_of_another_version_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    path = tmp_path / "ratios.parquet"
    write_table(table_of("ratios"), path)
    assert read_table(path).empty
    monkeypatch.setitem(frames.TABLES, "ratios", change(frames.TABLES["ratios"]))
    with pytest.raises(UserError, match=r"ratios\.parquet: not the table 'ratios' of this version"):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2,3,4\n1,2\n5,6,7,8,9\n", b"\xff\xfe\x00"])
def test_the_error_for_a_damaged_csv_file_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^.*pairs\.csv: not a readable table \(.*\); delete it and run again$"):
        read_csv(path)


SIZES = (32, 64, 128, 224)


@pytest.mark.parametrize(
    ("parameters", "requested", "axis"),
    [
        ({size: size**2 for size in SIZES}, "parameters", "parameters"),
        ({size: size**2 for size in SIZES}, "size", "size"),
        ({size: size - 32 for size in SIZES}, "parameters", "size"),
        (dict.fromkeys(SIZES), "parameters", "size"),
    ],
)
def test_parameters_are_the_x_axis_only_if_they_distinguish_the_sizes(
    row: Row, parameters: dict[int, Any], requested: str, axis: str
) -> None:
    rows = pd.DataFrame([row(size=size, parameters=count) for size, count in parameters.items()])
    assert x_axes_of({"disc_depth": requested}, rows) == {"disc_depth": axis}


def test_rows_of_a_run_with_values_are_those_of_the_table() -> None:
    """In the table's order; an axis without a value, such as the contender's on a machine without one, is left out."""
    ratios = table_of(
        "ratios",
        [
            {"study": study, "size": size, "contender": contender}
            for size in (2, 1)
            for study, contender in (("a", "cuda"), ("b", "cuda"), ("a", "mps"))
        ],
    )
    tables = run_tables(ratios=ratios)
    axes = ["study", "size", "contender"]
    for values, positions in (
        ({"study": "a", "size": 1, "contender": "mps"}, [5]),
        ({"study": "a", "size": 2, "contender": None}, [0, 2]),
        ({"study": "c", "size": 2, "contender": None}, []),
        (dict.fromkeys(axes), [0, 1, 2, 3, 4, 5]),
    ):
        pd.testing.assert_frame_equal(tables.rows_with("ratios", axes, values), ratios.iloc[positions])

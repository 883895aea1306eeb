from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from crossover.tables.labels import (
    axis_label,
    device_label,
    machine_side,
    name_by,
    short_name,
    side_word,
    size_titles,
    varying,
)

LINE: dict[str, Any] = {
    "machine": "h200",
    "protocol": "resident",
    "batch_size": 1000,
    "variant": "plain",
    "precision": "fp32",
    "execution": "eager",
}


def test_devices_and_cpu_sides_have_labels() -> None:
    assert short_name("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz") == "Intel Xeon Gold 6248"
    assert device_label("cpu", "AMD EPYC 9D24 96-Core Processor") == "CPU (AMD EPYC 9D24)"
    assert device_label("cpu", None, "node7") == "CPU of node7"
    assert [side_word("cpu-1"), side_word("cpu-half"), side_word("cpu-half", 8), side_word("cpu", 16)] == [
        "CPU on 1 core",
        "CPU on half of its cores",
        "CPU on 8 cores (half)",
        "CPU on 16 cores",
    ]


def test_a_cell_is_named_by_its_varying_axes() -> None:
    table = pd.DataFrame([LINE, LINE | {"variant": "channels_last"}, LINE | {"batch_size": 8}])
    assert varying(table) == ["variant", "batch_size"]
    assert name_by(
        {"batch_size": 1000, "variant": "channels_last", "size": None}, ["variant", "batch_size", "size"]
    ) == ("channels last, batch 1,000")
    assert name_by({"size": 4096, "size_name": "width"}, ["size"]) == "width 4,096"
    assert name_by({"size": 1, "size_name": "tokens of prompt"}, ["size"]) == "1 token of prompt"


@pytest.mark.parametrize(
    ("batch_name", "name", "unit"),
    [("k", "k = 1,000", "k"), ("experts", "1,000 experts", "experts"), (None, "batch 1,000", "samples per batch")],
)
def test_a_second_size_of_a_function_has_its_own_name(batch_name: str | None, name: str, unit: str) -> None:
    row = {"batch_size": 1000, "batch_name": batch_name, "size_name": "m"}
    assert name_by(row, ["batch_size"]) == name
    assert axis_label({**row, "x_axis": "batch_size"}) == unit
    assert axis_label({**row, "x_axis": "size"}) == "m"


def test_columns_have_the_names_of_two_sizes_if_all_cells_do() -> None:
    cells = pd.DataFrame({"size_name": ["m", "m"], "batch_name": ["k", "k"]})
    assert size_titles(cells) == {"size": "m", "batch_size": "k"}
    for other in ({"batch_name": ["k", None]}, {"batch_name": [None, None]}, {"size_name": ["m", "n"]}):
        assert size_titles(cells.assign(**other)) == {"size": "size", "batch_size": "batch"}


def test_several_gpus_and_processes_have_names() -> None:
    assert [side_word(side) for side in ("cuda-2", "cuda-4", "cpu-2x1")] == ["2 GPUs", "4 GPUs", "2 CPU processes"]
    assert (machine_side("cuda-2", "here"), machine_side("cuda-2", "h200")) == ("these 2 GPUs", "2 GPUs of h200")

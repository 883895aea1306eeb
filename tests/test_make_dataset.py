"""The script that makes a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors import safe_open

from crossover.datasets import MAKERS
from make_dataset import make_dataset
from user_errors import error_line


@pytest.mark.parametrize(
    ("name", "options", "generated"), [("digits", {"seed": 0}, "false"), ("disc", {"points": 9, "seed": 0}, "true")]
)
def test_the_file_says_whether_its_rows_are_generated(
    tmp_path: Path, name: str, options: dict[str, int], generated: str
) -> None:
    path = tmp_path / f"{name}.safetensors"
    make_dataset(name, options, path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert (metadata["dataset"], metadata["generated"]) == (name, generated)


def test_data_beyond_the_memory_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_options: object) -> None:
        raise MemoryError("Unable to allocate 480 MB")

    monkeypatch.setitem(MAKERS, "higgs", fail)
    line = error_line(make_dataset, "higgs", {}, tmp_path / "higgs.safetensors")
    assert line.startswith("datasets.higgs: its data do not fit into this machine's memory (Unable to allocate 480 MB)")
    assert list(tmp_path.iterdir()) == []

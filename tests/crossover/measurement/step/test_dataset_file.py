from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from crossover.errors import UserError
from crossover.measurement.step.dataset_file import read_dataset

POINTS = {"features": torch.ones(4, 2), "labels": torch.arange(4) % 2}
NO_SAFETENSORS = "is not a readable safetensors file: .*; delete it, and the run makes it again$"
NO_ROWS = "holds no 'features' and 'labels' with equally many rows, which workload 'disc_mlp' reads; delete it"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), NO_SAFETENSORS),
        (lambda path: path.write_bytes(b""), NO_SAFETENSORS),
        (lambda path: path.write_bytes(pickle.dumps([1.0] * 99)), NO_SAFETENSORS),
        (lambda path: path.unlink(), "does not exist; make it with "),
        (lambda path: (path.unlink(), path.mkdir()), "is no file; make it with "),
        (lambda path: save_file(POINTS, path, {"dataset": "higgs"}), "holds 'higgs', but workload 'disc_mlp' reads"),
        (lambda path: save_file({"x": POINTS["labels"]}, path), NO_ROWS),
        (lambda path: save_file(POINTS | {"labels": torch.ones(2)}, path), NO_ROWS),
        (lambda path: save_file({name: rows[:0] for name, rows in POINTS.items()}, path), NO_ROWS),
    ],
)
def test_another_file_than_the_workloads_dataset_is_one_line(
    tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "data.safetensors"
    save_file(POINTS, path, {"dataset": "disc"})
    assert read_dataset(str(path), "disc_mlp").keys() == POINTS.keys()
    spoil(path)
    with pytest.raises(UserError, match=rf"^--dataset: {path} {message}"):
        read_dataset(str(path), "disc_mlp")


def test_a_workload_that_reads_none_takes_any_file_or_none(tmp_path: Path) -> None:
    path = tmp_path / "data.safetensors"
    save_file({"x": torch.ones(3)}, path, {"dataset": "disc"})
    assert list(read_dataset(str(path), "linear_stack")) == ["x"]
    assert read_dataset(None, "disc_mlp") == {}

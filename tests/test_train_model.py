"""The training script, run from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossover.config.options import as_options
from crossover.config.studies import Cell, Trainings
from trials import ROOT, axis_options, run_script, write_points

SCRIPT = ROOT / "scripts" / "train_model.py"
CELL = Cell("quality", "disc_mlp", "resident", 100, "fp32", "eager", 3, "cpu")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_points(tmp_path_factory.mktemp("data") / "points.safetensors")


def options(dataset: Path, output: Path, time_limit_s: float = 60) -> list[str]:
    settings = {"epochs": Trainings().epochs, "test_share": 0.5, "cpu_threads": 1, "time_limit_s": time_limit_s}
    return [*axis_options(CELL), *as_options(settings), f"--dataset={dataset}", f"--output={output}"]


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        (["--device=xpu"], "error: --device: 'xpu' cannot be used here by torch"),
        (["--workload=matmul"], "error: --workload: 'matmul' does not train on resident data with labels; allowed: "),
    ],
)
def test_a_users_mistake_is_one_line(dataset: Path, tmp_path: Path, extra: list[str], line: str) -> None:
    done = run_script([*options(dataset, tmp_path / "row.parquet"), *extra], script=SCRIPT)
    assert done.returncode != 0
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "row.parquet").exists()

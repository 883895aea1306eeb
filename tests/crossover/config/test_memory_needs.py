from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from crossover.config.workloads import memory_mb
from crossover.errors import UserError
from house import ROOT

COUNTING = {"bert": 2, "disc_mlp": 5, "gpt_block": 128, "higgs_mlp": 7, "linear_stack": 9, "matmul": 16}


@pytest.mark.parametrize(("workload", "size"), COUNTING.items())
def test_the_arithmetic_counts_the_parameters_of_the_model(workload: str, size: int) -> None:
    module = importlib.import_module(f"crossover.measurement.workloads.{workload}")
    with torch.device("meta"):
        model = module.build_model(size)
    assert module.parameter_count(size) == sum(parameter.numel() for parameter in model.parameters())


def test_a_small_model_needs_what_torch_needs() -> None:
    assert memory_mb("disc_mlp", 2) == 4001  # 22 parameters
    assert memory_mb("resnet", 50) == 4000


def test_memory_grows_with_the_weights_and_their_gradients() -> None:
    assert memory_mb("linear_stack", 4096) == 4000 + 806  # 50,343,936 parameters of 16 B: 805.5 MB
    assert memory_mb("disc_mlp", 16) == 4000 + 45_818  # 2 (4^16 - 4) / 3 + 2^18 - 2 = 2,863,573,670 of 16 B


def test_reading_it_does_not_import_torch() -> None:
    code = (
        "import sys; from crossover.config.memory_needs import memory_mb; memory_mb('bert', 24); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT / "scripts"
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("body", ["return undefined * size", "return 'many'", "return float('nan')", "return size / 0"])
def test_arithmetic_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    workload = f"own_{len(body)}"  # modules are read once
    monkeypatch.setattr("crossover.config.studies.WORKLOADS_FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{workload}.py").write_text(f"def parameter_count(size):\n    {body}\n")
    message = rf"^{workload}\.py: parameter_count\(8\) fails \(.*\); allowed: plain arithmetic"
    with pytest.raises(UserError, match=message):
        memory_mb(workload, 8)

"""A user's model, run from a folder that contains nothing else, and within the user's workflow."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from workflow_copy import ROOT, TINY, WorkflowCopy

TUTORIAL = (ROOT / "docs" / "tutorials" / "own-model.md").read_text()


def block(begins: str, checkout: Path = ROOT) -> str:
    """The example of the tutorial that begins with this text, with the path of a checkout."""
    blocks = re.findall(r"```\w*\n(.*?)```", TUTORIAL, re.DOTALL)
    return next(text for text in blocks if text.startswith(begins)).replace("CROSSOVER", str(checkout))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, which probes its roofs in a second."""
    return WorkflowCopy(tmp_path_factory.mktemp("checkout") / "crossover").path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my_net.py").write_text(block("import torch"))
    return tmp_path


def snakemake(project: Path, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def quick() -> list[str]:
    effort = ",".join(f"{key}: {value}" for key, value in TINY.items())
    return [f"effort={{{effort}}}", "trials=1", "devices=[cpu]", "repeat_disturbed=0"]


def test_a_file_with_a_function_can_be_measured(project: Path, checkout: Path) -> None:
    config = ["model=my_net.py:build", "sizes=[8,64]", *quick()]
    output = snakemake(project, "-s", f"{checkout}/Snakefile", "--config", *config)
    assert re.search("^my_net, a model of your own: (On a busy machine: )?CPU takes", output, re.M)
    rows = pd.read_parquet(project / "results" / "measurements.parquet")
    assert rows[["size", "status"]].values.tolist() == [[8, "ok"], [64, "ok"]]
    assert rows["parameters"].tolist() == [32 * size + size + 10 * size + 10 for size in (8, 64)]
    assert rows["model"].tolist() == ["my_net.py:build"] * 2
    again = snakemake(project, "-s", os.path.relpath(f"{checkout}/Snakefile", project), "-n", "--config", *config)
    assert "Nothing to be done" in again


@pytest.mark.slow
def test_a_function_of_the_device_ends_with_a_report(project: Path, checkout: Path) -> None:
    (project / "my_op.py").write_text(
        "import torch\n\n\ndef build(n, device):\n    a = torch.randn(n, n, device=device)\n    return lambda: a @ a\n"
    )
    config = ["model=my_op.py:build", "sizes=[8,64]", *quick()]
    assert "CPU takes" in snakemake(project, "-s", f"{checkout}/Snakefile", "--config", *config)
    assert (project / "results" / "report.html").is_file()


@pytest.mark.slow
def test_the_tutorials_workflow_uses_crossover_as_a_module(project: Path, checkout: Path) -> None:
    text = block("rule all", checkout)
    assert len([line for line in text.splitlines() if line]) <= 20
    effort = {**TINY, "preset": "quick"}
    shorter = text.replace("[64, 256, 1024, 4096]", "[8, 64]")
    shorter = shorter.replace('"quick"', f'{effort}, "devices": ["cpu"], "reference": "none"')
    (project / "Snakefile").write_text(shorter)
    output = snakemake(project, "--workflow-profile", f"{ROOT}/profiles/default")
    assert "Measured 1 of 2 trials; less than a minute left." in output
    assert output.endswith((project / "results" / "summary.txt").read_text() + "\n")
    assert (project / "answer.csv").is_file()
    (project / "my_net.py").write_text("def build(width): return width / 0")
    output = snakemake(project, "--workflow-profile", f"{ROOT}/profiles/default", status=1)
    assert "my_net.py: line 1: build(8) fails: ZeroDivisionError: division by zero" in output
    assert "Failed: 2 jobs (measure_cell 2); see above." in output


def test_the_tutorials_study_finds_the_model_beside_it(project: Path) -> None:
    folder = project / "studies"
    folder.mkdir()
    (project / "my_net.py").rename(folder / "my_net.py")
    (folder / "my_study.yaml").write_text(block("question:"))
    listed = snakemake(
        project, "-s", f"{ROOT}/Snakefile", "-n", "--config", "studies=[studies/my_study.yaml]", *quick()
    )
    assert re.search(r"^measure_cell +16$", listed, re.MULTILINE)


def test_a_table_of_the_users_provides_the_data(project: Path) -> None:
    rows = "".join(f"{row},{row * 2},{'yes' if row % 2 else 'no'}\n" for row in range(40))
    (project / "samples.csv").write_text(f"a,b,label\n{rows}")
    (project / "my_net.py").write_text("from torch import nn\ndef build(width):\n    return nn.Linear(2, 2)\n")
    (config,) = re.findall(r"--config (model=my_net.py:build) \"(data=.*?)\"", TUTORIAL)
    snakemake(project, "-s", f"{ROOT}/Snakefile", "--config", *config, "sizes=[1]", *quick(), "--until", "measure_cell")
    (row,) = (project / "results").rglob("trial-1.parquet")
    assert pd.read_parquet(row)[["status", "parameters"]].values.tolist() == [["ok", 6]]


def test_a_cell_measured_by_hand_prints_its_time(project: Path) -> None:
    _, *command = shlex.split(block("python"))
    effort = {"warmup_max_s": 0.1, "warmup_min_s": 0.1, "timed_min_s": 0.05, "timed_max_s": 0.1}
    command = [sys.executable, command[0], json.dumps({**json.loads(command[1]), "effort": effort}), *command[2:]]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.match(r"[\d.]+ .?s per step, .*on ", done.stdout)

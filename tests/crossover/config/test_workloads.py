"""The constants of a workload's module, read without running it; a mistake is reported in one line."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from crossover.config.workloads import Traits, check_offered, memory_mb, read_traits, workload_traits
from crossover.errors import UserError
from user_errors import error_line

WHOLE = 'SIZE_NAME = "features"\nSIZE_RANGE = (1, 8)\nDATASET = None\nPROTOCOLS = ("resident",)\n'


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


def complaint(module: Path, text: str | bytes) -> str:
    module.write_bytes(text if isinstance(text, bytes) else text.encode())
    return error_line(read_traits, module)


def test_constants_are_read_whether_annotated_or_not(module: Path) -> None:
    module.write_text(
        "import no_such_package\n"
        + WHOLE.replace("DATASET =", "DATASET: str | None =")
        + "SIZES = (2, 4)\nCLASSES = 3\n"
    )
    assert read_traits(module) == Traits("features", (1, 8), None, ("resident",), sizes=(2, 4), classes=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\x00\n", ""),
        (
            "import torch\n",
            "lacks SIZE_NAME, SIZE_RANGE, DATASET, PROTOCOLS; add at the top level; see 'A workload of your own'",
        ),
        (WHOLE + "def build(:\n", "line 5: not valid Python ("),
        (b"\xff\xfe", "line 1: not valid Python ("),
        (WHOLE.replace("(1, 8)", "(1, 2 * LIMIT)"), "line 2: SIZE_RANGE is computed, but read without running"),
    ],
)
def test_a_module_that_cannot_be_read_is_one_line(module: Path, text: str | bytes, message: str) -> None:
    assert complaint(module, text).startswith(f"mine.py: {message}")


VALUES = {"size": 2, "protocol": "resident", "variant": "plain"}
KEYS = {axis: f"--{axis}" for axis in VALUES}


@pytest.mark.parametrize(
    ("workload", "right", "wrong", "message"),
    [
        ("disc_mlp", {"size": 16}, {"size": 17}, "--size: 17 is not .*; allowed: linear layers from 2 to 16"),
        ("few_sizes", {"size": 4}, {"size": 5}, "--size: 5 is not .*; allowed: linear layers 2, 4, 16"),
        ("gpt_block", {"size": 704}, {"size": 700}, "--size: 700 is not .*; allowed: .* 64 to 8192, multiples of 64"),
        ("disc_mlp", {}, {"protocol": "as_published"}, "--protocol: 'as_published' is not .*; allowed: resident"),
        ("matmul", {"size": 64, "batch_size": 1}, {"size": 64, "batch_size": 2}, "--batch-size: 2 is not .*: 1"),
    ],
)
def test_values_that_a_workload_does_not_offer_are_refused(
    monkeypatch: pytest.MonkeyPatch, workload: str, right: dict[str, Any], wrong: dict[str, Any], message: str
) -> None:
    if workload == "few_sizes":
        traits = replace(workload_traits("disc_mlp"), sizes=(2, 4, 16))
        monkeypatch.setattr("crossover.config.workloads.workload_traits", lambda _workload: traits)
    keys = KEYS | ({"batch_size": "--batch-size"} if "batch_size" in right else {})
    check_offered(workload, VALUES | right, keys)
    with pytest.raises(UserError, match=f"^{message}"):
        check_offered(workload, VALUES | wrong, keys)


@pytest.mark.parametrize(
    ("workload", "size"),
    {
        "bert": 2,
        "digits_mlp": 12,
        "disc_mlp": 5,
        "gpt_block": 128,
        "higgs_mlp": 7,
        "linear_stack": 9,
        "matmul": 16,
    }.items(),
)
def test_parameter_count_is_that_of_the_model(workload: str, size: int) -> None:
    module = importlib.import_module(f"crossover.measurement.workloads.{workload}")
    with torch.device("meta"):
        model = module.build_model(size)
    assert module.parameter_count(size) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("workload", "size", "megabytes"),
    [
        ("disc_mlp", 2, 4001),  # 22 parameters
        ("linear_stack", 4096, 4000 + 806),  # 50,343,936 parameters of 16 B: 805.5 MB
        ("disc_mlp", 16, 4000 + 45_818),  # 2 (4^16 - 4) / 3 + 2^18 - 2 = 2,863,573,670 of 16 B
    ],
)
def test_memory_grows_with_the_weights_and_their_gradients(workload: str, size: int, megabytes: int) -> None:
    assert memory_mb(workload, size) == megabytes


def test_reading_a_workload_does_not_import_torch(root: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from crossover.config import workloads; print(workloads.{})"
    for call in ("memory_mb('bert', 24)", "workload_traits('bert')"):
        subprocess.run([sys.executable, "-c", code.format(call)], check=True, cwd=root / "scripts", capture_output=True)


@pytest.mark.parametrize("body", ["return undefined * size", "return 'many'", "return float('nan')", "return size / 0"])
def test_a_parameter_count_that_fails_is_one_line(module: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    workload = f"own_{len(body)}"  # modules are read once
    monkeypatch.setattr("crossover.config.workloads.WORKLOADS_FOLDER", module.parent)
    module.with_name(f"{workload}.py").write_text(f"def parameter_count(size):\n    {body}\n")
    with pytest.raises(UserError, match=rf"^{workload}\.py: parameter_count\(8\) fails \(.*\); allowed: plain"):
        memory_mb(workload, 8)


@pytest.mark.parametrize(
    ("workload", "preloaded"), [("efficientnet", "_transformers"), ("llama_decode", "_llama"), ("disc_mlp", None)]
)
def test_a_module_that_is_slow_to_import_is_preloaded(workload: str, preloaded: str | None) -> None:
    assert workload_traits(workload).preloaded == preloaded

"""Parameters and operations of all workloads, worked out by hand, correct results in every precision, and datasets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.workloads import count_parameters, read_dataset
from tiny_tasks import answer_of, cell_of, flops_of, task_of

Data = dict[str, torch.Tensor]


def points() -> Data:
    random = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 2, (300,), generator=random)
    return {"features": torch.randn(300, 2, generator=random), "labels": labels}


def digits() -> Data:
    random = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 10, (40,), generator=random)
    return {"features": torch.randint(0, 256, (40, 28, 28), generator=random, dtype=torch.uint8), "labels": labels}


DATA: dict[str, Callable[[], Data]] = {"disc_mlp": points, "higgs_mlp": points, "mnist_cnn": digits}


@pytest.mark.parametrize(
    ("workload", "size", "parameters"),
    [
        *(("higgs_mlp", width, 3 * width + width * (width + 1) + 2 * (width + 1)) for width in (5, 320)),
        ("digits_mlp", 12, 12 * (64 + 1) + 12 * (12 + 1) + 10 * (12 + 1)),
        ("mnist_cnn", 32, 1_199_882),
        # Two 3 x 3 convolutions, then dense layers from 144 positions of 2 x 5 channels to 20, and from these to 10.
        ("mnist_cnn", 5, 5 * 10 + 10 * (9 * 5 + 1) + 20 * (10 * 144 + 1) + 10 * 21),
        ("linear_stack", 4096, 50_343_936),
        ("matmul", 300, 300**2),
        ("bert", 24, 335_143_938),
        ("efficientnet", 224, 5_288_548),  # as in torchvision and timm
        *zip(
            ["resnet"] * 5,
            (18, 34, 50, 101, 152),
            (11_689_512, 21_797_672, 25_557_032, 44_549_160, 60_192_808),  # as in torchvision
            strict=True,
        ),
    ],
)
def test_parameters(workload: str, size: int, parameters: int) -> None:
    assert count_parameters(cell_of(workload, size)) == parameters


def test_parameters_of_disc_mlp_equal_the_published_counts(root: Path) -> None:
    published = pd.read_csv(root / "config" / "published" / "disc_depth_parameters.csv", comment="#")
    assert len(published) == 11
    for linear_layers, parameters in published.itertuples(index=False):
        assert count_parameters(cell_of("disc_mlp", linear_layers)) == parameters


GPT_TOKENS, GPT_WIDTH = 2 * 256, 128


@pytest.mark.parametrize(
    ("workload", "size", "batch_size", "operations", "tolerance"),
    [
        # Each weight of the four matrices serves each token three times, once forward; with dropout, a CPU computes
        # attention by plain products, two forward and four backward.
        ("gpt_block", GPT_WIDTH, 2, 72 * GPT_WIDTH**2 * GPT_TOKENS + 12 * GPT_TOKENS * 256 * GPT_WIDTH, 0),
        # Tan and Le 2019, table 2: 0.39 G multiplications and additions.
        ("efficientnet", 224, 1, 2 * 0.39e9, 0.02),
        # torchvision's 1.814 G forward, and twice that backward, but for the gradient of the images.
        ("resnet", 18, 1, 6 * 1.814e9 - 2 * (7 * 7 * 3) * 64 * 112**2, 1e-3),
    ],
)
def test_operations(workload: str, size: int, batch_size: int, operations: float, tolerance: float) -> None:
    task = task_of(cell_of(workload, size, batch_size))
    assert flops_of(task.step) == pytest.approx(operations, rel=tolerance, abs=0)


PRECISIONS = ("fp64", "fp32", "bf16", "fp16", "amp-bf16", "amp-fp16")
CELLS = [
    *(cell_of("disc_mlp", 8, 100, precision=precision) for precision in PRECISIONS),
    *(cell_of("higgs_mlp", 100, 100, precision=precision) for precision in ("fp32", "fp16")),
    *(cell_of("higgs_mlp", 100, 100, precision=p, protocol="as_published") for p in ("bf16", "amp-fp16")),
    *(cell_of("mnist_cnn", 4, 16, precision=precision) for precision in ("fp32", "amp-fp16")),
    cell_of("mnist_cnn", 4, 16, precision="amp-bf16", protocol="as_published"),
    *(cell_of("linear_stack", 128, 32, precision=precision) for precision in ("fp32", "amp-bf16")),
    *(cell_of("gpt_block", 64, precision=precision) for precision in ("amp-fp16", "bf16")),
    cell_of("efficientnet", 32, precision="bf16"),
]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # mnist_cnn forks workers
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.workload}-{cell.protocol}-{cell.precision}")
def test_a_workload_trains_and_passes_the_numerical_check(cell: Cell) -> None:
    task = task_of(cell, DATA.get(cell.workload, dict)())
    before = [parameter.clone() for parameter in task.model.parameters()]
    for _ in range(3):
        task.step()
    after = list(task.model.parameters())
    assert all(parameter.dtype == task.arithmetic.dtype and torch.isfinite(parameter).all() for parameter in after)
    trains = task.optimizer is not None
    assert trains is any(not torch.equal(new, old) for new, old in zip(after, before, strict=True))
    answer = answer_of(cell, task)
    assert answer.wrong is answer.unchecked is None
    assert set(answer.errors) == ({"result", "gradient"} if trains else {"result"})
    assert (answer.errors["gradient" if trains else "result"] == 0) is (cell.precision == "fp64")
    assert max(answer.errors.values()) < 0.1
    task.step()


POINTS = {"features": torch.ones(4, 2), "labels": torch.arange(4) % 2}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "is not a readable safetensors file"),
        (lambda path: path.unlink(), "is not a file"),
        (lambda path: (path.unlink(), path.mkdir()), "is not a file"),
        (lambda path: save_file(POINTS, path, {"dataset": "higgs"}), "contains 'higgs', but workload 'disc_mlp' reads"),
    ],
)
def test_a_wrong_dataset_file_is_one_line(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "data.safetensors"
    save_file(POINTS, path, {"dataset": "disc"})
    assert read_dataset(str(path), "disc_mlp").keys() == POINTS.keys()
    spoil(path)
    with pytest.raises(UserError, match=f"^--dataset: {path} {message}"):
        read_dataset(str(path), "disc_mlp")


IMPORTS = """
import json, os, socket, sys
def refuse(*_): raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = refuse
from crossover.measurement.workloads import bert, efficientnet, gpt_block, matmul, resnet
bert.SHAPE = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}
for code, size in ((bert, 1), (efficientnet, 32), (gpt_block, 64), (resnet, 18)):
    code.build_model(size)
hidden = sorted({"pandas", "sklearn", "scipy", "matplotlib"} & set(sys.modules))
import scipy.special  # can still be imported
print(json.dumps([hidden, os.environ["HF_HUB_OFFLINE"]]))
"""


def test_models_of_transformers_need_no_network_and_import_no_pandas(in_fresh_process: Callable[..., Any]) -> None:
    assert in_fresh_process(IMPORTS) == [[], "1"]

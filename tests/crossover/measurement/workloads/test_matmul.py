from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.flops import count_flops
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.workloads import build_model, build_task, count_parameters, matmul
from tiny_tasks import CPU


def cell(n: int, precision: str = "fp32", batch_size: int = 1) -> Cell:
    return Cell("tf32_matmul", "matmul", "resident", batch_size, precision, "eager", n, "cpu")


def task(n: int, precision: str = "fp32") -> Any:
    torch.manual_seed(0)
    return build_task(cell(n, precision), {}, arithmetic_of(precision, CPU))


def test_a_step_is_the_product_of_two_normal_matrices() -> None:
    ours = task(300)
    assert count_parameters(cell(300)) == 300**2
    seen: list[torch.Tensor] = []
    ours.observe = seen.append
    ours.step()
    (left,) = ours.next_inputs()
    assert left.shape == ours.right.shape == (300, 300)
    assert np.allclose(seen[0].numpy(), left.numpy() @ ours.right.detach().numpy(), rtol=1e-4, atol=1e-3)
    for matrix in (left, ours.right.detach()):
        assert float(matrix.mean()) == pytest.approx(0, abs=0.02)
        assert float(matrix.std()) == pytest.approx(1, abs=0.02)


def test_the_check_compares_a_few_rows_of_the_whole_product() -> None:
    ours = task(100)
    shapes = []
    forward = ours.forward
    ours.forward = lambda model, *inputs: shapes.append(inputs[0].shape) or forward(model, *inputs)
    answer = compare_with_reference(ours, lambda: build_model(cell(100)), "fp32")
    assert shapes == [(32, 100), (100, 100)]  # the reference's rows; the whole product as it was timed
    assert answer.wrong is answer.unchecked is None
    assert 0 < answer.errors["result"] < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize(("n", "rows"), [(100, 100), (300, 256)])
def test_errors_as_the_note_defines_them(precision: str, n: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy in float64 from the matrices that were drawn in it, before they were rounded."""
    monkeypatch.setattr(matmul, "CHUNK_ROWS", 70)  # several chunks, the last one short
    ours = task(n, precision)
    torch.manual_seed(5)
    errors = ours.own_errors()
    torch.manual_seed(5)
    left, right = (torch.randn(n, n, dtype=torch.float64) for _ in range(2))
    exact = left.numpy()[:rows] @ right.numpy()
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    product = (left.to(dtype) @ right.to(dtype)).double().numpy()[:rows]
    largest = np.abs(product - exact).max()
    assert errors["max_abs_error"] == pytest.approx(largest, rel=1e-6)
    assert errors["max_relative_error"] == pytest.approx(largest / np.abs(exact).mean(), rel=1e-6)
    assert errors["max_abs_error"] > 0


def test_rounding_what_is_multiplied_is_most_of_the_error_in_bf16() -> None:
    """A number is rounded by up to 2^-9 of itself; the sum of n such products is off by about sqrt(2 n / 3) 2^-9."""
    error = task(256, "bf16").own_errors()["max_abs_error"]
    one = (2 * 256 / 3) ** 0.5 * 2**-9
    assert one < error < 20 * one


def test_double_precision_is_as_exact_as_its_reference() -> None:
    assert task(64, "fp64").own_errors()["max_abs_error"] < 1e-12


def test_another_batch_size_is_refused() -> None:
    with pytest.raises(UserError, match="batch size 2 is not possible in workload 'matmul'; allowed: 1 product"):
        build_task(cell(64, batch_size=2), {}, Arithmetic(CPU))


def test_doubles_are_of_the_cpu_where_the_device_has_none() -> None:
    assert matmul._doubles(torch.device("mps")).device == CPU
    assert matmul._doubles(torch.device("cuda:0")).device == torch.device("cuda:0")


def test_operations_by_arithmetic() -> None:
    assert count_flops(task(300).step, "eager") == 2 * 300**3

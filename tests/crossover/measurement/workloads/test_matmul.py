from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from crossover.measurement.workloads import matmul
from tiny_tasks import cell_of, task_of


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize(("n", "rows"), [(100, 100), (300, 256)])
def test_errors_as_the_note_defines_them(precision: str, n: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors are recomputed with NumPy in float64, from the matrices before they are rounded."""
    monkeypatch.setattr(matmul, "CHUNK_ROWS", 70)  # several chunks, the last one short
    task: Any = task_of(cell_of("matmul", n, 1, precision=precision))
    torch.manual_seed(5)
    errors = task.own_errors()
    torch.manual_seed(5)
    left, right = (torch.randn(n, n, dtype=torch.float64) for _ in range(2))
    exact = left.numpy()[:rows] @ right.numpy()
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    product = (left.to(dtype) @ right.to(dtype)).double().numpy()[:rows]
    largest = np.abs(product - exact).max()
    assert errors["max_abs_error"] == pytest.approx(largest, rel=1e-6)
    assert errors["max_relative_error"] == pytest.approx(largest / np.abs(exact).mean(), rel=1e-6)
    assert errors["max_abs_error"] > 0

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.statistics.summary import summarise

Row = Callable[..., dict[str, Any]]


def cells_of(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {str(key): value for key, value in cell.items()} for cell in summarise(pd.DataFrame(rows)).to_dict("records")
    ]


def test_the_achieved_rate_is_operations_over_time(row: Row) -> None:
    """20.6 TFLOP in 150 steps of 4 ms: 34.3 TFLOP/s."""
    (cell,) = cells_of(row(step_time_s=4e-3, flops_per_step=20_600_000_000_000 // 150))
    assert cell["achieved_tflops"] == pytest.approx(34.33, rel=1e-3)
    assert pd.isna(cell["peak_share"])


def test_the_share_is_of_the_fastest_product_on_the_device_in_the_precision(row: Row) -> None:
    def product(device: str, precision: str, size: int, tflops: int) -> dict[str, Any]:
        axes = {"study": "products", "workload": "matmul", "device": device, "precision": precision, "size": size}
        return row(**axes, step_time_s=1.0, flops_per_step=tflops * 10**12)

    own = row(device="cuda", precision="tf32", step_time_s=1.0, flops_per_step=100 * 10**12)
    others = [
        product("cuda", "tf32", 1024, 300),
        product("cuda", "tf32", 8192, 400),
        product("cuda", "fp32", 8192, 50),
        product("cpu", "tf32", 8192, 2),
    ]
    assert cells_of(own, *others)[0]["peak_share"] == pytest.approx(0.25)
    assert cells_of(own, *others)[2]["peak_share"] == pytest.approx(1)
    assert pd.isna(cells_of(own, *others[2:])[0]["peak_share"])


def test_without_a_time_or_a_count_there_is_no_rate(row: Row) -> None:
    lost = row(status="oom", step_time_s=None, flags=None, flops_per_step=10**12)
    assert pd.isna(cells_of(lost)[0]["achieved_tflops"])
    assert pd.isna(cells_of(row())[0]["achieved_tflops"])

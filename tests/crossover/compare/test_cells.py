from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.compare.cells import means_of, summarise
from crossover.tables.frames import records
from crossover.tables.registry import MEMORY_PARTS

Row = Callable[..., dict[str, Any]]

SPLIT = dict(zip(MEMORY_PARTS, (10, 20, 0, 30, 5, 35), strict=True))
"""The parts add up to 100 bytes."""
LOST: dict[str, Any] = {"status": "oom", "reason": "no memory", "step_time_s": None, "flag_names": None}


def cells_of(*rows: dict[str, Any], prices: Any = None, **more: Any) -> list[dict[str, Any]]:
    table = pd.DataFrame(rows)
    return records(summarise(table, means_of(table, prices), **more))


def trials(row: Row, column: str, *values: Any, **more: Any) -> list[dict[str, Any]]:
    return [row(**{column: value, "trial": trial, **more}) for trial, value in enumerate(values, 1)]


def test_the_time_of_a_cell_by_hand(row: Row) -> None:
    """The geometric mean of 1 and 4 ms is 2 ms; the half width is t(0.975, 1) = 12.7062 times ln 2."""
    (cell,) = cells_of(*trials(row, "step_time_s", 1e-3, 4e-3))
    ends = [2e-3 * 2 ** (sign * 12.7062) for sign in (-1, 1)]
    assert cell["step_time_s"] == pytest.approx(2e-3)
    assert [cell["step_time_low_s"], cell["step_time_high_s"]] == pytest.approx(ends, rel=1e-3)
    assert cell["samples_per_s"] == pytest.approx(50_000)
    rates = [cell["samples_per_s_low"], cell["samples_per_s_high"]]
    assert rates == pytest.approx([100 / end for end in reversed(ends)], rel=1e-3)
    assert (cell["trials"], cell["trials_not_ok"], cell["status"]) == (2, 0, "ok")
    assert (cell["parameters"], cell["device_name"], cell["refined"]) == (230, "Brand C1", False)


def test_the_rate_uses_the_counted_samples_per_step(row: Row) -> None:
    """Every second batch of 100 had a single row: 50.5 rows in 2 ms are 25,250/s."""
    (cell,) = cells_of(*trials(row, "samples_per_step", 50.0, 51.0, step_time_s=2e-3))
    assert cell["samples_per_s"] == pytest.approx(25_250)


def test_the_steps_of_a_cell_are_those_of_the_trial_with_the_fewest(row: Row) -> None:
    assert cells_of(*trials(row, "timed_steps", 30, 10, 20))[0]["timed_steps"] == 10


def test_failed_trials_set_the_status_and_ok_trials_the_time(row: Row) -> None:
    peaks = trials(row, "peak_allocated_bytes", 10, 30, 20, step_time_s=2e-3, base_rss_bytes=5, peak_rss_bytes=8)
    (cell,) = cells_of(*peaks, row(trial=4, peak_allocated_bytes=1000, **LOST))
    assert (cell["status"], cell["reason"], cell["trials"], cell["trials_not_ok"]) == ("oom", "no memory", 3, 1)
    assert cell["step_time_s"] == pytest.approx(2e-3)
    assert (cell["peak_allocated_bytes"], cell["rss_growth_bytes"], cell["device_used_bytes"]) == (20, 3, None)
    (never,) = cells_of(row(**LOST, device="cuda", device_memory_bytes=80, peak_allocated_bytes=79))
    assert [never[name] for name in ("step_time_s", "peak_bytes", "capacity_bytes")] == [None, None, 80]


def test_the_flags_of_a_cell_are_those_of_its_ok_trials(row: Row) -> None:
    """The times are far apart; `quota` is on two of the three ok trials and `drift` on one."""
    rows = trials(row, "step_time_s", 1.0, 3.0, 9.0)
    rows[0]["flag_names"], rows[1]["flag_names"] = ["quota"], ["drift", "quota"]
    (cell,) = cells_of(*rows, row(trial=4, **LOST))
    assert cell["flag_names"] == ["quota", "trials_differ"]


def test_energy_and_price_have_intervals(row: Row) -> None:
    """An energy of 0 means that the counter did not change. A price of 3.6 per hour is 0.001 per second.

    The counter's update period is 1 % of the window; for two trials t(0.975, 1) = 12.7062.
    """
    rows = trials(row, "energy_per_step_j", 0.5, 0.5, 0.0, None, device="cuda", step_time_s=1e-3)
    gpu, cpu = cells_of(*rows, row(device="cpu-1", step_time_s=1e-2), prices={"cpu": 0.72, "cuda": 3.6})
    energy = [gpu[f"energy_per_step{end}_j"] for end in ("", "_low", "_high")]
    price = [gpu[f"price_per_million_steps{end}"] for end in ("", "_low", "_high")]
    unread = math.exp(12.7062 * 0.01 / math.sqrt(6))
    assert energy == pytest.approx([0.5, 0.5 / unread, 0.5 * unread], rel=1e-4)
    assert price == pytest.approx([1] * 3)
    assert (cpu["energy_per_step_j"], cpu["price_per_million_steps_low"]) == (None, None)
    assert cpu["price_per_million_steps"] == pytest.approx(2)
    assert cells_of(row())[0]["price_per_million_steps"] is None


def test_the_achieved_rate_is_operations_over_time(row: Row) -> None:
    """20.6 TFLOP in 150 steps of 4 ms: 34.3 TFLOP/s."""
    (cell,) = cells_of(*trials(row, "step_time_s", 3e-3, 16e-3 / 3, flops_per_step=20_600_000_000_000 // 150))
    assert cell["achieved_tflops"] == pytest.approx(34.33, rel=1e-3)
    width = math.log(cell["step_time_high_s"] / cell["step_time_low_s"])
    assert math.log(cell["achieved_tflops_high"] / cell["achieved_tflops_low"]) == pytest.approx(width)
    assert cell["peak_share"] is None


def test_the_peak_is_that_of_the_fastest_product_on_the_device_in_the_precision(row: Row) -> None:
    def product(device: str, precision: str, size: int, tflops: int) -> dict[str, Any]:
        axes = {"study": "products", "workload": "matmul", "device": device, "precision": precision, "size": size}
        return row(**axes, step_time_s=1.0, flops_per_step=tflops * 10**12)

    cell_row = row(device="cuda", precision="tf32", step_time_s=1.0, flops_per_step=100 * 10**12)
    same = [product("cuda", "tf32", 1024, 300), product("cuda", "tf32", 8192, 400)]
    others = [product("cuda", "fp32", 8192, 50), product("cpu", "tf32", 8192, 2)]
    shares = [cell["peak_share"] for cell in cells_of(cell_row, *same, *others)]
    assert shares == pytest.approx([0.25, 0.75, 1, 1, 1])
    assert cells_of(cell_row, *others)[0]["peak_share"] is None


def test_the_parts_of_memory_come_from_the_trial_with_the_median_peak(row: Row) -> None:
    rows = [
        row(device="cuda", trial=trial, peak_allocated_bytes=peak, **{**SPLIT, "other_bytes": peak - 65})
        for trial, peak in {1: 300, 2: 100, 3: 200, 4: 400}.items()
    ]
    (cell,) = cells_of(*rows)
    assert (cell["peak_bytes"], cell["other_bytes"], cell["parameter_bytes"]) == (200, 135, 10)
    assert cell["peak_bytes"] == cell["peak_allocated_bytes"]


def test_the_peak_on_the_cpu_is_the_sum_of_the_parts_or_the_growth(row: Row) -> None:
    resident = {"base_rss_bytes": 1000, "peak_rss_bytes": 1070, "memory_bytes": 4000, "device_memory_bytes": 7}
    cells = cells_of(row(size=2, **resident, **SPLIT), row(size=4, **resident))
    assert [(cell["peak_bytes"], cell["capacity_bytes"]) for cell in cells] == [(100, 4000), (70, 4000)]

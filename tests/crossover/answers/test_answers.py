from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.answers.answers import study_answers
from crossover.statistics.cores_worth import compare_cores
from report_pages import tables_of

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]


def said(rows: pd.DataFrame, *figures: str, **tables: Any) -> list[str]:
    spec = {"figures": list(figures), "steps_per_run": None}
    return [text for _, text in study_answers(spec, tables_of(rows, **tables).of_study("disc_depth"))]


def test_how_many_cores_a_gpu_is_worth_comes_before_where_it_wins(power_laws: PowerLaws) -> None:
    """Half of the cores take twice as long."""
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    halves = rows[rows["device"] == "cpu"].assign(
        device="cpu-half", threads=1, step_time_s=lambda own: 2 * own["step_time_s"]
    )
    rows = pd.concat([rows, halves])
    worth, crossover = said(rows, "times", cores_worth=compare_cores(rows))
    assert worth.startswith("At 4 linear layers the GPU (Brand G1) is worth more than 2 cores")
    assert "beats the CPU (Brand C1) from about 1,000" in crossover


def test_how_wrong_a_latency_is_comes_before_which_device_is_faster(row: Row) -> None:
    """A GPU of 1 ms, the mistake 1.5 ms in the mean, and a CPU of 4 ms."""
    rows = pd.DataFrame(
        [
            row(device=device, trial=trial, step_time_s=right, latencies_s=[right] * 3, latencies_cold_s=cold)
            for trial in (1, 2)
            for device, right, cold in (("cpu", 4e-3, None), ("cuda", 1e-3, [2e-3, 1e-3]))
        ]
    )
    wrong, faster = said(rows, "latency")
    assert wrong == "On the GPU “no warm-up” makes the mean latency 50 % too high (95 %: 50 % to 50 %)."
    assert "is 4.00 times as fast as" in faster


def test_which_precision_is_fastest_comes_before_which_device_is(row: Row) -> None:
    """The GPU in 2 ms, and in 1 ms in TF32; the CPU in 8 ms in either."""
    seconds = {("cpu", "fp32"): 8e-3, ("cpu", "tf32"): 8e-3, ("cuda", "fp32"): 2e-3, ("cuda", "tf32"): 1e-3}
    rows = pd.DataFrame(
        [
            row(device=device, precision=precision, trial=trial, step_time_s=time)
            for trial in (1, 2)
            for (device, precision), time in seconds.items()
        ]
    )
    cpu, gpu, *lines = said(rows, "comparison")
    assert cpu.startswith("CPU: ")
    assert gpu == "GPU fastest with tf32: 2.00 times as fast as fp32 (95 %: 2.00 to 2.00)."
    assert ["is 4.00 times as fast as" in line or "is 8.00 times as fast as" in line for line in lines] == [True, True]


def test_what_is_said_at_length_is_not_said_in_short_as_well(row: Row) -> None:
    rows = pd.DataFrame([row(), row(device="cuda", step_time_s=2e-3)])
    (only,) = said(rows, "comparison")
    assert only.startswith("On this machine the CPU (Brand C1) is 2.00 times as fast as the GPU (Brand G1)")


def test_nothing_measured_is_no_answer(power_laws: PowerLaws) -> None:
    assert said(power_laws({2: 100}).head(0), "times") == ["Not measured here."]

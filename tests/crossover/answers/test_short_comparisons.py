from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from crossover.answers.short_comparisons import comparison_answers
from crossover.tables.frames import with_ok_times

Row = Callable[..., dict[str, Any]]


def said(*rows: dict[str, Any], figure: str = "comparison") -> list[str]:
    return [text for _, text in comparison_answers(with_ok_times(pd.DataFrame(rows)), {"figures": [figure]})]


def trials(row: Row, seconds: Sequence[float], **values: Any) -> list[dict[str, Any]]:
    return [row(step_time_s=time, trial=trial, **values) for trial, time in enumerate(seconds, 1)]


def test_at_one_size_the_devices_are_compared(row: Row) -> None:
    """12 over 4 ms, without any spread; and the other way round."""
    cpu, gpu = trials(row, [0.012] * 2), trials(row, [0.004] * 2, device="cuda")
    assert said(*cpu, *gpu) == ["GPU 3.00 times as fast as the CPU (95 %: 3.00 to 3.00)"]
    assert said(cpu[0], gpu[0]) == ["GPU 3.00 times as fast as the CPU (one trial a cell: indicative)"]
    slow = trials(row, [0.048] * 2, device="cuda")
    assert said(*cpu, *slow) == ["CPU 4.00 times as fast as the GPU (95 %: 4.00 to 4.00)"]


def test_without_two_sides_the_fastest_setting_stands_beside_the_slowest(row: Row) -> None:
    times = {"fp32": 0.006, "tf32": 0.002, "amp-fp16": 0.003}
    rows = [one for name, time in times.items() for one in trials(row, [time] * 2, device="cuda", precision=name)]
    assert said(*rows) == ["GPU fastest with tf32: 3.00 times as fast as fp32 (95 %: 3.00 to 3.00)"]
    assert said(*rows[:2]) == ["GPU: 6.00 ms a step"]
    lost = [one | {"status": "oom"} if one["precision"] == "tf32" else one for one in rows]
    assert said(*lost) == ["GPU fastest with amp-fp16: 2.00 times as fast as fp32 (95 %: 2.00 to 2.00)"]


def test_of_several_batches_the_time_of_a_sample_counts(row: Row) -> None:
    """100 samples in 2 ms, 400 in 4 ms: half the time of a sample, though a step takes longer."""
    rows = [*trials(row, [0.002], batch_size=100), *trials(row, [0.004], batch_size=400)]
    assert said(*rows) == ["CPU fastest with batch 400: 2.00 times as fast as batch 100 (one trial a cell: indicative)"]


def test_of_several_sizes_the_largest_speaks(row: Row) -> None:
    """fp64 is slower still, but fp32 is what one would use."""
    times = {(2, "fp32"): 0.001, (8, "fp32"): 0.008, (8, "tf32"): 0.002, (8, "fp64"): 0.1}
    rows = [one for (size, name), time in times.items() for one in trials(row, [time], size=size, precision=name)]
    assert said(*rows) == [
        "CPU fastest with tf32 at 8 linear layers: 4.00 times as fast as fp32 (one trial a cell: indicative)"
    ]
    assert said(*rows[:2]) == ["CPU: 8.00 ms a step at 8 linear layers (one trial a cell: indicative)"]


def test_the_best_throughput_has_its_place(row: Row) -> None:
    """100 in 10 ms are 10,000/s, 200 in 10 ms twice as many."""
    rows = [
        *trials(row, [0.01] * 2, device="cuda", batch_size=100, precision="fp32"),
        *trials(row, [0.01] * 2, device="cuda", batch_size=200, precision="amp-fp16"),
    ]
    assert said(*rows, figure="throughput") == ["GPU at best 20,000/s, at batch 200, amp-fp16"]
    assert said(rows[2], figure="throughput") == ["GPU at best 20,000/s, at batch 200 (one trial a cell: indicative)"]


def test_the_worst_mistake_in_measuring_a_latency_is_named_with_its_factor(row: Row) -> None:
    """Means of 10 ms; with the transfer 15 ms; without synchronisation 1 ms."""
    lists = {
        "latencies_s": [0.009, 0.011],
        "latencies_transfer_s": [0.015] * 2,
        "latencies_unsynchronised_s": [0.001] * 2,
    }
    gpu, cpu = trials(row, [0.01] * 2, device="cuda", **lists), trials(row, [0.02] * 2)
    assert said(*cpu, *gpu, figure="latency") == [
        "On the GPU “no synchronisation” makes the mean latency 10× too low (95 %: 10.0× to 10.0×)"
    ]
    assert said(gpu[0], figure="latency") == [
        "On the GPU no mistake could be told from the right way (one trial a cell: indicative)"
    ]


def test_where_loading_was_measured_its_share_is_the_answer(row: Row) -> None:
    rows = [
        *trials(row, [0.02] * 2, device="cuda", protocol="as_published"),
        *trials(row, [0.002] * 2, device="cuda", protocol="resident"),
    ]
    assert said(*rows) == ["Loading takes 90 % of a step on the GPU (95 %: 90 % to 90 %)"]


def test_nothing_ok_is_no_answer(row: Row) -> None:
    assert said(row(status="oom", step_time_s=None)) == []


def test_what_the_trials_do_not_tell_apart_is_not_called_fastest(row: Row) -> None:
    """Means of 10 and 11 ms, from trials that lie a factor of two apart."""
    rows = [
        *trials(row, [0.01, 0.02, 0.005], device="cuda", precision="tf32"),
        *trials(row, [0.011, 0.022, 0.0055], device="cuda", precision="fp32"),
    ]
    (text,) = said(*rows)
    assert text.startswith("GPU: tf32 and fp32 not told apart (95 %: 0.")

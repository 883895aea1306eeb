"""What figures of cells are summed up as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crossover.answers.takeaways_of_cells import of_comparison, of_latency, of_throughput, of_trade_off
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def trials(row: Row, seconds: float, spread: float = 0.001, **values: Any) -> list[dict[str, Any]]:
    """Two trials whose geometric mean is `seconds`; of a spread of 0.001 the interval ends 1.3 % off, t(1) = 12.706."""
    factors = {1: 1 / (1 + spread), 2: 1 + spread}
    return [row(trial=trial, step_time_s=seconds * factor, **values) for trial, factor in factors.items()]


@pytest.mark.parametrize(
    ("spread", "words"),
    [(0.001, "ahead of all others."), (0.2, "not told apart from bf16 on the CPU.")],
)
def test_the_shortest_time_at_the_largest_size_and_what_the_trials_tell_apart(
    row: Row, view_of: Views, spread: float, words: str
) -> None:
    """At 4 layers fp32 takes 1 ms, bf16 1.1 ms; at 2 bf16 is faster, which does not count."""
    rows = [*trials(row, 1e-3, spread), *trials(row, 1.1e-3, precision="bf16")]
    rows += [*trials(row, 1e-4, size=2), *trials(row, 1e-5, size=2, precision="bf16")]
    text = of_comparison(view_of(rows))
    assert text.startswith("Shortest time at 4 linear layers: fp32 on the CPU, 1.00 ms (95 %: ")
    assert text.endswith(words)


def test_times_of_several_batches_are_those_of_a_sample(row: Row, view_of: Views) -> None:
    """2 ms for 400 samples are 5 us each, 1 ms for 100 are 10 us."""
    rows = [row(batch_size=100, step_time_s=1e-3), row(batch_size=400, step_time_s=2e-3)]
    assert of_comparison(view_of(rows)) == (
        "Shortest time a sample: batch 400 on the CPU, 5.00 µs. One trial a cell: indicative."
    )


def test_the_most_samples_of_each_device(row: Row, view_of: Views) -> None:
    """400 samples in 2 ms are 200,000/s; the interval ends at that times exp(12.706 ln 1.001), or over it."""
    rows = [*trials(row, 1e-3, batch_size=100), *trials(row, 2e-3, batch_size=400)]
    rows += trials(row, 1e-4, batch_size=100, device="cuda")
    text = of_throughput(view_of(rows))
    assert text == (
        "Most on the CPU: 200,000/s (95 %: 197,476/s to 202,556/s) at batch 400, ahead of all others; most on the GPU: "
        "1,000,000/s (95 %: 987,380/s to 1,012,781/s) at batch 100."
    )


def test_the_trade_off_counts_what_nothing_beats(row: Row, view_of: Views) -> None:
    """30 bytes and 1 ms, 20 bytes and 2 ms; 40 bytes and 3 ms is worse in both."""
    cells = {"plain": (30, 1e-3), "accumulate": (20, 2e-3), "wasteful": (40, 3e-3)}
    rows = [
        row(device="cuda", variant=variant, peak_allocated_bytes=memory, step_time_s=time, batch_size=1)
        for variant, (memory, time) in cells.items()
    ]
    assert of_trade_off(view_of(rows)) == (
        "On the GPU nothing beats 2 of 3 cells in both as measured, from accumulate (20 B, 2.00 ms) to plain (30 B, "
        "1.00 ms) a sample. One trial a cell: indicative."
    )


RIGHT = {"latencies_s": [1.0, 1.0]}


def test_the_mistake_that_is_furthest_off_and_sure(row: Row, view_of: Views) -> None:
    """Without warm-up 1.5 times, in every trial; with the transfer twice, but in one trial of two only half."""
    rows = [
        row(trial=1, latencies_cold_s=[2.0, 1.0], latencies_transfer_s=[4.0], **RIGHT),
        row(trial=2, latencies_cold_s=[2.0, 1.0], latencies_transfer_s=[1.0], **RIGHT),
    ]
    assert of_latency(view_of(rows)) == (
        "On the CPU “no warm-up” makes the mean latency 50 % too high (95 %: 50 % to 50 %)."
    )


def test_of_several_machines_each_is_named_behind_its_device(row: Row, view_of: Views) -> None:
    rows = [row(machine=name, latencies_cold_s=[2.0, 1.0], **RIGHT) for name in ("laptop", "node")]
    none = "no mistake could be told from the right way"
    assert (
        of_latency(view_of(rows))
        == f"On the CPU (laptop) {none}; on the CPU (node) {none}. One trial a cell: indicative."
    )


def test_no_mistake_is_claimed_that_the_trials_do_not_bear_out(row: Row, view_of: Views) -> None:
    rows = [row(trial=trial, latencies_cold_s=cold, **RIGHT) for trial, cold in ((1, [2.0, 1.0]), (2, [1.0, 2.0]))]
    assert of_latency(view_of(rows)) == "On the CPU no mistake could be told from the right way."

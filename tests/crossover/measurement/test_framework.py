"""The probe of a CPU's framework work, on a fake clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from crossover.measurement import framework
from crossover.measurement.clock.timing import Stopwatch


def test_the_median_block_counts_on_one_thread_and_disturbed_ones_do_not() -> None:
    """The trial block of 10 ms gives blocks of one step. Three of seven blocks are disturbed."""
    blocks_s = [0.01, 0.01, 0.03, 0.01, 0.05, 0.01, 0.01, 0.02]
    threads: set[int] = set()

    def readings_ns() -> Iterator[int]:
        now_s = 0.0
        for block_s in 2 * blocks_s:
            threads.add(torch.get_num_threads())
            yield round(now_s * 1e9)
            now_s += block_s
            yield round(now_s * 1e9)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    readings = readings_ns()
    try:
        rows = list(framework.framework_rows(Stopwatch(wall_ns=lambda: next(readings), synchronise=lambda: None)))
        assert (torch.get_num_threads(), threads) == (2, {1})
    finally:
        torch.set_num_threads(before)
    per_look_up = 1 / framework.LOOK_UPS
    assert [(row["roof"], row["unit"]) for row in rows] == [("framework", "s"), ("interpreter", "s")]
    for row, count in zip(rows, (1, per_look_up), strict=True):
        seconds = (row["lowest"], row["value"], row["highest"])
        assert seconds == pytest.approx((0.01 * count, 0.01 * count, 0.05 * count))


def test_a_step_of_the_probe_computes_gradients_where_gradients_are_off() -> None:
    readings = iter(range(0, 10**12, 10**9))
    with torch.no_grad():
        rows = list(framework.framework_rows(Stopwatch(wall_ns=lambda: next(readings), synchronise=lambda: None)))
    assert [row["value"] for row in rows] == [1.0, 1.0 / framework.LOOK_UPS]

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.answers.memory_words import device_memories, fullest, memory_answers, verdict
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS
from crossover.statistics.problems import TO_FIT

Row = Callable[..., dict[str, Any]]
GB = 10**9


@pytest.fixture
def gpu(row: Row) -> Row:
    """A row of a GPU of 8 GB."""

    def build(peak: float | None = None, **values: Any) -> dict[str, Any]:
        known = {"device": "cuda", "peak_allocated_bytes": peak, "device_memory_bytes": 8 * GB}
        return row(**known | ({"status": "oom", "step_time_s": None} if peak is None else {}) | values)

    return build


def said(*rows: dict[str, Any], searches: pd.DataFrame | None = None) -> list[str]:
    return memory_answers(pd.DataFrame(rows), searches)


def test_room_is_told_with_the_largest_peak(gpu: Row) -> None:
    assert said(gpu(GB, size=2), gpu(2 * GB, size=4)) == [
        "Memory of the GPU (Brand G1) is no limit here: tensors take up to 2.00 GB of its 8.00 GB, 25 % "
        "(4 linear layers)."
    ]


def test_nine_tenths_are_nearly_full(gpu: Row) -> None:
    assert "is no limit here" in said(gpu(7.2 * GB))[0]
    assert "is nearly full" in said(gpu(7.3 * GB))[0]


def test_what_ran_out_is_counted_once_a_cell_and_its_smallest_named(gpu: Row) -> None:
    rows = [gpu(GB, size=2), gpu(size=8), gpu(size=6, trial=1), gpu(size=6, trial=2)]
    assert said(*rows) == [
        "Memory of the GPU (Brand G1) is a limit: 2 cells ran out of it, the smallest at 6 linear layers: "
        "take a smaller size or batch size, or a device with more memory. "
        "Where it sufficed, tensors take up to 1.00 GB of its 8.00 GB, 12 % (2 linear layers)."
    ]
    (all_lost,) = said(gpu(size=8), gpu(size=6))
    assert all_lost.endswith(f"2 cells ran out of it, the smallest at 6 linear layers: {TO_FIT}.")


def test_precisions_are_ranked_at_the_largest_size_that_all_have(gpu: Row) -> None:
    """At 4 layers bf16 takes less, at 8 it has no result."""
    rows = [
        gpu(1 * GB, size=2, precision="fp32"),
        gpu(2 * GB, size=2, precision="amp-bf16"),
        gpu(3 * GB, size=4, precision="fp32"),
        gpu(3 * GB, size=4, precision="tf32"),
        gpu(2 * GB, size=2, precision="tf32"),
        gpu(2 * GB, size=4, precision="amp-bf16"),
        gpu(6 * GB, size=8, precision="fp32"),
    ]
    assert said(*rows)[0].endswith(
        "Least in amp-bf16 (2.00 GB), most in fp32 and tf32 (3.00 GB), at 4 linear layers, batch 100."
    )
    assert said(*rows[2:4])[0].endswith("It is the same in fp32 and tf32 (3.00 GB).")


def test_without_a_capacity_nothing_is_said_of_limits(gpu: Row) -> None:
    assert said(gpu(GB, device_memory_bytes=None)) == ["Memory of the GPU (Brand G1): tensors take up to 1.00 GB."]


def test_the_cpu_speaks_only_where_there_is_no_accelerator(row: Row, gpu: Row) -> None:
    cpu = row(peak_rss_bytes=GB, memory_bytes=16 * GB)
    assert said(cpu) == [
        "Memory of the CPU (Brand C1) is no limit here: the process takes up to 1.00 GB of the host's 16.0 GB, 6.2 %."
    ]
    assert len(said(cpu, gpu(GB))) == 1


def test_nothing_known_is_nothing_said(row: Row) -> None:
    assert said(row(device="cuda")) == []


def test_the_largest_batch_is_named(gpu: Row) -> None:
    first = gpu(GB)
    found = dict.fromkeys(SEARCH_COLUMNS) | {axis: first[axis] for axis in SEARCH_AXES}
    found |= {"status": "ok", "largest": 14336, "smallest_failing": 14337}
    assert said(first, searches=pd.DataFrame([found]))[0].endswith("Largest batch that fits: 14,336.")


def test_what_ran_out_is_fuller_than_what_is_full(gpu: Row) -> None:
    (half,) = device_memories(pd.DataFrame([gpu(4 * GB)]))
    (tenth,) = device_memories(pd.DataFrame([gpu(0.8 * GB)]))
    (lost,) = device_memories(pd.DataFrame([gpu(0.8 * GB, size=2), gpu(size=4)]))
    assert fullest([("a", tenth), ("b", half)]) == ("b", half)
    assert fullest([("a", half), ("b", lost)]) == ("b", lost)
    assert fullest([]) is None


def test_what_ran_out_in_other_studies_is_told_too(gpu: Row) -> None:
    (one,) = device_memories(pd.DataFrame([gpu(size=4)]))
    (two,) = device_memories(pd.DataFrame([gpu(size=4), gpu(size=8)]))
    found = fullest([("a", one), ("b", two)])
    assert found is not None
    assert found[0] == "b"
    assert "2 cells ran out of it, beside 1 of other studies, the smallest at 4 linear layers" in verdict(found[1])

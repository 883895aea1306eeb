"""Samples in a few numbers, their flags, and their columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crossover.config.words import FLAGS
from crossover.measurement.clock.timing import Timing, find_flags, summarise_samples
from crossover.measurement.clock.timing_columns import latency_columns, timing_columns
from crossover.tables.columns import COLUMNS
from fake_device import FakeDevice

MADE_UP = Timing(
    first_step_s=9.0,
    warmup_s=8.0,
    warmup_steps=77,
    steady=True,
    block_steps=10,
    samples_s=(1.0, 2.0, 3.0, 4.0, 100.0),
    device_samples_s=(0.5, 1.0, 9.0, 2.0, 0.5),
    timed_cpu_s=6.0,
    counted={"recompiles": 1, "involuntary_switches": 5},
)


def test_the_summary_by_hand() -> None:
    summary = summarise_samples((1.0, 2.0, 3.0, 4.0, 100.0))
    assert (summary.median_s, summary.mean_s) == (3, 22)
    assert summary.iqr_s == 2  # quartiles 2 and 4
    assert summary.severe_outliers == 1  # 100 > 4 + 3 * 2


@pytest.mark.parametrize(("sample", "outliers"), [(10.0, 0), (10.1, 1), (-90.0, 0)])
def test_only_slow_samples_beyond_the_outer_fence_are_severe(sample: float, outliers: int) -> None:
    assert summarise_samples((1.0, 2.0, 3.0, 4.0, sample)).severe_outliers == outliers


def test_the_columns_by_hand() -> None:
    columns = timing_columns(MADE_UP)
    assert columns == {
        "step_time_s": 3,
        "step_time_mean_s": 22,
        "step_time_iqr_s": 2,
        "severe_outliers": 1,
        "samples_s": [1.0, 2.0, 3.0, 4.0, 100.0],
        "block_steps": 10,
        "timed_s": 1100,
        "timed_steps": 50,
        "timed_cpu_s": 6.0,
        "first_step_s": 9.0,
        "warmup_s": 8.0,
        "warmup_steps": 77,
        "device_time_s": 1.0,
        "device_samples_s": [0.5, 1.0, 9.0, 2.0, 0.5],
        "recompiles": 1,
        "involuntary_switches": 5,
    }
    assert set(columns) <= set(COLUMNS)


def test_a_device_without_marks_has_no_device_time() -> None:
    columns = timing_columns(FakeDevice(10**6).time())
    assert columns["device_time_s"] is columns["device_samples_s"] is None


def test_latency_percentiles_by_hand() -> None:
    """Of 0, 1, ..., 100 the p-th percentile is p."""
    columns = latency_columns([float(number) for number in reversed(range(101))])
    assert columns == {"latency_p50_s": 50, "latency_p95_s": 95, "latency_p99_s": 99}
    assert set(columns) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("samples", "flags"),
    [
        ([1.0] * 20 + [1.26] * 10, ["drift"]),
        ([1.0] * 20 + [0.74] * 10, ["drift"]),
        ([1.0] * 20 + [1.24] * 10, []),
        ([1.0, 1.6] * 15, []),  # scattered, but nowhere bound
    ],
)
def test_flags_of_samples(samples: list[float], flags: list[str]) -> None:
    assert find_flags(replace(MADE_UP, samples_s=tuple(samples))) == flags
    assert set(flags) <= set(FLAGS)


def test_a_warm_up_that_was_not_steady_is_flagged() -> None:
    assert find_flags(replace(MADE_UP, samples_s=(1.0,) * 30, steady=False)) == ["warmup_capped"]

"""How many cores an accelerator is worth, by numbers worked out by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.statistics.cores_worth import cores_worth_of, worth_in_cores
from crossover.statistics.crossover_curve import LEVEL

Row = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(("gpu_s", "cores"), [(math.sqrt(8), math.sqrt(8)), (1.0, 8)])
def test_a_power_law_is_read_exactly(gpu_s: float, cores: float) -> None:
    """8 s of perfectly shared work."""
    worth = worth_in_cores({1: [8.0], 8: [1.0], 16: [0.5]}, [gpu_s])
    assert (worth["status"], worth.get("cores_low"), worth.get("cores_high")) == ("between", None, None)
    assert worth.get("cores") == pytest.approx(cores)


@pytest.mark.parametrize("true", [1.5, 4, 11])
def test_a_curve_that_bends_is_followed_and_trusted_less(true: float) -> None:
    """A tenth of the work is not shared (Amdahl): the straight line from 1 to 8 cores puts 4 of them at 4.5."""
    times = {cores: [0.1 + 0.9 / cores] * 2 for cores in (1, 8, 16)}
    worth = worth_in_cores(times, [0.1 + 0.9 / true] * 2)
    few, many = (1, 8) if true < 8 else (8, 16)
    share = math.log(times[few][0] / (0.1 + 0.9 / true)) / math.log(times[few][0] / times[many][0])
    straight = few * (many / few) ** share
    assert abs(math.log(worth["cores"] / true)) < 0.5 * math.log(straight / true)
    assert worth["cores_low"] < true < worth["cores_high"]
    assert worth.get("cores_high") == pytest.approx(straight, rel=1e-3)  # where the line's distance is all there is


def test_a_number_of_cores_measured_once_bounds_nothing() -> None:
    """Its uncertainty is unknown, so the set runs through it to where it is known."""
    thrice = {cores: [8 / cores * step for step in (0.99, 1.0, 1.01)] for cores in (1, 2, 8, 16)}
    worth = worth_in_cores({**thrice, 4: [2.0]}, [1.9, 1.9, 1.9])
    assert (worth["cores_low"], worth["cores_high"]) == (pytest.approx(2, rel=0.05), pytest.approx(8, rel=0.05))


@pytest.mark.parametrize(
    ("cpu_s", "gpu_s", "status", "slower_cores"),
    [
        ({1: [8.0], 8: [1.0], 16: [3.0]}, [0.5], "more", None),
        ({1: [8.0], 8: [1.0], 16: [3.0]}, [17.0], "fewer", None),
        ({1: [8.0], 8: [1.0], 16: [4.0]}, [2.0], "more_is_slower", 16),
        ({1: [8.0], 8: [1.0], 16: [0.9]}, [1.0], "inconclusive", None),
        ({1: [8.0], 8: [1.0]}, [7.0], "inconclusive", None),
        ({}, [1.0], "incomplete", None),
        ({1: []}, [1.0], "incomplete", None),
        ({1: [1.0]}, [], "incomplete", None),
    ],
)
def test_there_may_be_no_single_number(
    cpu_s: dict[int, list[float]], gpu_s: list[float], status: str, slower_cores: int | None
) -> None:
    worth = worth_in_cores(cpu_s, gpu_s)
    assert (worth["status"], worth.get("cores"), worth.get("slower_cores")) == (status, None, slower_cores)


def spread_of(middle: float, sd: float) -> list[float]:
    """Three trials whose logarithms have the given standard deviation."""
    return [middle * math.exp(step * sd) for step in (-1, 0, 1)]


def test_the_set_is_welchs_at_its_ends() -> None:
    """At each end the times differ by t x the standard error there; the CPU halves its time with each doubling."""
    worth = worth_in_cores({1: spread_of(16, 0.03), 16: spread_of(1, 0.01)}, spread_of(4, 0.02))
    assert worth.get("cores") == pytest.approx(4)
    assert worth["cores_low"] < 4 < worth["cores_high"]
    for end in (worth["cores_low"], worth["cores_high"]):
        share = math.log(end) / math.log(16)
        parts = [((1 - share) * 0.03) ** 2 / 3, (share * 0.01) ** 2 / 3, 0.02**2 / 3]
        freedom = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
        t = stats.t.ppf((1 + LEVEL) / 2, freedom)
        assert abs(math.log(16 / end) - math.log(4)) == pytest.approx(t * math.sqrt(sum(parts)), rel=1e-9)


def test_a_bound_is_as_sure_as_its_set() -> None:
    """With 3 % of spread, a GPU a third faster than all cores is surely worth more, one 1 % faster maybe fewer."""
    cpu = {1: spread_of(8, 0.03), 8: spread_of(1, 0.03)}
    sure, unsure = (worth_in_cores(cpu, spread_of(gpu_s, 0.03)) for gpu_s in (0.7, 0.99))
    assert (sure["status"], sure.get("cores_low"), sure.get("cores_high")) == ("more", 8, None)
    assert (unsure["status"], unsure.get("cores_high")) == ("inconclusive", None)
    assert 7 < unsure["cores_low"] < 8
    slower, hardly = (worth_in_cores(cpu, spread_of(gpu_s, 0.03)) for gpu_s in (12, 8.1))
    assert (slower["status"], slower.get("cores_low"), slower.get("cores_high")) == ("fewer", None, 1)
    assert (hardly["status"], hardly["cores_low"]) == ("inconclusive", None)
    assert 1 < hardly["cores_high"] < 1.3
    one_core = {1: spread_of(1, 0.03)}
    assert worth_in_cores(one_core, spread_of(0.5, 0.03))["cores_low"] == 1
    assert worth_in_cores(one_core, spread_of(0.99, 0.03))["status"] == "inconclusive"


def test_more_cores_that_are_slower_by_chance_keep_the_number() -> None:
    """From 8 to 16 cores the CPU loses 1 % with 3 % of spread, and the GPU takes three times as long as either."""
    cpu = {1: spread_of(8, 0.03), 8: spread_of(1, 0.03), 16: spread_of(1.01, 0.03)}
    worth = worth_in_cores(cpu, spread_of(3, 0.03))
    assert worth["status"] == "between"
    assert worth["cores_low"] < worth["cores"] < worth["cores_high"] < 8


def test_a_gpu_that_takes_the_time_of_all_cores_is_seldom_worth_more() -> None:
    """Of three numbers of cores, the nearest alone can decide; trials differ by 10 %."""
    generator = np.random.default_rng(0)
    statuses = Counter(
        worth_in_cores(
            {
                cores: [1.6 / cores * error for error in errors]
                for cores, errors in zip((1, 8, 16), trials, strict=False)
            },
            0.1 * trials[3],
        )["status"]
        for trials in np.exp(generator.normal(0, 0.1, (1000, 4, 3)))
    )
    assert statuses["more"] + statuses["between"] <= 50
    assert statuses["inconclusive"] >= 950


@pytest.fixture
def measurements(row: Row) -> pd.DataFrame:
    """16 cores of 16 s / threads and a GPU of 4 s at size 100; a GPU of 0.5 s at size 200. Two trials, no spread."""
    sides = {"cpu-1": (1, 16.0), "cpu-half": (8, 2.0), "cpu": (16, 1.0)}
    return pd.DataFrame(
        [
            row(size=size, trial=trial, device=device, threads=threads, step_time_s=time_s)
            for size, gpu_s in ((100, 4.0), (200, 0.5))
            for trial in (1, 2)
            for device, (threads, time_s) in {**sides, "cuda": (16, gpu_s)}.items()
        ]
    )


def test_the_table_has_a_row_a_size(measurements: pd.DataFrame) -> None:
    table = cores_worth_of(measurements)
    assert table["status"].tolist() == ["between", "more"]
    assert table["contender"].tolist() == ["cuda", "cuda"]
    assert table["cores"].iloc[0] == pytest.approx(4)
    assert table["measured_cores"].tolist() == [[1, 8, 16]] * 2
    assert table["trials"].tolist() == [2, 2]


def test_sides_of_as_many_threads_count_as_one(measurements: pd.DataFrame) -> None:
    """Where half of the cores is one core, its trials of 16 s and of 15 s count as sqrt(16 x 15) s of one core."""
    half = measurements["device"] == "cpu-half"
    table = cores_worth_of(
        measurements.assign(
            threads=measurements["threads"].mask(half, 1), step_time_s=measurements["step_time_s"].mask(half, 15.0)
        )
    )
    assert table["measured_cores"].tolist() == [[1, 16]] * 2
    assert table["cores"].iloc[0] == pytest.approx(16 ** (1 - math.log(4) / math.log(math.sqrt(240))))


def test_a_size_that_refinement_added_has_no_row(measurements: pd.DataFrame) -> None:
    added = measurements[(measurements["size"] == 200) & measurements["device"].isin(["cpu", "cuda"])].assign(size=150)
    assert cores_worth_of(pd.concat([measurements, added]))["size"].tolist() == [100, 200]

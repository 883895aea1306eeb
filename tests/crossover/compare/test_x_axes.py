"""Crossovers over batch sizes and over the cores of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.compare.crossover import crossover_of
from crossover.compare.crossover_curve import advantages_of_cells
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.compare.refinement import all_trials, plan_stage
from crossover.config.studies import Refinement
from crossover.tables.frames import records

Row = Callable[..., dict[str, Any]]
STUDY = "disc_depth"
BATCHES = (1, 4, 16, 64, 256)
SPREAD = (0.99, 1.0, 1.01, 1.0)
"""Factors on the times of a cell's trials."""


@pytest.fixture
def over_batches(row: Row) -> Callable[..., list[dict[str, Any]]]:
    """The CPU takes 10 us per sample, the GPU 0.1 ms per step, or 0.2 ms for size 3: they cross at batch 10 and 20."""

    def build(sizes: tuple[int, ...] = (2,), batches: tuple[int, ...] = BATCHES) -> list[dict[str, Any]]:
        return [
            row(size=size, batch_size=batch, device=device, trial=trial, step_time_s=seconds * spread)
            for size in sizes
            for batch in batches
            for device, seconds in (("cpu", 1e-5 * batch), ("cuda", 1e-4 * (size - 1)))
            for trial, spread in enumerate(SPREAD, 1)
        ]

    return build


@pytest.fixture
def over_cores(row: Row) -> Callable[..., list[dict[str, Any]]]:
    """A CPU whose speed is proportional to its number of cores, and which is as fast as the GPU on 6 of them."""

    def build(*sides: str, all_cores: int = 16) -> list[dict[str, Any]]:
        threads = {"cpu": all_cores, **{side: int(side.partition("-")[2]) for side in sides}}
        times = {device: 6e-3 / count for device, count in threads.items()} | {"cuda": 1e-3}
        return [
            row(device=device, threads=threads.get(device, all_cores), trial=trial, step_time_s=seconds * spread)
            for device, seconds in times.items()
            for trial, spread in enumerate(SPREAD, 1)
        ]

    return build


def test_a_crossover_over_batches_and_its_series(over_batches: Any) -> None:
    rows = records(crossovers_of(pairings(pd.DataFrame(over_batches((2, 3))), {STUDY: "batch_size"})))
    assert [(row["size"], row["batch_size"], row["status"]) for row in rows] == [
        (2, None, "bracketed"),
        (3, None, "bracketed"),
    ]
    assert [row["crossover"] for row in rows] == pytest.approx([10, 20], rel=0.1)
    assert [(row["bracket_low"], row["bracket_high"]) for row in rows] == [(4, 16), (16, 64)]
    for row in rows:
        assert row["crossover_low"] < row["crossover"] < row["crossover_high"]
        assert row["crossover_size"] is row["crossover_parameters"] is None


def test_refinement_adds_batches_in_the_bracket(over_batches: Any) -> None:
    requests = plan_stage(
        pd.DataFrame(over_batches()), 1, {STUDY: Refinement(first_trials=4)}, {STUDY: "batch_size"}, {STUDY: 8}
    )
    trials, why = all_trials(requests), [request.why for request in requests]
    assert {(cell.size, cell.batch_size, cell.device) for cell in trials} == {(2, 8, "cpu"), (2, 8, "cuda")}
    assert set(map(tuple, trials.values())) == {(1, 2, 3, 4)}
    assert [(line["over"], line["decision"], line["size"]) for line in why] == [("batch_size", "bisect", 2)]


def test_a_crossover_over_the_cores_of_the_cpu(over_cores: Any) -> None:
    (row,) = records(
        crossovers_of(pairings(pd.DataFrame(over_cores("cpu-1", "cpu-4", "cpu-8")), {STUDY: "cpu_threads"}))
    )
    assert (row["status"], row["baseline"], row["contender"]) == ("reversed", "cpu", "cuda")
    assert row["crossover"] == pytest.approx(6, rel=0.02)
    assert (row["bracket_low"], row["bracket_high"]) == (4, 8)
    assert row["crossover_low"] < 6 < row["crossover_high"]
    assert row["trials"] == len(SPREAD)


def test_refinement_adds_a_number_of_cores_and_trials_of_both_sides(over_cores: Any) -> None:
    measured = pd.DataFrame(over_cores("cpu-1", "cpu-4"))

    def plan(stage: int) -> dict[str, list[int]]:
        refinement = Refinement(target_width=1e-4, first_trials=4)
        requests = plan_stage(measured, stage, {STUDY: refinement}, {STUDY: "cpu_threads"}, {STUDY: 8})
        return {cell.device: numbers for cell, numbers in all_trials(requests).items()}

    assert plan(1) == {"cpu-8": [1, 2, 3, 4], "cuda": [1, 2, 3, 4]}
    assert plan(4) == {side: list(range(5, 13)) for side in ("cpu", "cpu-4", "cuda")}


def test_the_interval_of_a_number_of_cores_covers_the_truth() -> None:
    """The trials of the accelerator are common to all numbers of cores, so they are drawn once per simulation."""
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(300):
        truth = np.exp(rng.uniform(np.log(1.5), np.log(12)))
        accelerator = rng.normal(0, 0.05, 4)
        cells = {
            cores: (np.log(truth / cores) + rng.normal(0, 0.05, 4), accelerator) for cores in (1.0, 2.0, 8.0, 16.0)
        }
        crossover = crossover_of(advantages_of_cells(cells, constant=True))
        assert crossover.status == "reversed"
        assert crossover.low is not None
        assert crossover.high is not None
        covered.append(crossover.low <= truth <= crossover.high)
    assert np.mean(covered) >= 0.93  # 95 % minus two standard deviations of 300 draws

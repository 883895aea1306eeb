"""The simulation of devices at their best, and a short version of its part of check_coverage.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from best_coverage import (
    EQUAL,
    NEAR,
    NO_DEVICE,
    BestCase,
    Devices,
    best_coverage_rows,
)
from crossover_coverage import first_grid

from crossover.compare.best import best_series
from crossover.compare.crossovers import crossovers_of
from crossover.config.studies import Refinement
from crossover.tables.frames import records
from report_pages import study


def test_the_true_crossover_is_that_of_the_fastest_candidates() -> None:
    """A second GPU candidate that is e times as fast moves the crossing of two power laws by e^(1 / 0.7)."""
    devices = Devices(BestCase(EQUAL, "power_laws", (1, 2)), np.random.default_rng(3))
    devices.near = 800.0
    assert devices.crossings() == pytest.approx([800], rel=0.01)
    devices.offsets = devices.offsets[0], np.array([[0.0, 0, 1], [-1.0, 0, 1]])
    assert devices.crossings() == pytest.approx([800 * np.exp(-1 / 0.7)], rel=0.01)


def test_without_noise_the_estimate_is_the_true_crossover() -> None:
    devices = Devices(BestCase(NEAR, "power_laws", (2, 3)), np.random.default_rng(1))
    devices.near, devices.spreads = 300.0, (np.full(2, 1e-6), np.full(3, 1e-6))
    devices.measure_first_grid(3, once=True)
    assert {len(candidates[("1",)]) for candidates in devices.measured[0].values()} == {1}
    devices.refine(1, 8, Refinement())
    assert len(devices.measured[0]) == len(first_grid(3)) + 1
    devices.refine(2, 8, Refinement())
    assert devices.crossover().size == pytest.approx(devices.crossings()[0], rel=0.01)


@pytest.mark.parametrize("case", [BestCase(NO_DEVICE, "", (6, 6)), BestCase(EQUAL, "power_laws", (2, 4))])
def test_a_run_estimates_the_simulated_crossover(case: BestCase, row: Callable[..., dict[str, Any]]) -> None:
    candidates = study(
        batch_sizes=(1,),
        protocols=("resident",),
        precisions=("fp32",),
        executions=("eager",),
        candidates={"executions": ["compile"]},
    )
    for seed in range(3):
        devices = Devices(case, np.random.default_rng(seed))
        devices.measure_first_grid(3, once=False)
        trials = [
            row(size=size, device=side, variant=f"candidate-{candidate[0]}", trial=trial, step_time_s=math.exp(log))
            for side, of_sizes in zip(("cpu", "cuda"), devices.measured, strict=True)
            for size, of_candidates in of_sizes.items()
            for candidate, logs in of_candidates.items()
            for trial, log in enumerate(logs, start=1)
        ]
        (series,) = best_series(pd.DataFrame(trials), {"disc_depth": candidates}, {"disc_depth": "size"})
        (run,) = records(crossovers_of(series.pairings()))
        simulated = devices.crossover()
        assert run["status"] == simulated.status
        assert run["caveat_at"] == list(simulated.caveat_at)
        ends = [run["crossover"], run["crossover_low"], run["crossover_high"]]
        assert ends == pytest.approx([simulated.size, simulated.low, simulated.high])


def test_the_interval_contains_the_true_crossover() -> None:
    """With a coverage of 95 %, at most 38 of 46 intervals contain it about once in 400 times."""
    rows = best_coverage_rows(BestCase(EQUAL, "power_laws", (1, 4)), 50, seed=0)
    bracketed = rows[rows["status"] == "bracketed"].set_index("method")
    assert bracketed.loc["ours", "share"] > 0.8
    assert bracketed.loc["ours", "coverage"] > 0.84
    assert abs(bracketed.loc["ours", "error"]) < abs(bracketed.loc["smallest_mean", "error"])


def test_equal_candidates_and_devices_have_no_crossover() -> None:
    rows = best_coverage_rows(BestCase(NO_DEVICE, "", (2, 2)), 40, seed=0)
    ours = rows[rows["method"] == "ours"].set_index("status")
    assert not {"bracketed", "reversed", "multiple", "below_range", "above_range"} & set(ours.index)
    assert ours.loc["undecided", "share"] > 0.85
    assert ours.loc["undecided", "chance"] == pytest.approx(0.5, abs=0.1)

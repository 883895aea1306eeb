"""The simulation itself, and a short version of scripts/check_coverage.py."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from crossover.checks import simulation
from crossover.checks.coverage import (
    INSIDE,
    OUTSIDE,
    PLATEAU,
    TIE,
    Case,
    coverage_rows,
    first_grid,
    first_win,
    medians,
    refine,
    steps_bootstrap,
)
from crossover.checks.simulation import Machine, crossing_at
from crossover.config.studies import Refinement


def quiet(shape: str, crossing: float, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose trials do not vary."""
    monkeypatch.setattr(simulation, "SAMPLE_SD", 0.0)
    monkeypatch.setattr(simulation, "OUTLIER_SHARE", 0.0)
    monkeypatch.setattr(simulation, "PROCESS_SD", (1e-9, 2e-9))
    return Machine(crossing_at(shape, crossing), "lognormal", np.random.default_rng(0))


def test_without_noise_refinement_closes_in_on_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = quiet("launch_floor", 300, monkeypatch)
    table = pd.DataFrame(refine(machine, first_grid(3), 3, Refinement()))
    assert len(set(machine.samples) - set(first_grid(3))) == 2
    errors, widths = (table["size"] / 300 - 1).abs(), table["high"] - table["low"]
    assert errors[2] < min(errors[0] / 5, 1e-3)
    assert widths[2] < widths[0] / 5


def test_trials_vary_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process effects beyond what samples of one process show, which are correlated with each other."""
    machine = Machine(lambda n: np.zeros(len(n)), "lognormal", np.random.default_rng(0))
    machine.measure([1.0], 1000)
    base = machine.samples[1.0][0]
    within = base - np.median(base, axis=1, keepdims=True)
    assert base.shape == (1000, 100)
    assert machine.process_sds[0] == pytest.approx(medians(machine.samples)[1.0][0].std(), rel=0.25)
    assert (within > 0.5).mean() == pytest.approx(0.02, rel=0.2)
    monkeypatch.setattr(simulation, "OUTLIER_SHARE", 0.0)
    machine.measure([2.0], 1000)
    base = machine.samples[2.0][0]
    assert (base[:, 51] - base[:, 50]).std() == pytest.approx(0.05 * np.sqrt(2 * (1 - 0.9)), rel=0.1)


def test_the_common_methods_on_a_machine_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = quiet("power_laws", 300, monkeypatch)
    machine.measure(first_grid(3), 3)
    assert first_win(machine.samples).size == 648
    assert steps_bootstrap(machine.samples, np.random.default_rng(0)).size == pytest.approx(300, rel=1e-3)


@pytest.mark.parametrize(("shape", "trials"), [("launch_floor", 3), ("cache_knee", 5)])
def test_the_set_holds_the_true_crossover(shape: str, trials: int) -> None:
    """Of 75 simulations at 95 %, fewer than 66 occur about once in 250 times."""
    rows = coverage_rows(Case(INSIDE, shape, trials, 3), 75, seed=0)
    found = rows[rows["status"] == "bracketed"].set_index("method")
    assert found.loc["ours", "share"] > 0.8
    assert found.loc["ours", "coverage"] > 0.88
    assert found.loc["ours", "half_width"] < 0.15
    assert found.loc["steps_bootstrap", "coverage"] < 0.7
    assert found.loc["first_win", "error"] > 0.05


@pytest.mark.parametrize("crossing", [OUTSIDE[2], OUTSIDE[3], TIE, PLATEAU])
def test_crossings_are_not_invented(crossing: str) -> None:
    rows = coverage_rows(Case(crossing, "power_laws", 3, 3), 100, seed=0)
    claimed = rows[(rows["method"] == "ours") & rows["status"].isin(["bracketed", "reversed", "multiple"])]
    assert claimed["share"].sum() <= 0.02

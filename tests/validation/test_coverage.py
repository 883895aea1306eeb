"""The simulation, and a short version of check_coverage.py."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import simulation
from crossover_coverage import (
    AT_SIZE,
    INSIDE,
    OUTSIDE,
    PLATEAU,
    TIE,
    Case,
    advantage_of,
    coverage_rows,
    first_grid,
    medians,
    refine,
)
from simulation import SPREADS, Machine, crossing_at

from crossover.config.studies import PRESETS, Refinement
from crossover.topics.answers import read_answers
from report_pages import tables_of


def quiet(shape: str, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose trials do not vary, with its crossover at a size of 300."""
    monkeypatch.setattr(simulation, "SAMPLE_SD", 0.0)
    monkeypatch.setattr(simulation, "OUTLIER_SHARE", 0.0)
    monkeypatch.setattr(simulation, "PROCESS_SD", (1e-9, 2e-9))
    return Machine(crossing_at(shape, 300), "lognormal", np.random.default_rng(0))


def test_without_noise_refinement_converges_to_the_true_crossover(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = quiet("launch_floor", monkeypatch)
    table = pd.DataFrame(refine(machine, first_grid(3), 8, Refinement()))
    assert len(set(machine.samples) - set(first_grid(3))) == 2
    errors, widths = (table["size"] / 300 - 1).abs(), table["high"] - table["low"]
    assert errors[2] < min(errors[0] / 5, 1e-3)
    assert widths[2] < widths[0] / 5


def test_trials_vary_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials differ by more than the samples within a trial, and these are correlated."""
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


def test_sizes_near_the_bracket_get_second_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = quiet("power_laws", monkeypatch)
    refine(machine, first_grid(3), 3, PRESETS["quick"].refinement)
    assert {size: len(sides[0]) for size, sides in machine.samples.items()} == {
        **dict.fromkeys(first_grid(3), 1),
        **dict.fromkeys((72, 216, 648, 1944), 2),  # without noise, no third trial is needed
    }


@pytest.mark.parametrize(("shape", "effort"), [("launch_floor", "quick"), ("cache_knee", "default")])
def test_the_interval_contains_the_true_crossover(shape: str, effort: str) -> None:
    """With a coverage of 95 %, at most 66 of 75 intervals contain it about once in 80 times."""
    rows = coverage_rows(Case(INSIDE, shape, effort), 75, seed=0)
    bracketed = rows[rows["status"] == "bracketed"].set_index("method")
    assert bracketed.loc["ours", "share"] > 0.8
    assert bracketed.loc["ours", "coverage"] > 0.88
    assert bracketed.loc["ours", "half_width"] < 0.15
    assert bracketed.loc["steps_bootstrap", "coverage"] < 0.7
    assert bracketed.loc["first_win", "error"] > 0.05


@pytest.mark.parametrize(
    ("shape", "crossing", "coverage"),
    [
        ("launch_floor, stair of 2", INSIDE, 0.88),
        ("power_laws, stair of 2", AT_SIZE, 0.88),
        ("power_laws, stair of 1.3", INSIDE, 0.8),
        ("steps_of_2", INSIDE, 0.7),
        ("steps_of_1.3", AT_SIZE, 0.5),
    ],
)
def test_stairs_are_covered_by_what_is_printed(shape: str, crossing: str, coverage: float) -> None:
    """The interval takes in the gap with the stair; with steps everywhere, the significant signs do."""
    rows = coverage_rows(Case(crossing, shape, "default", spread="5 to 15 %"), 50, seed=0)
    ours = rows[rows["status"] == "bracketed"].set_index("method").loc["ours"]
    assert ours["share"] > 0.9
    assert ours["printed"] > 0.95
    assert ours["coverage"] > coverage
    assert ours["half_width"] < 0.15


def test_the_sizes_in_a_sentence_enclose_a_stair(row: Callable[..., dict[str, Any]]) -> None:
    """The interval contains about half of these crossovers; the nearest significant sizes follow it in the notes."""
    preset, enclosed = PRESETS["default"], []
    for number in range(6):
        generator = np.random.default_rng(number)
        advantage, true = advantage_of(Case(AT_SIZE, "steps_of_1.3", "default"), generator)
        machine = Machine(advantage, "lognormal", generator, spread=SPREADS["5 to 15 %"])
        refine(machine, first_grid(3), preset.trials, preset.refinement)
        trials = [
            row(size=int(size), parameters=10 * int(size), device=device, trial=trial, step_time_s=math.exp(log))
            for size, sides in medians(machine.samples).items()
            for device, logs in zip(("cpu", "cuda"), sides, strict=True)
            for trial, log in enumerate(logs, start=1)
        ]
        answer = next(one for one in read_answers(tables_of(pd.DataFrame(trials)).answers) if one.main)
        if answer.status == "bracketed":
            printed = " ".join(answer.notes().removeprefix("95 % CI").split("; ")[:2])
            ends = [float(text.replace(",", "")) for text in re.findall(r"\d[\d,.]*", printed)]
            enclosed.append(bool(((min(ends) <= true * 1.001) & (true <= max(ends))).any()))
    assert len(enclosed) >= 5
    assert all(enclosed)


@pytest.mark.parametrize("spread", ["by size, at random", "one size disturbed"])
def test_unequal_spreads_do_not_hide_the_crossover(spread: str) -> None:
    """If single trials did not use the spread at other sizes, only 76 and 62 % of 400 crossovers would be found."""
    rows = coverage_rows(Case(INSIDE, "launch_floor", "quick", spread=spread), 75, seed=0)
    bracketed = rows[rows["status"] == "bracketed"].set_index("method")
    assert bracketed.loc["ours", "share"] > 0.86
    assert bracketed.loc["ours", "coverage"] > 0.88


@pytest.mark.parametrize("minutes", [3.0, 15.0])
def test_the_interval_of_a_run_that_ends_by_its_time_contains_the_true_crossover(minutes: float) -> None:
    """With a coverage of 95 %, at most 66 of 75 intervals contain it about once in 80 times."""
    rows = coverage_rows(Case(INSIDE, "launch_floor", "quick", minutes=minutes), 75, seed=0)
    ours = rows[rows["status"] == "bracketed"].set_index("method").loc["ours"]
    assert ours["share"] > 0.86
    assert ours["coverage"] > 0.88


@pytest.mark.parametrize("crossing", [OUTSIDE[2], OUTSIDE[3], TIE, PLATEAU])
def test_equal_devices_seldom_have_a_crossover(crossing: str) -> None:
    rows = coverage_rows(Case(crossing, "power_laws", "quick"), 100, seed=0)
    claimed = rows[(rows["method"] == "ours") & rows["status"].isin(["bracketed", "reversed", "multiple"])]
    assert claimed["share"].sum() <= 0.02

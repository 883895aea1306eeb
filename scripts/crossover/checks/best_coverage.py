"""How often the interval of a crossover of devices at their best holds the true one, by simulation."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd

from crossover.checks.coverage import SMALLEST, SPAN, first_grid, judged
from crossover.checks.simulation import PROCESS_SD, SHAPES
from crossover.config.studies import Refinement
from crossover.statistics.crossover import Crossover, crossover_of
from crossover.statistics.crossover_curve import Floats, advantages_of_cells
from crossover.statistics.fastest import fastest
from crossover.statistics.refinement import plan_refinement

EQUAL, NEAR, CROSSING, NO_DEVICE = "equal", "near", "crossing", "no_device"
"""Ways that take the same time; that differ by some percent; whose order changes with the size; and A/A: ways and
devices all take the same."""
GAP_SD, MOST_TILT = 0.03, 0.3
"""Standard deviation of the gap between ways, in ln(seconds), and the most that it changes by over ln(size)."""
FACTOR = 3
FINE: Floats = np.geomspace(SMALLEST, SMALLEST * SPAN, 4001)
"""Sizes among which the true crossover is looked for."""


@dataclass(frozen=True)
class BestCase:
    """One setting to simulate."""

    differ: str
    shape: str
    ways: tuple[int, int]
    """Of the CPU and of the GPU."""
    trials: int


def best_cases() -> list[BestCase]:
    """All settings; those without a crossing last."""
    counts = ((2, 2), (1, 4), (2, 3), (4, 4), (6, 6))
    inside = [
        BestCase(differ, shape, ways, trials)
        for differ in (EQUAL, NEAR, CROSSING)
        for shape in ("power_laws", "launch_floor")
        for ways in counts
        for trials in (3, 5)
    ]
    return inside + [BestCase(NO_DEVICE, "", (2, 2), trials) for trials in (3, 5)]


@dataclass
class Devices:
    """Two devices with several ways each, which draw their trials when asked."""

    case: BestCase
    generator: np.random.Generator
    near: float = 0.0
    """The size where both devices' first ways take the same time."""
    offsets: tuple[Floats, ...] = ()
    """Of each device (gap, tilt, size without a gap) of each way, of shape (ways, 3)."""
    spreads: tuple[Floats, ...] = ()
    """Of each device the standard deviation between the trials of each way, in ln(seconds)."""
    logs: dict[int, tuple[list[Floats], ...]] = field(default_factory=dict)
    """ln(seconds) by size, of each device and way."""

    def __post_init__(self) -> None:
        draw = self.generator
        low, high = map(math.log, PROCESS_SD)
        ends = math.log(SMALLEST * 1.5), math.log(SMALLEST * SPAN / 1.5)
        self.near = math.exp(draw.uniform(*ends))
        self.spreads = tuple(np.exp(draw.uniform(low, high, count)) for count in self.case.ways)
        self.offsets = tuple(
            np.column_stack(
                [
                    draw.normal(0, GAP_SD, count) * (self.case.differ in (NEAR, CROSSING)),
                    draw.uniform(-MOST_TILT, MOST_TILT, count) * (self.case.differ == CROSSING),
                    draw.uniform(*ends, count),
                ]
            )
            for count in self.case.ways
        )

    def true_logs(self, device: int, sizes: Floats) -> Floats:
        """The true ln(seconds) of a device's ways, of shape (ways, sizes)."""
        gap, tilt, without = self.offsets[device].T[:, :, None]
        base = np.zeros(len(sizes))
        if device == 0 and self.case.differ != NO_DEVICE:
            curve = SHAPES[self.case.shape]
            base = curve(sizes) - curve(np.array([self.near]))
        found: Floats = base + gap + tilt * (np.log(sizes) - without)
        return found

    def crossings(self) -> Floats:
        """Where the devices' true fastest times cross; empty where they take the same."""
        best = [self.true_logs(device, FINE).min(axis=0) for device in (0, 1)]
        ahead = best[0] - best[1] > 0
        found: Floats = FINE[:-1][ahead[1:] != ahead[:-1]]
        return found

    def measure(self, size: int, trials: int) -> None:
        """Measure until every way has this many trials at a size."""
        empty = tuple([np.empty(0)] * count for count in self.case.ways)
        own, logs = self.logs.get(size, empty), []
        for device, ways in enumerate(own):
            truth = self.true_logs(device, np.array([float(size)]))[:, 0]
            new = [self.generator.standard_normal(trials - len(way)) for way in ways]
            parts = zip(ways, truth, self.spreads[device], new, strict=True)
            logs.append([np.concatenate([way, mean + sd * drawn]) for way, mean, sd, drawn in parts])
        self.logs[size] = tuple(logs)
        self.logs = dict(sorted(self.logs.items()))

    def found(self, *, corrected: bool = True) -> Crossover:
        """The crossover of the fastest ways; without the correction, as they were measured."""
        cells = {}
        for size, devices in self.logs.items():
            best = [fastest(ways) for ways in devices]
            baseline, contender = (one.logs - (0.0 if corrected else one.optimism) for one in best)
            cells[float(size)] = baseline, contender
        return crossover_of(advantages_of_cells(cells))


def simulate_best(case: BestCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row a simulation and method, after refinement: status, whether it holds the truth, and its width.

    `chance` is the mean chance of the first way of the first device, of all sizes.
    """
    rows = []
    for number in range(simulations):
        generator = np.random.default_rng([seed, number, *(ord(letter) for letter in str(case))])
        devices, refinement = Devices(case, generator), Refinement()
        for size in first_grid(FACTOR):
            devices.measure(size, case.trials)
        for stage in range(1, refinement.bisections + 2):
            plan = plan_refinement(devices.found(), {*devices.logs}, stage, case.trials, refinement)
            for size, wanted in [*((size, case.trials) for size in plan.sizes), *plan.trials.items()]:
                devices.measure(size, wanted)
        chance = float(np.mean([fastest(ways[0]).chances[0] for ways in devices.logs.values()]))
        true = devices.crossings()
        for method, corrected in (("ours", True), ("smallest_mean", False)):
            rows.append({"method": method, "chance": chance} | judged(devices.found(corrected=corrected), true))
    return pd.DataFrame(rows)


def best_coverage_rows(case: BestCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row a method and status: their share of the simulations, and how often the interval held the truth."""
    found = simulate_best(case, simulations, seed)
    groups = found.groupby(["method", "status"])
    table = groups.agg(
        coverage=("held", "mean"),
        half_width=("half_width", "median"),
        error=("error", "median"),
        chance=("chance", "mean"),
    )
    table.insert(0, "share", groups.size().to_numpy() / simulations)
    return pd.DataFrame([asdict(case)]).merge(table.reset_index(), how="cross")

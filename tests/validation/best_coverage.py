"""Simulate crossovers of devices at their best, for the coverage of their interval."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from itertools import product

import numpy as np
import pandas as pd
from crossover_coverage import SMALLEST, SPAN, coverage_table, first_grid, judged
from simulation import PROCESS_SD, SHAPES

from crossover.compare.best import Candidate, CandidatesAtSizes
from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossover_curve import advantages_of_cells
from crossover.compare.intervals import Floats
from crossover.compare.refinement import plan_refinement, trials_of_candidates
from crossover.config.studies import PRESETS, Refinement

EQUAL, NEAR, CROSSING, NO_DEVICE = "equal", "near", "crossing", "no_device"
"""How candidates differ; with NO_DEVICE, all candidates of both devices take the same time."""
GAP_SD, MOST_TILT = 0.03, 0.3
"""Standard deviation of a candidate's offset in ln(seconds), and the maximum change of the offset per ln(size)."""
FIRST: Candidate = ("0",)
"""The first candidate of each device, which is in the study's grid."""
FACTOR = 3
FINE: Floats = np.geomspace(SMALLEST, SMALLEST * SPAN, 4001)
"""Sizes among which the true crossover is searched for."""


@dataclass(frozen=True)
class BestCase:
    differ: str
    shape: str
    candidates: tuple[int, int]
    """Numbers of candidates of the CPU and of the GPU."""
    effort: str = "default"


def best_cases() -> list[BestCase]:
    """Those without a crossover come last."""
    counts = ((2, 2), (1, 4), (2, 3), (4, 4), (6, 6))
    inside = [
        BestCase(differ, shape, candidates)
        for differ in (EQUAL, NEAR, CROSSING)
        for shape in ("power_laws", "launch_floor")
        for candidates in counts
    ]
    return inside + [BestCase(NO_DEVICE, "", candidates) for candidates in ((2, 2), (6, 6))]


@dataclass
class Devices:
    """Two simulated devices with several candidates each, whose trials are drawn on demand."""

    case: BestCase
    generator: np.random.Generator
    near: float = 0.0
    """The size at which both devices take the same time, apart from the offsets of their candidates."""
    offsets: tuple[Floats, ...] = ()
    """For each device, the offsets of its candidates, of shape (candidates, 3): a gap in ln(seconds), its change per
    ln(size), and the ln(size) at which there is no change."""
    spreads: tuple[Floats, ...] = ()
    """For each device, the standard deviation between the trials of each candidate, in ln(seconds)."""
    measured: tuple[dict[int, dict[Candidate, Floats]], ...] = field(default_factory=lambda: ({}, {}))
    """ln(seconds) of each device by size and candidate."""

    def __post_init__(self) -> None:
        draw = self.generator
        low, high = map(math.log, PROCESS_SD)
        ends = math.log(SMALLEST * 1.5), math.log(SMALLEST * SPAN / 1.5)
        self.near = math.exp(draw.uniform(*ends))
        self.spreads = tuple(np.exp(draw.uniform(low, high, count)) for count in self.case.candidates)
        self.offsets = tuple(
            np.column_stack(
                [
                    draw.normal(0, GAP_SD, count) * (self.case.differ in (NEAR, CROSSING)),
                    draw.uniform(-MOST_TILT, MOST_TILT, count) * (self.case.differ == CROSSING),
                    draw.uniform(*ends, count),
                ]
            )
            for count in self.case.candidates
        )

    def true_logs(self, device: int, sizes: Floats) -> Floats:
        """The true ln(seconds) of a device's candidates, of shape (candidates, sizes)."""
        gap, tilt, without = self.offsets[device].T[:, :, None]
        base = np.zeros(len(sizes))
        if device == 0 and self.case.differ != NO_DEVICE:
            curve = SHAPES[self.case.shape]
            base = curve(sizes) - curve(np.array([self.near]))
        logs: Floats = base + gap + tilt * (np.log(sizes) - without)
        return logs

    def crossings(self) -> Floats:
        """The sizes at which the devices' true fastest times cross."""
        best = [self.true_logs(device, FINE).min(axis=0) for device in (0, 1)]
        ahead = best[0] - best[1] > 0
        sizes: Floats = FINE[:-1][ahead[1:] != ahead[:-1]]
        return sizes

    def measure(self, device: int, size: int, candidate: Candidate, trials: int) -> None:
        """Measure until a device's candidate has this many trials at a size."""
        candidates = self.measured[device].setdefault(size, {})
        index, old = int(candidate[0]), candidates.get(candidate, np.empty(0))
        truth = self.true_logs(device, np.array([float(size)]))[index, 0]
        new = self.spreads[device][index] * self.generator.standard_normal(max(0, trials - len(old)))
        candidates[candidate] = np.concatenate([old, truth + new])

    def measure_first_grid(self, first: int, *, once: bool) -> None:
        """Measure every candidate `first` times at each size; with `once`, all but a device's first candidate once."""
        for size, (device, count) in product(first_grid(FACTOR), enumerate(self.case.candidates)):
            for candidate in range(count):
                self.measure(device, size, (str(candidate),), 1 if once and candidate else first)

    @property
    def at_sizes(self) -> tuple[CandidatesAtSizes, ...]:
        """The candidates of each device, as measured so far."""
        return tuple(CandidatesAtSizes(dict(sorted(by_size.items()))) for by_size in self.measured)

    def refine(self, stage: int, trials: int, refinement: Refinement) -> None:
        """Measure what the plan of a refinement stage adds, for the candidates that may be the fastest."""
        crossover = self.crossover()
        plan = plan_refinement(crossover, {*self.measured[0]}, stage, trials, refinement)
        for device, candidates in enumerate(self.at_sizes):
            for (candidate, size), numbers in trials_of_candidates(
                candidates, plan, crossover, refinement.first(trials)
            ).items():
                self.measure(device, size, candidate, max(numbers, default=0))

    def crossover(self, *, corrected: bool = True) -> Crossover:
        """The crossover of the fastest candidates, with or without the correction for selection bias."""
        sides = [device.best_logs() for device in self.at_sizes]
        if not corrected:
            sides = [
                {size: device.logs[size][device.at_best[size][0]] for size in side}
                for device, side in zip(self.at_sizes, sides, strict=True)
            ]
        baseline, contender = sides
        common = [size for size in baseline if size in contender]
        return crossover_of(advantages_of_cells({float(size): (baseline[size], contender[size]) for size in common}))


def simulate_best(case: BestCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row per simulation and method, with the columns of `judged` after refinement, and `chance`.

    `chance` is the estimated probability that the first device's first candidate is its fastest, a mean over sizes.
    """
    rows = []
    for number in range(simulations):
        generator = np.random.default_rng([seed, number, *(ord(letter) for letter in str(case))])
        devices, preset = Devices(case, generator), PRESETS[case.effort]
        trials, refinement = preset.trials, preset.refinement
        devices.measure_first_grid(refinement.first(trials), once=case.differ != NO_DEVICE)
        for stage in range(1, refinement.bisections + len(refinement.trials_of_stages(trials)) + 1):
            devices.refine(stage, trials, refinement)
        first = [best[2].get(FIRST, 0.0) for best in devices.at_sizes[0].at_best.values()]
        chance = float(np.mean(first))
        true = devices.crossings()
        for method, corrected in (("ours", True), ("smallest_mean", False)):
            rows.append({"method": method, "chance": chance} | judged(devices.crossover(corrected=corrected), true))
    return pd.DataFrame(rows)


def best_coverage_rows(case: BestCase, simulations: int, seed: int) -> pd.DataFrame:
    """Simulate a case; returns `coverage_table`, with the mean of `chance`."""
    return coverage_table(asdict(case), simulate_best(case, simulations, seed), chance=("chance", "mean"))

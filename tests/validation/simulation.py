"""A simulated machine with a known crossover: the curves of two sides, and trials that vary like real ones."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import signal

from crossover.compare.intervals import Floats
from crossover.config.options import new_parser

SAMPLES = 100
"""Samples of a trial; the estimator takes their median."""
CORRELATION = 0.9
"""Correlation of neighbouring samples of a process."""
SAMPLE_SD = 0.05
OUTLIER_SHARE = 0.02
PROCESS_SD = (0.02, 0.10)
"""Range of the standard deviation between a cell's trials, on the log scale, drawn for each side."""
NOISES = ("lognormal", "heavy_tailed", "outliers")
"""Log-normal; a t distribution with 3 degrees of freedom; or 1 in 20 takes 30 % longer."""
MIDDLE = 130
"""The middle of the sizes that are simulated, on the log scale."""


@dataclass(frozen=True)
class Spread:
    """Standard deviations between the trials of a cell, on the log scale, and the drift of the machine."""

    sides: tuple[tuple[float, float], tuple[float, float]] = field(default_factory=lambda: (PROCESS_SD, PROCESS_SD))
    """Range of each side's standard deviation between trials."""
    over_sizes: float = 1.0
    """Each cell's standard deviation is multiplied by a random factor, at most this many times the smallest one."""
    exponent: float = 0.0
    """The standard deviation is also multiplied by (size / MIDDLE)^exponent."""
    disturbed: float = 1.0
    """The standard deviation at one of the sizes measured first is also multiplied by this factor."""
    drift: tuple[float, float] = (0.0, 0.0)
    """Range of the standard deviation of a random walk's steps, by which all times change from round to round."""
    drifts_together: bool = False


DRIFT = (0.01, 0.05)
SPREADS: Mapping[str, Spread] = {
    "2 to 10 %": Spread(),
    "5 to 15 %": Spread(((0.05, 0.15), (0.05, 0.15))),
    "2 to 25 %": Spread(((0.02, 0.25), (0.02, 0.25))),
    "25 %": Spread(((0.25, 0.25), (0.25, 0.25))),
    "3 and 9 %": Spread(((0.03, 0.03), (0.09, 0.09))),
    "by size, at random": Spread(over_sizes=3),
    "falling with the size": Spread(exponent=-0.2),
    "one size disturbed": Spread(disturbed=5),
    "drift of both sides": Spread(drift=DRIFT, drifts_together=True),
    "drift of each side": Spread(drift=DRIFT),
}
"""How trials differ, by name. Over the sizes, which span a factor of 260, an exponent of -0.2 is a factor of 3."""


def _launch_floor(n: Floats) -> Floats:
    """The GPU's time is constant up to a size of about 1500, where launches dominate; the CPU's is a power law."""
    return 1.3 * np.log(n) - np.log1p((n / 1500) ** 1.5)


def _cache_knee(n: Floats) -> Floats:
    """The CPU slows down around size 300, where data exceed its cache; the GPU's time is linear, with an offset."""
    return np.log(n) + 0.8 / 6 * np.log1p((n / 300) ** 6) - np.log1p(n / 1000)


def _power_laws(n: Floats) -> Floats:
    return 0.7 * np.log(n)


def _shallow(n: Floats) -> Floats:
    """Two power laws that hardly differ, like two precisions on one device."""
    return 0.3 * np.log(n)


def _tile_steps(n: Floats) -> Floats:
    """The GPU computes whole tiles of 64, so its time climbs in steps."""
    return 1.2 * np.log(n) - np.log(1 + 0.03 * np.ceil(n / 64))


def _bending(n: Floats) -> Floats:
    """The slope over ln(size) grows with size."""
    return 0.25 * np.log(n) + 0.05 * np.log(n) ** 2


SHAPES: Mapping[str, Callable[[Floats], Floats]] = {
    "launch_floor": _launch_floor,
    "cache_knee": _cache_knee,
    "power_laws": _power_laws,
    "shallow": _shallow,
    "tile_steps": _tile_steps,
    "bending": _bending,
}
"""ln(baseline time / contender time) as a function of size, by shape; adding a constant moves the crossing."""
KINKS: Mapping[str, tuple[float, float]] = {"kink_up": (0.25, 1.6), "kink_down": (1.6, 0.25)}
"""Curves with a knee at the crossing, the most difficult place: slopes over ln(size) below and above it."""
STEPS: Mapping[str, float] = {"steps_of_1.3": 1.3, "steps_of_2": 2.0}
"""Curves with steps of this factor in size, narrower than the gap between two sizes; one step is at the crossing."""
STAIRS: Mapping[str, tuple[str, float]] = {
    f"{shape}, stair of {factor:g}": (shape, factor)
    for shape in ("launch_floor", "power_laws", "shallow")
    for factor in (1.3, 2.0)
}
"""Curves of SHAPES with a single stair at the crossing, where the ratio of the times rises by this factor."""


@dataclass
class Machine:
    """A simulated machine, whose trials are drawn on demand."""

    advantage: Callable[[Floats], Floats]
    """The true ln(baseline time / contender time)."""
    noise: str
    generator: np.random.Generator
    samples: dict[float, tuple[Floats, Floats]] = field(default_factory=dict)
    """ln(seconds) by size, of shape (trials, samples): the baseline's, the contender's."""
    spread: Spread = field(default_factory=Spread)
    sds_of_sizes: dict[float, Floats] = field(default_factory=dict)
    """Standard deviation between trials of both sides, by size."""
    walk: Floats = field(default_factory=lambda: np.empty((0, 2)))
    """The drift of ln(seconds) of both sides in each round so far."""

    def __post_init__(self) -> None:
        low, high = np.log(self.spread.sides).T
        self.process_sds = np.exp(self.generator.uniform(low, high, size=2))

    def measure(self, sizes: Sequence[float], trials: int) -> None:
        """Measure until each of the sizes has this many trials on both sides, the missing ones round by round."""
        self._draw_spreads(sizes)
        nothing = np.empty((0, SAMPLES))
        before = {size: self.samples.get(size, (nothing, nothing)) for size in sizes}
        drift = self._next_rounds(max((trials - len(old) for old, _ in before.values()), default=0))
        for size, sides in before.items():
            truth = float(self.advantage(np.array([size]))[0]), 0.0
            new = trials - len(sides[0])
            self.samples[size] = tuple(
                np.concatenate([old, mean + rounds[:new, None] + self._trials(new, sd)])
                for old, mean, rounds, sd in zip(sides, truth, drift.T, self.sds_of_sizes[size], strict=True)
            )
        self.samples = dict(sorted(self.samples.items()))

    def _draw_spreads(self, sizes: Sequence[float]) -> None:
        spread, reach = self.spread, math.log(self.spread.over_sizes) / 2
        disturbed = self.generator.choice(sizes) if spread.disturbed > 1 and not self.samples else None
        for size in sizes:
            if size not in self.sds_of_sizes:
                factor = np.exp(self.generator.uniform(-reach, reach, 2)) if reach else 1.0
                factor *= (size / MIDDLE) ** spread.exponent * (spread.disturbed if size == disturbed else 1.0)
                self.sds_of_sizes[size] = self.process_sds * factor

    def _next_rounds(self, count: int) -> Floats:
        """The drift of ln(seconds) in each of the next rounds, of shape (rounds, sides)."""
        if not any(self.spread.drift) or not count:
            return np.zeros((count, 2))
        if not len(self.walk):
            self.drift_sd = self.generator.uniform(*self.spread.drift)
        sides = 1 if self.spread.drifts_together else 2
        steps = self.generator.normal(0, self.drift_sd, (count, sides)).cumsum(axis=0)
        rounds: Floats = steps - steps.mean(axis=0) if not len(self.walk) else self.walk[-1, :sides] + steps
        rounds = np.broadcast_to(rounds, (count, 2))
        self.walk = np.concatenate([self.walk, rounds])
        return rounds

    @property
    def mean_drift(self) -> float:
        """The mean drift of ln(baseline time / contender time) over the rounds so far."""
        return float((self.walk[:, 0] - self.walk[:, 1]).mean()) if len(self.walk) else 0.0

    def _trials(self, count: int, process_sd: float) -> Floats:
        """Deviations of new trials' samples from the true value, on the log scale."""
        draw = self.generator
        process = draw.standard_normal((count, 1))
        if self.noise == "heavy_tailed":
            process = draw.standard_t(3, (count, 1)) / math.sqrt(3)
        process *= process_sd
        if self.noise == "outliers":
            process += 0.3 * (draw.random((count, 1)) < 0.05)
        steps = draw.standard_normal((count, SAMPLES))
        steps[:, 1:] *= math.sqrt(1 - CORRELATION**2)
        within = SAMPLE_SD * signal.lfilter([1], [1, -CORRELATION], steps, axis=1)
        deviations: Floats = process + within + math.log(2) * (draw.random((count, SAMPLES)) < OUTLIER_SHARE)
        return deviations


def crossing_at(shape: str, size: float) -> Callable[[Floats], Floats]:
    """The curve of a shape, a kink or stairs, shifted so that the faster side changes at `size`."""
    if shape in STAIRS:
        base, factor = STAIRS[shape]
        smooth = crossing_at(base, size)
        return lambda n: smooth(n) + math.log(factor) * (np.where(n < size, 0.0, 1.0) - 0.5)
    if shape in STEPS:
        width = math.log(STEPS[shape])
        return lambda n: 0.6 * width * (np.floor(np.log(n / size) / width) + 0.5)
    if shape in KINKS:
        below, above = KINKS[shape]
        return lambda n: np.where(n < size, below, above) * np.log(n / size)
    curve = SHAPES[shape]
    offset = float(curve(np.array([size]))[0])
    return lambda n: curve(n) - offset


def true_crossings(advantage: Callable[[Floats], Floats], near: float) -> Floats:
    """All sizes within a factor of 2 of `near` at which the advantage changes its sign."""
    sizes = near * np.exp(np.linspace(-math.log(2), math.log(2), 2001))
    signs = advantage(sizes) > 0
    crossings: Floats = sizes[:-1][signs[1:] != signs[:-1]]
    return crossings


def simulation_options(doc: str, arguments: Sequence[str], simulations: int, output: str) -> argparse.Namespace:
    """Parse the options of a check that simulates cases; `doc` is its docstring, the last two are defaults."""
    parser = new_parser(doc)
    parser.add_argument("--simulations", default=simulations, type=int, help="number for each case")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--processes", default=os.cpu_count(), type=int)
    parser.add_argument("--output", default=Path(output), type=Path)
    return parser.parse_args(arguments)


def simulate_cases(
    rows_of: Callable[..., pd.DataFrame], cases: Iterable[Any], options: argparse.Namespace
) -> pd.DataFrame:
    """Simulate all cases in several processes; `rows_of` returns the rows of a case, given `simulations` and `seed`."""
    # Each process has one core; a second thread of the numerical libraries would only wait for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(options.processes) as pool:
        rows = pool.map(partial(rows_of, simulations=options.simulations, seed=options.seed), cases)
        return pd.concat(rows, ignore_index=True)

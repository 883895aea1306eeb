"""Table `crossovers`: crossovers of devices, precisions, executions and machines, in each cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import chain, compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crossover.compare.best import CandidatesByStudy, best_series, of_own_grid
from crossover.compare.crossover import Crossover, spanned
from crossover.compare.intervals import ENDS
from crossover.compare.pairings import Pairing, StepsOfRuns, XAxes, pairings
from crossover.config.words import X_AXES
from crossover.tables.frames import device_name_of
from crossover.tables.registry import COSTS
from crossover.tables.run_tables import table_of

WITHOUT_CROSSOVER = ("settings", "protocol")
"""The pairs that have ratios only."""


def crossovers_of(
    measurements: pd.DataFrame,
    x_axes: XAxes,
    prices: Mapping[str, float] | None = None,
    candidates: CandidatesByStudy | None = None,
    runs: StepsOfRuns | None = None,
) -> pd.DataFrame:
    """Table `crossovers` of all pairings of these trials, those of devices at their best last."""
    pairs = [*pairings(of_own_grid(measurements, candidates or {}), x_axes, prices, runs)]
    at_best = (series.pairings() for series in best_series(measurements, candidates or {}, x_axes))
    return table_of_lines(lines_of([*pairs, *chain(*at_best)], x_axes))


@dataclass(frozen=True)
class Line:
    """A row of table `crossovers`: a pair of sides in a series, and the cost in which they are compared."""

    pairing: Pairing
    cost: str
    others: tuple[Pairing, ...] = ()
    """Further estimates of the same crossover, which differ from `pairing` only in their costs."""

    def p_value(self) -> float | None:
        """The p-value of the hypothesis that the sides do not differ anywhere, from the estimate that differs least.

        It is NaN if there are no intervals, and None if no size has a time on both sides.
        """
        of_estimates = [estimate.advantages(self.cost, estimate.x_axis) for estimate in (self.pairing, *self.others)]
        return max((advantages.p_value() for advantages in of_estimates if len(advantages.sizes)), default=None)

    def crossover(self, together: int) -> Crossover:
        """The crossover that covers all estimates; `together` is as for `Advantages`."""
        estimates = [
            estimate.crossover(self.cost, estimate.x_axis, together) for estimate in (self.pairing, *self.others)
        ]
        return reduce(partial(spanned, by_bracket=self.trials == 1), estimates)

    @cached_property
    def trials(self) -> int:
        """The smallest number of trials with a cost, of a side at a point; 0 without any."""
        trials = self.pairing.trials
        cells = zip(trials[self.pairing.x_axis].tolist(), trials["side"].tolist(), strict=True)
        return min(Counter(compress(cells, trials[self.cost].notna().tolist())).values(), default=0)


def lines_of(pairs: Iterable[Pairing], x_axes: XAxes) -> list[Line]:
    """One line per pairing along a study's x axis and cost that has values; a headline always has one for time."""
    return [
        Line(pairing, cost)
        for pairing in pairs
        if pairing.pair not in WITHOUT_CROSSOVER and pairing.x_axis == x_axes[pairing.study]
        for cost in COSTS
        if (pairing.is_headline and cost == "time") or (pairing.contender and pairing.trials[cost].notna().any())
    ]


def table_of_lines(lines: Iterable[Line], together: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Table `crossovers`; `together` has each study's number of comparisons to correct for, by default 1."""
    rows = [_row(line, line.crossover((together or {}).get(line.pairing.study, 1))) for line in lines]
    return table_of("crossovers", rows)


class Interpolation:
    """Log-log interpolation from x to y, exact at the points and constant beyond them."""

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        points = np.stack([np.asarray(x, float), np.asarray(y, float)], axis=1)
        points = points[(points > 0).all(axis=1)]
        # Of several points with the same x, the first counts.
        self.y_of: dict[float, float] = dict(sorted(dict(points[::-1].tolist()).items()))
        self.log_x, self.log_y = np.log([*self.y_of]), np.log([*self.y_of.values()])

    def __call__(self, x: float | None) -> float | None:
        if x is None or len(self.log_x) == 0:
            return None
        if x in self.y_of:
            return self.y_of[x]
        return float(np.exp(np.interp(np.log(x), self.log_x, self.log_y)))


def _row(line: Line, crossover: Crossover) -> dict[str, Any]:
    pairing, cost = line.pairing, line.cost
    trials, x_axis = pairing.trials, pairing.x_axis
    x = trials[x_axis]
    low, high = crossover.bracket or (None, None)
    sure_low, sure_high = crossover.sure or (None, None)
    unknown = _unknown_side(pairing, cost)
    baseline_device = pairing.device if pairing.contender != pairing.device else pairing.baseline
    row: dict[str, Any] = {
        **pairing.series,
        "pair": pairing.pair,
        "cost": cost,
        "device": pairing.device,
        "baseline": pairing.baseline,
        "baseline_machine": pairing.baseline_machine,
        "contender": pairing.contender,
        "x_axis": x_axis,
        "second_axis": False,
        "status": crossover.status,
        "caveat": unknown or crossover.caveat,
        "caveat_at": [] if unknown else list(crossover.caveat_at),
        "crossover": crossover.size,
        "crossover_low": crossover.low,
        "crossover_high": crossover.high,
        "bracket_low": low,
        "bracket_high": high,
        "slower_up_to": crossover.slower_up_to,
        "faster_from": crossover.faster_from,
        "sure_low": sure_low,
        "sure_high": sure_high,
        "roots": list(crossover.roots),
        "trials": line.trials,
        "size_name": trials["size_name"].iloc[0],
        "baseline_name": _device_name(trials, pairing.baseline_machine, baseline_device),
        "contender_name": _device_name(trials, pairing.series["machine"], pairing.device),
    }
    to_size, to_parameters = Interpolation(x, trials["size"]), Interpolation(x, trials["parameters"])
    for end in ENDS if X_AXES[x_axis] == "size" else ():
        row[f"crossover_size{end}"] = to_size(row[f"crossover{end}"])
        row[f"crossover_parameters{end}"] = to_parameters(row[f"crossover{end}"])
    return row


def _unknown_side(pairing: Pairing, cost: str) -> str | None:
    """The caveat for a side that has times but no value of this cost."""
    sides = pairing.trials["side"].to_numpy(object)
    is_timed, is_known = (pairing.trials[column].notna().to_numpy() for column in ("time", cost))
    for word, side in (("baseline_unknown", pairing.baseline), ("contender_unknown", pairing.contender)):
        of_side = sides == side
        if is_timed[of_side].any() and not is_known[of_side].any():
            return word
    return None


def _device_name(line: pd.DataFrame, machine: object, device: str | None) -> str | None:
    of_device = (line["machine"].to_numpy(object) == machine) & (line["device"].to_numpy(object) == device)
    return device_name_of(line["device_name"].to_numpy(object)[of_device])

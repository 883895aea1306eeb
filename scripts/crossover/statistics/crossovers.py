"""Table `crossovers`: crossovers of devices, precisions, executions and machines, in each cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crossover.config.study import Epochs, steps_of_run
from crossover.config.words import CPU_THREADS, X_AXES
from crossover.statistics.best import CandidatesByStudy, best_series, of_own_grid
from crossover.statistics.cells import SECONDS_PER_HOUR, hourly_price, numbers_of
from crossover.statistics.crossover import Crossover, crossover_of, estimate_crossover
from crossover.statistics.crossover_curve import Advantages, advantages_of_table
from crossover.statistics.intervals import CLOCK_RESOLUTION, ENDS, RESOLUTIONS
from crossover.statistics.pairings import Pairing, XAxes, machine_pairings, pairings
from crossover.statistics.payback import startups_of
from crossover.tables.frames import device_name_of, with_ok_times
from crossover.tables.registry import COSTS
from crossover.tables.run_tables import table_of

StepsOfRuns = Mapping[str, int | Epochs | None]
"""The key `steps_per_run` of each study."""


def crossovers_of(
    measurements: pd.DataFrame,
    x_axes: XAxes,
    prices: Mapping[str, float] | None = None,
    candidates: CandidatesByStudy | None = None,
    runs: StepsOfRuns | None = None,
) -> pd.DataFrame:
    """Table `crossovers` of `lines_of`, which has the same arguments."""
    return table_of_lines(lines_of(measurements, x_axes, prices, candidates, runs))


@dataclass(frozen=True)
class Line:
    """A row of table `crossovers`: a pair of sides in a series, and the cost in which they are compared."""

    pairing: Pairing
    cost: str

    @property
    def study(self) -> str:
        return str(self.pairing.series["study"])

    def p_value(self) -> float | None:
        """The p-value of the hypothesis that the sides do not differ anywhere.

        It is NaN if there are no intervals, and None if no size has a time on both sides.
        """
        return self._advantages.p_value() if len(self._advantages.sizes) else None

    def row(self, together: int) -> dict[str, Any]:
        """The row of table `crossovers`; `together` is as for `estimate_crossover`."""
        return _row(self, self._crossover(together))

    def _crossover(self, together: int) -> Crossover:
        if self.pairing.contender is None:
            return Crossover("no_accelerator")
        return crossover_of(replace(self._advantages, together=together))

    @cached_property
    def _advantages(self) -> Advantages:
        return _advantages(self.pairing, self.pairing.x_axis, self.cost)


def lines_of(
    measurements: pd.DataFrame,
    x_axes: XAxes,
    prices: Mapping[str, float] | None = None,
    candidates: CandidatesByStudy | None = None,
    runs: StepsOfRuns | None = None,
) -> list[Line]:
    """One line per series, pair and cost that has values; a headline pair always has one for time.

    `prices` is as for `hourly_price`; `candidates` and `runs` (steps per run) are by study.
    """
    priced = with_costs(of_own_grid(measurements, candidates or {}), prices, runs)
    at_best = (series.pairings() for series in best_series(measurements, candidates or {}, x_axes))
    return [
        Line(pairing, cost)
        for pairing in chain(pairings(priced, x_axes), machine_pairings(priced, x_axes), *at_best)
        for cost in COSTS
        if (pairing.is_headline and cost == "time") or (pairing.contender and pairing.trials[cost].notna().any())
    ]


def table_of_lines(lines: Iterable[Line], together: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Table `crossovers`; `together` has each study's number of comparisons to correct for, by default 1."""
    return table_of("crossovers", [line.row((together or {}).get(line.study, 1)) for line in lines])


def with_costs(
    measurements: pd.DataFrame, prices: Mapping[str, float] | None, runs: StepsOfRuns | None = None
) -> pd.DataFrame:
    """Add a column for each of COSTS: seconds, joules and money per step, and seconds per run.

    All costs are NaN for a trial that is not ok. Energy is also NaN if its counter did not change, money if there is no
    price, and the time of a run if `steps_per_run` or the start-up is unknown.
    """
    ok = measurements["status"] == "ok"
    joules = pd.to_numeric(measurements["energy_per_step_j"]).astype(float)
    time_s = pd.to_numeric(measurements["step_time_s"]).astype(float).where(ok)
    sides = [*zip(measurements["machine"], measurements["device"], strict=True)]
    prices_of = {side: hourly_price(prices or {}, *side) for side in set(sides)}
    return measurements.assign(
        time=time_s,
        energy=joules.where(ok & (joules > 0)),
        money=time_s / SECONDS_PER_HOUR * np.array([prices_of[side] for side in sides], dtype=float),
        run=_run_times(measurements, runs or {}).where(ok),
    )


def _run_times(measurements: pd.DataFrame, runs: StepsOfRuns) -> pd.Series:
    of_runs = measurements[measurements["study"].isin([study for study, steps in runs.items() if steps])]
    keys = zip(of_runs["study"], of_runs["batch_size"], strict=True)
    steps = np.array([steps_of_run(runs[study], batch_size) for study, batch_size in keys], dtype=float)
    times_s = startups_of(of_runs) + steps * numbers_of(of_runs["step_time_s"])
    return pd.Series(times_s, of_runs.index, dtype=float).reindex(measurements.index)


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


def crossover_of_pairing(pairing: Pairing, x: str) -> Crossover:
    """The crossover of a pairing in the time of a step, over column `x` of its trials."""
    return estimate_crossover(_over(pairing, x, "step_time_s"), **_sides(pairing, "step_time_s"))


def signs_of_pairing(pairing: Pairing, together: int = 1) -> dict[float, float]:
    """By point with times on both sides: 1 where the crossover counts the contender as faster, -1 as slower, else 0."""
    timed = replace(pairing, trials=with_ok_times(pairing.trials))
    advantages = replace(_advantages(timed, pairing.along, "step_time_s"), together=together)
    return dict(zip(advantages.sizes.tolist(), advantages.sure_signs().tolist(), strict=True))


def _advantages(pairing: Pairing, x: str, cost: str) -> Advantages:
    return advantages_of_table(_over(pairing, x, cost), **_sides(pairing, cost))


def _over(pairing: Pairing, x: str, cost: str) -> pd.DataFrame:
    """The trials of a pairing as `estimate_crossover` takes them, with this cost over column `x`."""
    columns = {x: "size", "side": "side", "trial": "trial", cost: "step_time_s"}
    return pd.DataFrame({name: pairing.trials[column] for column, name in columns.items()})


def _sides(pairing: Pairing, cost: str) -> dict[str, Any]:
    """The arguments of `estimate_crossover` beside the table."""
    return {
        "baseline": pairing.baseline,
        "contender": pairing.contender or "accelerator",
        "resolution": RESOLUTIONS.get(cost, CLOCK_RESOLUTION),
        "constant": pairing.x_axis == CPU_THREADS,
    }


def _row(line: Line, crossover: Crossover) -> dict[str, Any]:
    pairing, cost = line.pairing, line.cost
    trials, x_axis = pairing.trials, pairing.x_axis
    x = trials[x_axis]
    low, high = crossover.bracket or (None, None)
    sure_low, sure_high = crossover.sure or (None, None)
    unknown = _unknown_side(pairing, cost)
    baseline_device = pairing.baseline if pairing.pair in ("device", "best") else pairing.device
    is_measured = trials[cost].notna().tolist()
    measured = Counter(compress(zip(x.tolist(), trials["side"].tolist(), strict=True), is_measured))
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
        "trials": min(measured.values(), default=0),
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

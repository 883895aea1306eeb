"""Table `machines`: the devices of this machine and of references, ranked by the cost of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from crossover.compare.cells import MILLION, CostMeans, MeansOfCells, cell_key
from crossover.compare.intervals import ENDS, ONE_TRIAL_LEAD, RESOLUTIONS, Interval, SampleMean, columns_of, t_quantile
from crossover.compare.pairings import XAxes
from crossover.compare.shrinkage import with_shared_spread
from crossover.config.study import steps_of_run
from crossover.config.words import CPU_THREADS, X_AXES, is_cpu, series_axes
from crossover.tables.frames import of_study, on_all_cores, records
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of
from crossover.topics.references.table import host_spread

Row = Mapping[str, Any]
Side = tuple[str, str]
"""A machine and one of its devices."""

TIME, MONEY = "time", "money"
OF_STEPS = {TIME: "step_time{}_s", "energy": "energy_per_step{}_j", MONEY: "price_per_million_steps{}"}
"""Columns of each cost per step (money: per million steps), with braces in place of ENDS."""
OF_RUN = {TIME: "run_time{}_s", "energy": "run_energy{}_j", MONEY: "run_price{}"}

DESCRIBED = [*CELL_AXES, "size_name", "size_label", "batch_name", "parameters", "device_name"]
READ = [*DESCRIBED, "origin", "trials", "flag_names"]
"""The columns of cells that a ranking reads, of more than a hundred."""

LEAST_RANKED = 3
"""Minimum number of sides in a ranking. Two sides are ranked only if both are CPUs; otherwise their crossover is the
answer."""


def ranking_axes(x_axis: str) -> list[str]:
    """The axes that identify a series in which sides are ranked."""
    return [axis for axis in series_axes(x_axis) if axis != "machine"]


def machines_of(
    cells: pd.DataFrame,
    means: MeansOfCells,
    x_axes: XAxes,
    steps_per_run: Mapping[str, Any],
    together: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Rank the sides of each series at the points where the largest set of sides has times.

    If at least two sides have a price, only those with a price are ranked, by money. Otherwise all are ranked by time.
    `means` has the costs of all cells (`means_of`). `x_axes` has the studies to rank; those over `cpu_threads` are left
    out. `together` is the number of comparisons of each study, by default 1.
    """
    timed = on_all_cores(cells.loc[cells["step_time_s"].notna(), READ])
    rows = [
        row
        for study, x_axis in x_axes.items()
        if x_axis != CPU_THREADS
        for _, line in of_study(timed, study).groupby(ranking_axes(x_axis), sort=False)
        for row in _ranked_series(line, means, X_AXES[x_axis], steps_per_run[study], (together or {}).get(study, 1))
    ]
    return table_of("machines", rows)


def _ranked_series(
    line: pd.DataFrame, means: MeansOfCells, along: str, steps_per_run: Any, together: int
) -> Iterator[Row]:
    cells = [(row, means[cell_key(row)]) for row in records(line)]
    by_money = len({(row["machine"], row["device"]) for row, costs in cells if MONEY in costs}) > 1
    cost = MONEY if by_money else TIME
    points: dict[int, dict[Side, tuple[Row, CostMeans]]] = {}
    for row, costs in cells:
        if cost in costs:
            points.setdefault(row[along], {})[row["machine"], row["device"]] = row, costs
    all_sides = max((sides.keys() for sides in points.values()), key=len)
    ranked = [sides for _, sides in sorted(points.items()) if sides.keys() == all_sides and len(all_sides) > 1]
    # ln(cost) of a side at each point, with the spread of its trials shared over the points.
    shared = {
        side: with_shared_spread([sides[side][1][cost] for sides in ranked], RESOLUTIONS[cost]) for side in all_sides
    }
    together *= len(ranked) * math.comb(len(all_sides), 2)
    for index, sides in enumerate(ranked):
        contestants = [_Contestant(*cell, shared[side][index]) for side, cell in sides.items()]
        yield from _ranked(contestants, cost, steps_per_run, together)


@dataclass(frozen=True)
class _Contestant:
    """A side at a point, with the mean and the error of ln(cost) on the host where it was measured."""

    cell: Row
    costs: CostMeans
    mean: SampleMean

    @property
    def host_spread(self) -> float:
        return host_spread(self.cell["execution"]) if self.cell["origin"] == "reference" else 0.0

    def over(self, other: _Contestant, together: int) -> tuple[Interval, bool]:
        """The ratio of the cost to that of another side, and whether it is significantly above 1.

        Devices of one host share the host's deviation from others of its kind, so only sides of two machines are
        compared with an allowance for it. `together` is as in `t_quantile`. Without an interval, the ratio must exceed
        ONE_TRIAL_LEAD by as much as hosts differ.
        """
        same_host = self.cell["machine"] == other.cell["machine"]
        spread = 0.0 if same_host else math.hypot(self.host_spread, other.host_spread)
        difference = (self.mean - other.mean).widened(spread)
        ratio = difference.exp_interval(together)
        if ratio.low is not None:
            return ratio, ratio.low > 1
        least = math.hypot(math.log(ONE_TRIAL_LEAD), float(t_quantile(math.inf, together)) * spread)
        return ratio, difference.mean >= least


def _ranked(contestants: Sequence[_Contestant], cost: str, steps_per_run: Any, together: int) -> Iterator[Row]:
    """The rows of a point; all comparisons of a series are simultaneous."""
    order = sorted(contestants, key=lambda contestant: contestant.mean.mean)
    for rank, contestant in enumerate(order, 1):
        cell = contestant.cell
        cheaper = [contestant.over(other, together) for other in order[: rank - 1]]
        steps = steps_of_run(steps_per_run, cell["batch_size"])
        slower_than = [other_rank for other_rank, (_, is_behind) in enumerate(cheaper, 1) if is_behind]
        yield {
            **{name: cell[name] for name in DESCRIBED},
            **(per_step := _per_step(contestant)),
            "measured_elsewhere": cell["origin"] == "reference",
            "steps": steps,
            **(_of_run(per_step, steps) if steps else {}),
            "ranked_by": cost,
            "cost_rank": rank,
            **columns_of(cheaper[0][0] if cheaper else Interval(1.0), "ratio{}"),
            "behind": 1 in slower_than,
            "slower_than": slower_than,
            "trials": cell["trials"],
            "flag_names": cell["flag_names"],
        }


def _per_step(contestant: _Contestant) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for cost, mean in contestant.costs.items():
        spread = contestant.host_spread
        columns |= columns_of((mean.widened(spread) if spread else mean).exp_interval(), OF_STEPS[cost])
    return columns


def _of_run(per_step: Row, steps: int) -> dict[str, float]:
    """The costs per run, without start-up."""
    return {
        OF_RUN[cost].format(end): value * (steps / MILLION if cost == MONEY else steps)
        for cost, name in OF_STEPS.items()
        for end in ENDS
        if (value := per_step.get(name.format(end))) is not None
    }


def shown_column(row: Row) -> str:
    """The columns of the cost by which a row is ranked, per run or per step; braces as in OF_STEPS."""
    return (OF_RUN if row["steps"] else OF_STEPS)[row["ranked_by"]]


@dataclass(frozen=True)
class Standing:
    """What a ranking says of a range of points: each side in `behind` costs significantly more than each in `ahead`."""

    ahead: frozenset[Side]
    behind: frozenset[Side]
    low: float
    high: float
    is_first: bool
    """Whether `ahead` is a single side and all others are behind it."""


def standings_along(rows: pd.DataFrame, x_axis: str) -> list[Standing]:
    """The standings of `ranked_sides` on a line of table `machines`, in ascending order along the x axis.

    Points at which no side is behind have none. A range consists of neighbouring points of the line.
    """
    points: dict[float, list[dict[str, Any]]] = {}
    for row in records(ranked_sides(rows)):
        points.setdefault(float(row[x_axis]), []).append(row)
    standings: list[Standing] = []
    last: Standing | None = None
    for x, sides in sorted(points.items()):
        standing = _standing(sides, x)
        if last and standing and replace(standing, low=last.low) == replace(last, high=x):
            standing = replace(standing, low=last.low)
            standings.pop()
        standings += [standing] if standing else []
        last = standing
    return standings


def _standing(rows: Sequence[Row], x: float) -> Standing | None:
    ranks = {row["cost_rank"] for row in rows}
    ahead = [row for row in rows if ranks.isdisjoint(row["slower_than"])]
    leading = {row["cost_rank"] for row in ahead}
    behind = [row for row in rows if leading <= {*row["slower_than"]}]
    if not behind:
        return None
    is_first = len(ahead) == 1 and len(behind) == len(rows) - 1
    return Standing(_sides(ahead), _sides(behind), x, x, is_first)


def _sides(rows: Sequence[Row]) -> frozenset[Side]:
    return frozenset((row["machine"], row["device"]) for row in rows)


def ranked_sides(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that an answer ranks: all except CPUs of references, which are no choice for somebody who has a CPU."""
    return rows[~(rows["measured_elsewhere"].astype(bool) & rows["device"].map(is_cpu).astype(bool))]


def is_ranking(rows: pd.DataFrame) -> bool:
    sides = sides_of(rows)
    return len(sides) >= LEAST_RANKED or (len(sides) > 1 and all(is_cpu(device) for _, device in sides))


def sides_of(rows: pd.DataFrame) -> frozenset[Side]:
    return frozenset(zip(rows["machine"], rows["device"], strict=True))

"""Table `machines`: the devices of this machine and of references, ranked by the cost of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from crossover.config.studies import steps_of_run
from crossover.config.words import CPU_THREADS, X_AXES, is_cpu, series_axes
from crossover.statistics.cells import MILLION
from crossover.statistics.intervals import ENDS, Interval, SampleMean, columns_of, interval_of, ratio_of
from crossover.statistics.pairings import XAxes
from crossover.statistics.ratios import sign_of
from crossover.statistics.references import host_spread
from crossover.tables.frames import of_study, on_all_cores, records
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of

Row = Mapping[str, Any]
Side = tuple[str, str]
"""A machine and one of its devices."""

TIME, MONEY = "time", "money"
OF_STEPS = {TIME: "step_time{}_s", "energy": "energy_per_step{}_j", MONEY: "price_per_million_steps{}"}
"""Columns of each cost per step (money: per million steps), with braces in place of ENDS."""
OF_RUN = {TIME: "run_time{}_s", "energy": "run_energy{}_j", MONEY: "run_price{}"}

LEAST_RANKED = 3
"""Minimum number of sides in a ranking. Two sides are ranked only if both are CPUs; otherwise their crossover is the
answer."""


def ranking_axes(x_axis: str) -> list[str]:
    """The axes that identify a series in which sides are ranked."""
    return [axis for axis in series_axes(x_axis) if axis != "machine"]


def machines_of(cells: pd.DataFrame, x_axes: XAxes, steps_per_run: Mapping[str, Any]) -> pd.DataFrame:
    """Rank the sides of each series at the points where the largest set of sides has times.

    If at least two sides have a price, only those with a price are ranked, by money. Otherwise all are ranked by time.
    `x_axes` has the studies to rank; those over `cpu_threads` are left out.
    """
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    rows = [
        row
        for study, x_axis in x_axes.items()
        if x_axis != CPU_THREADS
        for _, line in of_study(timed, study).groupby(ranking_axes(x_axis), sort=False)
        for row in _ranked_series(line, X_AXES[x_axis], steps_per_run[study])
    ]
    return table_of("machines", rows)


def _ranked_series(line: pd.DataFrame, along: str, steps_per_run: Any) -> Iterator[Row]:
    priced = line.dropna(subset=[OF_STEPS[MONEY].format("")])
    by_money = len(priced.drop_duplicates(["machine", "device"])) > 1
    points: dict[int, dict[Side, Row]] = {}
    for row in records(priced if by_money else line):
        points.setdefault(row[along], {})[row["machine"], row["device"]] = row
    all_sides = max((sides.keys() for sides in points.values()), key=len)
    for _, sides in sorted(points.items()):
        if sides.keys() == all_sides and len(all_sides) > 1:
            yield from _ranked([*sides.values()], MONEY if by_money else TIME, steps_per_run)


def _ranked(cells: Sequence[Row], cost: str, steps_per_run: Any) -> Iterator[Row]:
    """The intervals of the ratios to the first side are simultaneous, since the first side was chosen by its cost."""
    means = [_mean(cell, OF_STEPS[cost]) for cell in cells]
    order = sorted(range(len(cells)), key=lambda index: means[index].mean)
    for rank, index in enumerate(order, 1):
        cell = cells[index]
        ratio = ratio_of(means[order[0]], means[index], len(cells) - 1) if rank > 1 else Interval(1.0)
        steps = steps_of_run(steps_per_run, cell["batch_size"])
        row = {
            **{name: cell[name] for name in (*CELL_AXES, "size_name", "size_label", "parameters", "device_name")},
            **(per_step := _per_step(cell)),
            "measured_elsewhere": cell["origin"] == "reference",
            "steps": steps,
            **(_of_run(per_step, steps) if steps else {}),
            "ranked_by": cost,
            "cost_rank": rank,
            **columns_of(ratio, "ratio{}"),
            "trials": cell["trials"],
            "flag_names": cell["flag_names"],
        }
        yield row | {"behind": rank > 1 and sign_of(row) > 0}


def _mean(cell: Row, name: str) -> SampleMean:
    mean = SampleMean.of_interval(interval_of(cell, name), cell["trials"])
    return mean.widened(host_spread(cell["execution"])) if cell["origin"] == "reference" else mean


def _per_step(cell: Row) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for name in OF_STEPS.values():
        if cell[name.format("")] is not None:
            columns |= columns_of(_mean(cell, name).exp_interval(), name)
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
class FirstPlace:
    """Sides that are not significantly behind the first-ranked one in a range, with the ends of the range."""

    sides: frozenset[Side]
    low: float
    high: float


def first_places(rows: pd.DataFrame, x_axis: str) -> list[FirstPlace]:
    """The first places on a line of table `machines`, in ascending order along the x axis.

    A range continues as long as a side is among the first at all of its points.
    """
    leading: dict[float, frozenset[Side]] = {}
    for row in records(rows[~rows["behind"].astype(bool)]):
        leading[row[x_axis]] = leading.get(row[x_axis], frozenset()) | {(row["machine"], row["device"])}
    every_side = sides_of(rows)
    places: list[FirstPlace] = []
    for x, sides in sorted((float(x), sides) for x, sides in leading.items() if sides != every_side):
        if places and (common := places[-1].sides & sides):
            places[-1] = replace(places[-1], sides=common, high=x)
        else:
            places.append(FirstPlace(sides, x, x))
    return places


def is_ranking(rows: pd.DataFrame) -> bool:
    sides = sides_of(rows)
    return len(sides) >= LEAST_RANKED or (len(sides) > 1 and all(is_cpu(device) for _, device in sides))


def sides_of(rows: pd.DataFrame) -> frozenset[Side]:
    return frozenset(zip(rows["machine"], rows["device"], strict=True))

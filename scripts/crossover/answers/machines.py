"""Answers about several machines: rankings, comparisons with references, and limits of a reference's speed-up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean
from typing import Any, Self

import numpy as np
import pandas as pd

from crossover.answers.answer import Answer, Comparison, at_most
from crossover.answers.crossings import THIS_CPU, Reference
from crossover.answers.crossovers import caveats_of_series, crossover_fields, reach_of, speedups_of
from crossover.answers.vocabulary import basis, compared_ratio, flags_of
from crossover.answers.wording import capitalised, point_of, points_of, position_text, range_text, span_text
from crossover.config.words import BASELINE, HERE, is_cpu, series_axes
from crossover.statistics.cells import cell_key
from crossover.statistics.crossover import DISAGREE
from crossover.statistics.intervals import INCONCLUSIVE, SampleMean
from crossover.statistics.machines import Side, is_ranking, ranked_sides, ranking_axes, sides_of, standings_along
from crossover.statistics.references import NORMAL_QUANTILE, host_factors, speedup_spread
from crossover.statistics.references import PAIR as REFERENCE
from crossover.statistics.roofs import HIGHEST_TOLD, LAUNCH
from crossover.statistics.roofs import PAIR as BOUND
from crossover.tables.frames import first_row, records, with_x
from crossover.tables.labels import (
    axis_label,
    machine_side,
    name_by,
    product_family,
    short_name,
    varying,
    with_article,
)
from crossover.tables.references import facts_of
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import listed, number_text

LEAST_COMPARED = 2
"""Minimum number of sides of which an answer can say that one is ahead."""

RANGES_SHOWN = 4
"""Maximum number of ranges that a sentence on a ranking names; those beyond are only counted."""

LEADING = {"time": "Fastest", "money": "Cheapest"}
TRAILING = {"time": "slower", "money": "more expensive"}


@dataclass(frozen=True, kw_only=True)
class Ranking(Answer):
    """The fastest or cheapest devices of all machines along a series."""

    kind = "ranking"
    statuses = ("throughout", "changes", "in_part", INCONCLUSIVE)
    differences = statuses[:3]
    in_sentence = ("ranked_by",)

    ranked_by: str
    """Time or money."""
    currency: str | None = None
    sides: int
    """The number of devices that are ranked."""
    unit: str
    """The unit of the ranges."""
    ranges: Sequence[tuple[str, str, float, float]] = field(default=())
    """The sides ahead, those behind (empty if all others are), and the first and the last point of each range."""
    measured_on: str | None = None
    """The dates on which the references among the sides were measured."""

    def sentence(self) -> str:
        if self.status == INCONCLUSIVE:
            return f"No significant difference between {self.sides} devices of all machines"
        shown = self.ranges[:RANGES_SHOWN]
        first = [f"{ahead} {self._where(low, high)}" for ahead, behind, low, high in shown if not behind]
        places = [
            f"{behind} {'are' if ' and ' in behind else 'is'} {TRAILING[self.ranked_by]} than "
            f"{'each of ' if ' and ' in ahead else ''}{ahead} {self._where(low, high)}"
            for ahead, behind, low, high in shown
            if behind
        ]
        if first:
            unit = f" ({self.currency})" if self.ranked_by == "money" and self.currency else ""
            places.insert(0, f"{LEADING[self.ranked_by]}{unit}: {', '.join(first)}")
        more = len(self.ranges) - RANGES_SHOWN
        then = f", then {more} more changes" if more > 0 and self.status != "throughout" else ""
        others = f"; no such difference at the other {points_of(self.unit)}" if self.status == "in_part" else ""
        return capitalised("; ".join(places)) + then + others

    def _where(self, low: float, high: float) -> str:
        if self.status == "throughout":
            return f"at every {point_of(self.unit)} measured"
        return f"at {position_text(low, self.unit)}" if low == high else f"from {range_text([low, high], self.unit)}"

    def details(self) -> list[str]:
        return [f"GPUs elsewhere beside their own CPUs, {self.measured_on}"] if self.measured_on else []


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Comparison):
    """How fast a GPU was elsewhere, beside its own CPU, over this CPU, at the largest point of a series."""

    kind = "elsewhere"

    x: float
    unit: str
    measured_on: str

    @property
    def _verb(self) -> str:
        return f"{capitalised(self.winner)} {'is' if self.winner == THIS_CPU else 'was'}"

    def sentence(self) -> str:
        place = position_text(self.x, self.unit)
        if self.status == INCONCLUSIVE:
            gpu = self.loser if self.winner == THIS_CPU else self.winner
            most = at_most([self.detectable])
            return f"No significant difference between {gpu} in its own host and this CPU at {place}{most}"
        times = f"{number_text(self.ratio)}x as fast as"
        if self.winner == THIS_CPU:
            return f"This CPU is {times} {self.loser} in its own host at {place}"
        return f"{capitalised(self.winner)} in its own host was {times} {self.loser} at {place}"

    def summary_of(self, alike: Sequence[Self]) -> str:
        return f"{self._verb} {self.ratios_text(alike)}x as fast as {self.loser} at the largest {point_of(self.unit)}"

    def details(self) -> list[str]:
        beside = f"measured beside its own CPU, {self.measured_on}"
        if self.ratio_low is None or self.ratio_high is None or self.status == INCONCLUSIVE:
            return [beside]
        interval = span_text([self.ratio_low, self.ratio_high], number_text)
        return [f"95 % CI {interval}, allowing for other hosts", beside]


@dataclass(frozen=True, kw_only=True)
class SetUp(Answer):
    """How much slower a device is here than the same kind of device of a reference: the geometric mean over sizes."""

    kind = "set_up"

    name_there: str
    ratio: float
    lowest: float
    highest: float
    measured_on: str

    def sentence(self) -> str:
        here, there = "CPU" if self.device == BASELINE else "GPU", f"{self.name_there} of {self.machine}"
        times = f"{number_text(self.ratio)} times as long on this {here} as on {there}"
        return f"A step takes {times} (measured elsewhere on {self.measured_on})"

    def details(self) -> list[str]:
        return [f"{span_text([self.lowest, self.highest], number_text)} times at single sizes"]


@dataclass(frozen=True, kw_only=True)
class Bound(Answer):
    """The highest speed-up over this CPU that the roofs of a GPU measured elsewhere allow, at a point of a series."""

    kind = "bound"
    in_sentence = ("gpu", "is_launch_bound")

    gpu: str
    ratio: float
    x: float
    unit: str
    launch_bound_up_to: float | None
    """The point up to which launching one kernel takes longer than the work of a step."""

    @property
    def is_launch_bound(self) -> bool:
        return self.launch_bound_up_to is not None

    def sentence(self) -> str:
        here, up_to = position_text(self.x, self.unit), self.launch_bound_up_to
        speed = f"at most {number_text(self.ratio)}x as fast as this CPU"
        if up_to == self.x:
            work = "the work of a step takes less time than launching one kernel"
            return f"On the {self.gpu}, {work}, up to {here}: {speed}"
        launches = "" if up_to is None else f"; up to {position_text(up_to, self.unit)}, the work takes less time there"
        return f"The {self.gpu} would be {speed} at {here}{launches and f'{launches} than launching one kernel'}"

    def summary_of(self, alike: Sequence[Self]) -> str:
        ratios = span_text([answer.ratio for answer in alike], number_text)
        return f"a GPU measured elsewhere would be at most {ratios}x as fast as this CPU"

    def details(self) -> list[str]:
        return ["a limit by the rates measured there, not an estimate: a step launches many kernels"]


def ranked_series(tables: RunTables, x_axis: str) -> pd.DataFrame:
    """Rows of table `machines` for the first series, in the order of the crossovers, whose devices can be ranked."""
    crossovers = tables.crossovers
    of_devices = crossovers["pair"].isin(["device", REFERENCE]) & (crossovers["baseline"] == BASELINE)
    for crossover in records(crossovers[of_devices]):
        line = tables.rows_with("machines", ranking_axes(x_axis), crossover)
        if is_ranking(line):
            return line
    return tables.machines.head(0)


def ranking_answers(tables: RunTables, x_axis: str) -> list[Ranking]:
    """The answer on the fastest or cheapest devices along the series of `ranked_series`; empty without a ranking."""
    rows = ranked_series(tables, x_axis)
    if rows.empty:
        return []
    first, sides = first_row(rows), ranked_sides(rows)
    if len(sides_of(sides)) < LEAST_COMPARED:
        return []
    standings = sorted(standings_along(rows, x_axis), key=lambda standing: not standing.is_first)
    points = np.sort(rows[x_axis].unique().astype(float))
    told = sum(((points >= standing.low) & (points <= standing.high)).sum() for standing in standings)
    if not standings:
        status = INCONCLUSIVE
    elif told < len(points):
        status = "in_part"
    else:
        status = "changes" if len(standings) > 1 else "throughout"
    names = _side_names(sides)
    ranking = Ranking(
        series=name_by(first, varying(tables.cells, ranking_axes(x_axis))),
        status=status,
        ranked_by=first["ranked_by"],
        sides=len(sides_of(sides)),
        unit=axis_label(first | {"x_axis": x_axis}),
        ranges=[
            (
                _words(standing.ahead, names),
                "" if standing.is_first else _words(standing.behind, names),
                standing.low,
                standing.high,
            )
            for standing in standings
        ],
        measured_on=_dates_of(sides, tables) or None,
        **basis(int(sides["trials"].min()), sides),
    )
    return [ranking]


def _dates_of(sides: pd.DataFrame, tables: RunTables) -> str:
    """The dates on which the references among the sides were measured, in words."""
    references = sides.loc[sides["measured_elsewhere"].astype(bool), "machine"].unique()
    facts = facts_of(tables.reference_cells)
    return listed(sorted({facts[name].measured_on for name in references}))


def _side_names(sides: pd.DataFrame) -> dict[Side, str]:
    """The name of each side, this machine's first; a GPU measured elsewhere has that of its product, if unique."""
    rows = records(sides.drop_duplicates(["machine", "device"]))
    rows.sort(key=lambda row: (row["machine"] != HERE, row["machine"], row["device"]))
    products = [product_family(row["device_name"]) if row["measured_elsewhere"] else "" for row in rows]
    return {
        (row["machine"], row["device"]): f"the {product}"
        if product and products.count(product) == 1
        else machine_side(row["device"], row["machine"])
        for row, product in zip(rows, products, strict=True)
    }


def _words(sides: Collection[Side], names: Mapping[Side, str]) -> str:
    return listed([name for side, name in names.items() if side in sides])


def reference_answers(tables: RunTables, x_axis: str, *, accelerated: bool) -> Sequence[Answer]:
    """Answers on crossovers of each reference's GPU with this CPU or, if `accelerated`, on ratios of like devices."""
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    if accelerated:
        return _device_answers(tables, varied_axes, x_axis)
    crossovers = tables.crossovers[tables.crossovers["pair"] == REFERENCE]
    factors = host_factors(tables.ratios[tables.ratios["pair"] == REFERENCE], x_axis)
    return [_reference_answer(row, tables, varied_axes, factors) for row in records(crossovers)]


def _reference_answer(
    row: dict[str, Any],
    tables: RunTables,
    varied_axes: Sequence[str],
    factors: Mapping[tuple[object, ...], float],
) -> Reference:
    gpu = with_article(product_family(row["contender_name"]))
    columns = crossover_fields(row, gpu, THIS_CPU)
    factor = factors.get(tuple(row[axis] for axis in series_axes(row["x_axis"])), 1.0)
    about = {
        **columns,
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "series": name_by(row, varied_axes),
        "measured_on": facts_of(tables.reference_cells)[row["machine"]].measured_on,
        **_speedups_of_both_estimates(row, tables, gpu, factor),
    }
    return Reference(**about)


def _speedups_of_both_estimates(row: dict[str, Any], tables: RunTables, gpu: str, factor: float) -> dict[str, Any]:
    """`reach_of` with speed-ups that span all estimates: of times as measured and scaled by `factor`, on other hosts.

    If the estimates disagree, the speed-ups are those at the largest point.
    """
    columns = reach_of(row, tables, gpu, THIS_CPU)
    if row["caveat"] == DISAGREE and columns:
        ratio = float(speedups_of(row, tables)["ratio"].iloc[-1])
        columns |= {"reach": columns["largest"], "ratio_low": ratio, "ratio_high": ratio}
    if "ratio_low" not in columns:
        return columns
    slowdown = factor if columns.get("winner") != THIS_CPU else 1 / factor
    hosts = math.exp(NORMAL_QUANTILE * speedup_spread(row["execution"]))
    return columns | {
        "ratio_low": columns["ratio_low"] / max(1.0, slowdown) / hosts,
        "ratio_high": columns["ratio_high"] / min(1.0, slowdown) * hosts,
    }


def _device_answers(tables: RunTables, varied_axes: Sequence[str], x_axis: str) -> list[SetUp]:
    """For each series and device, how much slower the device is here than the same kind of device of a reference."""
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] == tables.ratios["machine"])
    ]
    answers = []
    for _, line in ratios.groupby([*series_axes(x_axis), "device"], sort=False):
        first = first_row(line)
        facts = facts_of(tables.reference_cells)[first["machine"]]
        name = facts.cpu_model if is_cpu(first["device"]) else facts.device_name
        here = first | {"machine": first["baseline_machine"]}
        answers.append(
            SetUp(
                machine=first["machine"],
                series=name_by(first, varied_axes),
                ratio=geometric_mean(line["ratio"].astype(float)),
                lowest=line["ratio"].min(),
                highest=line["ratio"].max(),
                device=first["device"],
                name_there=short_name(name),
                trials=int(line["trials"].min()),
                measured_on=facts.measured_on,
                caveats=flags_of(tables.rows_with("cells", [*series_axes(x_axis), "device"], here)),
            )
        )
    return answers


def elsewhere_answers(tables: RunTables, x_axis: str, together: int) -> list[Elsewhere]:
    """How fast each product was elsewhere over this CPU, at the largest point of each series, as measured there.

    The intervals allow for other hosts of its kind, and are corrected for `together` comparisons.
    """
    facts = facts_of(tables.reference_cells)
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    answers = []
    for row, ratio, on_other_hosts in elsewhere_ratios(tables, x_axis):
        gpu, is_ahead = with_article(product_family(facts[row["machine"]].device_name)), ratio.mean >= 0
        interval = ratio.exp_interval(together).widened(math.exp(on_other_hosts))
        answers.append(
            Elsewhere(
                machine=row["machine"],
                **compared_ratio(interval if is_ahead else interval.inverted()),
                series=name_by(row, varied_axes),
                unit=axis_label(first_row(tables.cells) | {"x_axis": x_axis}),
                winner=gpu if is_ahead else THIS_CPU,
                loser=THIS_CPU if is_ahead else gpu,
                x=row["x"],
                measured_on=facts[row["machine"]].measured_on,
                **basis(row["trials"], _cells_of_both(row, tables)),
            )
        )
    return answers


def elsewhere_ratios(tables: RunTables, x_axis: str) -> Iterator[tuple[dict[str, Any], SampleMean, float]]:
    """For each series and product measured elsewhere: its row of table `ratios` at the largest point, and ln(ratio).

    The third value is by how much ln(ratio) may differ on other hosts, as for an estimated crossover. It is added to
    the half width of an interval.
    """
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] != tables.ratios["machine"])
    ]
    products = {name: product_family(facts.device_name) for name, facts in facts_of(tables.reference_cells).items()}
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    for _, line in with_x(ratios, x_axis).groupby([*axes, ratios["machine"].map(products)], sort=False):
        row = first_row(line.sort_values("x", kind="stable").tail(1))
        there, here = (tables.means[cell_key(cell)]["time"] for cell in records(_cells_of_both(row, tables)[CELL_AXES]))
        yield row, here - there, NORMAL_QUANTILE * speedup_spread(row["execution"])


def _cells_of_both(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The two cells of a ratio with a reference: that of its GPU there, and that of the CPU here."""
    there = tables.rows_with("reference_cells", CELL_AXES, {**row, "device": row["contender"]})
    side_here = {**row, "machine": row["baseline_machine"], "device": row["baseline"]}
    return pd.concat([there, tables.rows_with("cells", CELL_AXES, side_here)], ignore_index=True)


def bound_answers(tables: RunTables, x_axis: str) -> list[Bound]:
    """The highest speed-up that a reference's roofs allow if the model was not measured on such a GPU.

    There is one answer per series, at the largest point, for the reference with the highest limit there; none if the
    limit is above HIGHEST_TOLD.
    """
    ratios = tables.ratios[tables.ratios["pair"] == BOUND]
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    varied_axes = varying(tables.cells, axes)
    answers = []
    for _, line in with_x(ratios, x_axis).groupby(axes, sort=False):
        largest = line[line["x"] == line["x"].max()]
        bound = first_row(largest.sort_values("ratio").tail(1))
        if bound["ratio"] > HIGHEST_TOLD:
            continue
        side_here = bound | {"machine": bound["baseline_machine"], "device": bound["baseline"]}
        timed = tables.rows_with("cells", [*axes, "machine", "device"], side_here)
        launches = line[(line["machine"] == bound["machine"]) & (line["contender"] == LAUNCH)]
        answers.append(
            Bound(
                machine=bound["machine"],
                series=name_by(bound, varied_axes),
                ratio=bound["ratio"],
                x=bound["x"],
                unit=axis_label(first_row(tables.cells) | {"x_axis": x_axis}),
                launch_bound_up_to=launches["x"].max() if len(launches) else None,
                gpu=machine_side(bound["device"], bound["machine"]),
                **basis(bound["trials"], timed),
            )
        )
    return answers

"""The answer on which devices of all machines are fastest or cheapest along a series."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from crossover.compare.intervals import INCONCLUSIVE, SINGLE_TRIAL
from crossover.compare.pairings import REFERENCE
from crossover.config.words import BASELINE, HERE
from crossover.tables.frames import first_row, records
from crossover.tables.labels import axis_label, machine_side, name_by, product_family, varying
from crossover.tables.reference_files import facts_of
from crossover.tables.run_tables import RunTables
from crossover.text import listed
from crossover.topics.answer import Answer
from crossover.topics.caveats import basis
from crossover.topics.ranking.table import Side, is_ranking, ranked_sides, ranking_axes, sides_of, standings_along
from crossover.topics.wording import MOST_POINTS, capitalised, point_of, points_of, position_text, range_text

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
    statuses = ("throughout", "changes", "in_part", INCONCLUSIVE, SINGLE_TRIAL)
    differences = statuses[:3]
    in_sentence = ("ranked_by",)

    ranked_by: str
    """Time or money."""
    currency: str | None = None
    sides: Sequence[str]
    """The devices that are ranked."""
    unit: str
    """The unit of the ranges."""
    ranges: Sequence[tuple[str, str, float, float]] = field(default=())
    """The sides ahead, those behind (empty if all others are), and the first and the last point of each range."""
    measured_on: str | None = None
    """The dates on which the references among the sides were measured."""

    def sentence(self) -> str:
        if self.status == SINGLE_TRIAL:
            return f"Single trials cannot tell {self._all()} apart"
        if self.status == INCONCLUSIVE:
            return f"No significant difference between {self._all()}"
        shown = self.ranges[:RANGES_SHOWN]
        first = [f"{ahead} {self._where(low, high)}" for ahead, behind, low, high in shown if not behind]
        apart: dict[tuple[str, str], list[str]] = {}
        for ahead, behind, low, high in shown:
            if behind:
                apart.setdefault((ahead, behind), []).append(self._where(low, high))
        places = [
            f"{behind} {'are' if ' and ' in behind else 'is'} {TRAILING[self.ranked_by]} than "
            f"{'each of ' if ' and ' in ahead else ''}{ahead} {listed(where)}"
            for (ahead, behind), where in apart.items()
        ]
        if first:
            unit = f" ({self.currency})" if self.ranked_by == "money" and self.currency else ""
            places.insert(0, f"{LEADING[self.ranked_by]}{unit}: {', '.join(first)}")
        more = len(self.ranges) - RANGES_SHOWN
        then = f", then {more} more changes" if more > 0 and self.status != "throughout" else ""
        others = f"; no such difference at the other {points_of(self.unit)}" if self.status == "in_part" else ""
        return capitalised("; ".join(places)) + then + others

    def _all(self) -> str:
        count = len(self.sides)
        return listed(self.sides) if count <= MOST_POINTS else f"{count} devices of all machines"

    def _where(self, low: float, high: float) -> str:
        if self.status == "throughout":
            return f"at every {point_of(self.unit)} measured"
        return f"at {position_text(low, self.unit)}" if low == high else f"from {range_text([low, high], self.unit)}"

    def details(self) -> list[str]:
        return [f"GPUs elsewhere beside their own CPUs, {self.measured_on}"] if self.measured_on else []


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
        status = INCONCLUSIVE if sides["ratio_low"].notna().any() else SINGLE_TRIAL
    elif told < len(points):
        status = "in_part"
    else:
        status = "changes" if len(standings) > 1 else "throughout"
    names = _side_names(sides)
    ranking = Ranking(
        series=name_by(first, varying(tables.cells, ranking_axes(x_axis))),
        status=status,
        ranked_by=first["ranked_by"],
        sides=list(names.values()),
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

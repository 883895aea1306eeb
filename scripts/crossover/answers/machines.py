"""Answers about several machines: rankings, comparisons with references, and limits to a reference's speed-up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.crossovers import caveats_of_series, crossover_columns, reach_of
from crossover.answers.vocabulary import Row, estimate, flags_of, trials_columns
from crossover.config.words import BASELINE, HERE, is_cpu, series_axes
from crossover.statistics.bounds import LAUNCH
from crossover.statistics.bounds import PAIR as BOUND
from crossover.statistics.intervals import INCONCLUSIVE
from crossover.statistics.machines import Side, is_ranking, ranked_sides, ranking_axes, sides_of, standings_along
from crossover.statistics.references import PAIR as REFERENCE
from crossover.statistics.references import host_factors
from crossover.tables.frames import first_row, records, rows_with, with_x
from crossover.tables.labels import axis_label, machine_side, name_by, short_name, varying
from crossover.tables.references import facts_of
from crossover.tables.run_tables import RunTables
from crossover.text import listed


LEAST_COMPARED = 2
"""Minimum number of sides of which an answer can say that one is ahead."""


def ranked_series(tables: RunTables, x_axis: str) -> pd.DataFrame:
    """Rows of table `machines` for the first series, in the order of the crossovers, whose devices can be ranked."""
    crossovers = tables.crossovers
    of_devices = crossovers["pair"].isin(["device", REFERENCE]) & (crossovers["baseline"] == BASELINE)
    for crossover in records(crossovers[of_devices]):
        line = rows_with(tables.machines, ranking_axes(x_axis), crossover)
        if is_ranking(line):
            return line
    return tables.machines.head(0)


def ranking_answers(tables: RunTables, x_axis: str) -> list[Row]:
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
    trials = trials_columns(int(sides["trials"].min()))
    return [
        {
            "kind": "ranking",
            "series": name_by(first, varying(tables.cells, ranking_axes(x_axis))),
            "status": status,
            "quantity": first["ranked_by"],
            "value": len(sides_of(sides)),
            "unit": axis_label(first | {"x_axis": x_axis}),
            "winner_configurations": [_sides_words(standing.ahead) for standing in standings],
            "loser_configurations": ["" if standing.is_first else _sides_words(standing.behind) for standing in standings],
            "near": [x for standing in standings for x in (standing.low, standing.high)],
            **trials,
            "caveats": trials["caveats"] + flags_of(sides),
        }
    ]


def _sides_words(sides: Collection[Side]) -> str:
    return listed([machine_side(device, machine) for machine, device in sorted(sides, key=_here_first)])


def _here_first(side: Side) -> tuple[bool, Side]:
    machine, _ = side
    return machine != HERE, side


def reference_answers(tables: RunTables, x_axis: str, *, accelerated: bool) -> list[Row]:
    """Answers on crossovers of each reference's GPU with this CPU or, if `accelerated`, on ratios of like devices."""
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    if accelerated:
        return _device_answers(tables, varied_axes, x_axis)
    crossovers = tables.crossovers[tables.crossovers["pair"] == REFERENCE]
    factors = host_factors(tables.ratios[tables.ratios["pair"] == REFERENCE], x_axis)
    return [_reference_answer(row, tables, varied_axes, factors) for row in records(crossovers)]


def _reference_answer(
    row: dict[str, Any], tables: RunTables, varied_axes: Sequence[str], factors: Mapping[tuple[object, ...], float]
) -> Row:
    measured_on = facts_of(tables.reference_cells)[row["machine"]].measured_on
    gpu = f"{short_name(row['contender_name'])} (reference, {measured_on})"
    columns = crossover_columns(row, gpu, "this CPU")
    return {
        **columns,
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        "kind": "reference",
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "series": name_by(row, varied_axes),
        "measured_on": measured_on,
        "factor": factors.get(tuple(row[axis] for axis in series_axes(row["x_axis"]))),
        **reach_of(row, tables.ratios, gpu, "this CPU"),
    }


def _device_answers(tables: RunTables, varied_axes: Sequence[str], x_axis: str) -> list[Row]:
    """For each series and device, how much slower the device is here than the same kind of device of a reference."""
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] == tables.ratios["machine"])
    ]
    answers = []
    for _, line in ratios.groupby([*series_axes(x_axis), "device"], sort=False):
        first = first_row(line)
        facts = facts_of(tables.reference_cells)[first["machine"]]
        name = facts.cpu_model if is_cpu(first["device"]) else facts.device_name
        answers.append(
            {
                "kind": "set_up",
                "machine": first["machine"],
                "series": name_by(first, varied_axes),
                "status": "measured",
                "value": geometric_mean(line["ratio"].astype(float)),
                "low": line["ratio"].min(),
                "high": line["ratio"].max(),
                "unit": "times",
                "device": first["device"],
                "winner": short_name(name),
                "trials": line["trials"].min(),
                "measured_on": facts.measured_on,
            }
        )
    return answers


def bound_answers(tables: RunTables, x_axis: str) -> list[Row]:
    """The highest speed-up that a reference's roofs allow if the model was not measured on the reference's GPU.

    There is one answer per series, at the largest point, for the reference with the highest limit there.
    """
    ratios = tables.ratios[tables.ratios["pair"] == BOUND]
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    varied_axes = varying(tables.cells, axes)
    answers = []
    for _, line in with_x(ratios, x_axis).groupby(axes, sort=False):
        largest = line[line["x"] == line["x"].max()]
        bound = first_row(largest.sort_values("ratio").tail(1))
        launches = line[(line["machine"] == bound["machine"]) & (line["contender"] == LAUNCH)]
        answers.append(
            {
                "kind": "bound",
                "machine": bound["machine"],
                "series": name_by(bound, varied_axes),
                "status": "measured",
                **estimate(bound, "ratio", axis_label(first_row(tables.cells) | {"x_axis": x_axis})),
                "bracket_low": bound["x"],
                "reach": launches["x"].max() if len(launches) else None,
                "winner": machine_side(bound["device"], bound["machine"]),
                "loser": machine_side(bound["baseline"], bound["baseline_machine"]),
                **trials_columns(bound["trials"]),
            }
        )
    return answers

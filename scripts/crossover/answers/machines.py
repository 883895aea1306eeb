"""Answers about several machines: rankings, comparisons with references, and limits of a reference's speed-up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.crossovers import caveats_of_series, crossover_columns, reach_of, speedups_of
from crossover.answers.vocabulary import Row, estimate, flags_of, ratio_columns, trials_columns, with_flags
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
from crossover.text import listed

THIS_CPU = "this CPU"
"""The side with which GPUs measured elsewhere are compared."""

LEAST_COMPARED = 2
"""Minimum number of sides of which an answer can say that one is ahead."""


def ranked_series(tables: RunTables, x_axis: str) -> pd.DataFrame:
    """Rows of table `machines` for the first series, in the order of the crossovers, whose devices can be ranked."""
    crossovers = tables.crossovers
    of_devices = crossovers["pair"].isin(["device", REFERENCE]) & (crossovers["baseline"] == BASELINE)
    for crossover in records(crossovers[of_devices]):
        line = tables.rows_with("machines", ranking_axes(x_axis), crossover)
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
    trials, names = trials_columns(int(sides["trials"].min())), _side_names(sides)
    return [
        {
            "kind": "ranking",
            "series": name_by(first, varying(tables.cells, ranking_axes(x_axis))),
            "status": status,
            "quantity": first["ranked_by"],
            "value": len(sides_of(sides)),
            "unit": axis_label(first | {"x_axis": x_axis}),
            "winner_configurations": [_words(standing.ahead, names) for standing in standings],
            "loser_configurations": [
                "" if standing.is_first else _words(standing.behind, names) for standing in standings
            ],
            "near": [x for standing in standings for x in (standing.low, standing.high)],
            "measured_on": _dates_of(sides, tables) or None,
            **with_flags(trials, sides),
        }
    ]


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
    gpu = with_article(product_family(row["contender_name"]))
    columns = crossover_columns(row, gpu, THIS_CPU)
    factor = factors.get(tuple(row[axis] for axis in series_axes(row["x_axis"])), 1.0)
    return {
        **columns,
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        "kind": "reference",
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "series": name_by(row, varied_axes),
        "measured_on": facts_of(tables.reference_cells)[row["machine"]].measured_on,
        **_speedups_of_both_estimates(row, tables, gpu, factor),
    }


def _speedups_of_both_estimates(row: dict[str, Any], tables: RunTables, gpu: str, factor: float) -> Row:
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
        here = first | {"machine": first["baseline_machine"]}
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
                "caveats": flags_of(tables.rows_with("cells", [*series_axes(x_axis), "device"], here)),
            }
        )
    return answers


def elsewhere_answers(tables: RunTables, x_axis: str, together: int) -> list[Row]:
    """How fast each product was elsewhere over this CPU, at the largest point of each series, as measured there.

    The intervals allow for other hosts of its kind, and are corrected for `together` comparisons.
    """
    facts = facts_of(tables.reference_cells)
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    answers = []
    for row, ratio, on_other_hosts in elsewhere_ratios(tables, x_axis):
        gpu, is_ahead = with_article(product_family(facts[row["machine"]].device_name)), ratio.mean >= 0
        interval = ratio.exp_interval(together).widened(math.exp(on_other_hosts))
        columns = ratio_columns(interval if is_ahead else interval.inverted())
        answers.append(
            {
                "kind": "elsewhere",
                "machine": row["machine"],
                **columns,
                "series": name_by(row, varied_axes),
                "unit": axis_label(first_row(tables.cells) | {"x_axis": x_axis}),
                "winner": gpu if is_ahead else THIS_CPU,
                "loser": THIS_CPU if is_ahead else gpu,
                "bracket_low": row["x"],
                "measured_on": facts[row["machine"]].measured_on,
                **with_flags(trials_columns(row["trials"]), _cells_of_both(row, tables)),
            }
        )
    return answers


def elsewhere_ratios(tables: RunTables, x_axis: str) -> Iterator[tuple[Row, SampleMean, float]]:
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


def bound_answers(tables: RunTables, x_axis: str) -> list[Row]:
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
                **with_flags(trials_columns(bound["trials"]), timed),
            }
        )
    return answers

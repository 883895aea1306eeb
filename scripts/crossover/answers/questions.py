"""The answer to a study that asks for one side over another: how much faster, at what error, in how much memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row, doubts_of
from crossover.claims.cell_claims import ratio_of_sides
from crossover.claims.findings import NoFindingError
from crossover.config.claim_forms import Side
from crossover.config.studies import Asks
from crossover.config.words import is_cpu
from crossover.statistics.intervals import FASTER, SLOWER, compared
from crossover.tables.frames import first_row, on_all_cores, records, rows_with
from crossover.tables.labels import name_by, side_word, varying
from crossover.tables.registry import CELL_AXES, DETERMINISTIC, LINE_AXES
from crossover.tables.run_tables import RunTables


def asked_answers(own: RunTables, asks: Asks) -> list[Row]:
    """One answer a metric for each series and device that has both sides, at its largest size; accelerators first.

    Nothing is chosen by what was measured, so no interval needs to allow for a choice.
    """
    cells = on_all_cores(own.cells).dropna(subset=["step_time_s"])
    of, over = (rows_with(cells, list(side), side) for side in (asks.of, asks.over))
    shared = [axis for axis in CELL_AXES if axis not in {*asks.of, *asks.over}]
    both = of.merge(over[shared], on=shared)
    if both.empty:
        return []
    series = [axis for axis in shared if axis != "size"]
    largest = both[both["size"] == both.groupby(series)["size"].transform("max")]
    several = [axis for axis in varying(both, LINE_AXES) if axis in shared]
    ordered = largest.sort_values("device", key=lambda devices: devices.map(is_cpu), kind="stable")
    found = (
        _answer(metric, {axis: cell[axis] for axis in shared}, own, asks) | {"line": name_by(cell, several)}
        for cell in records(ordered)
        for metric in asks.metrics
    )
    return [row for row in found if "value" in row]


def _answer(metric: str, shared: Mapping[str, Any], own: RunTables, asks: Asks) -> Row:
    """The answer in one metric; without a value where no trial holds it. Of times, the faster side comes first."""
    of, over = (Side({**shared, **side}, metric) for side in (asks.of, asks.over))
    try:
        ratio, trials = ratio_of_sides(of, over, shared["study"], own.measurements)
    except NoFindingError:
        return {}
    differing = [axis for axis in asks.of if asks.of[axis] != asks.over[axis]]
    alike = [axis for axis in asks.of if axis not in differing]
    names = [name_by(side, differing) for side in (asks.of, asks.over)]
    if metric == "step_time_s" and ratio.mean < 1:
        ratio = ratio.inverted()
    elif metric == "step_time_s":
        names.reverse()
    words = (FASTER, SLOWER) if metric == "step_time_s" else ("more", "less")
    cells = pd.concat([rows_with(own.cells, list(side.axes), side.axes) for side in (of, over)])
    counted = metric in DETERMINISTIC
    return {
        "kind": "asked",
        "main": True,
        "machine": shared["machine"],
        "status": compared(ratio, 0.0, *words),
        "quantity": metric,
        "value": ratio.mean,
        **({} if counted else {"low": ratio.low, "high": ratio.high}),
        "unit": "times",
        "winner": names[0],
        "loser": names[1],
        "device": side_word(shared["device"]),
        "place": name_by(first_row(cells), [*varying(own.cells, ["size"]), *alike]),
        "trials": trials,
        "doubts": [] if counted else doubts_of(cells),
    }

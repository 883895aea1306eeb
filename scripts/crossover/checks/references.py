"""Whether a machine's crossovers are foretold by its CPU and the GPU of another, each of several held out in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pandas as pd

from crossover.config.words import HERE, is_cpu
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.references import agreeing, ends_of, held_against
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.references import Reference
from crossover.tables.registry import LINE_AXES

LINE = [axis for axis in LINE_AXES if axis != "machine"]
DECIDED = ("bracketed", "reversed", "below_range", "above_range")
"""Statuses of crossovers that say on which side of every size it is, or where."""
SHOWN = ["study", "protocol", "batch_size", "precision", "execution"]


def predictions(references: Sequence[Reference]) -> pd.DataFrame:
    """One row for each line and ordered pair of machines, where the machine itself has a single answer.

    `foretold_low` and `foretold_high` are the interval, or of single trials the bracket, and 0 or infinity where it is
    open; below or above all sizes measured, both are. `holds` is whether what was `measured` on the machine itself
    lies within; missing where nothing is foretold. All are in sizes.
    """
    found = []
    for there, here in permutations(references, 2):
        own = here.trials.assign(machine=HERE)
        x_axes = dict.fromkeys(own["study"], "size")
        cpu = own[[is_cpu(device) for device in own["device"]]]
        foretold, _ = held_against(cpu, agreeing(cpu, [there]), x_axes, None)
        for row in records(foretold[foretold["cost"] == "time"]):
            measured = records(rows_with(headline_rows(crossovers_of(own, x_axes)), LINE, row))
            if measured and measured[0]["status"] in DECIDED:
                found.append(_compared(row, measured[0], there.facts.name, here.facts.name))
    return pd.DataFrame(found)


def _compared(foretold: dict[str, Any], measured: dict[str, Any], there: str, here: str) -> dict[str, Any]:
    low, high = ends_of(foretold, "bracket" if foretold["trials"] == 1 else "crossover")
    known = foretold["status"] in (*DECIDED, "edge_tie") and (low, high) != (0, math.inf)
    if not known:
        low = high = math.nan
    truth = measured["crossover"]
    if truth is None:
        truth, _ = ends_of(measured, "crossover")
    return {
        "gpu_of": there,
        "cpu_of": here,
        **{axis: foretold[axis] for axis in SHOWN},
        "measured": truth,
        "foretold": foretold["crossover"],
        "foretold_low": low,
        "foretold_high": high,
        "holds": low <= truth <= high if known else None,
    }

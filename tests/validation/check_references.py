"""Leave-one-machine-out check of predicted crossovers: by the CPU of a machine and the GPU of another.

Each folder is a reference that `snakemake export_reference` made, of studies that they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.options import new_parser
from crossover.config.words import HERE, is_cpu
from crossover.errors import UserError
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.references import agreeing, compare_with_references, ends_of
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.references import Reference, read_reference
from crossover.tables.registry import SERIES_AXES

LINE = [axis for axis in SERIES_AXES if axis != "machine"]
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
        foretold, _ = compare_with_references(cpu, agreeing(cpu, [there]), x_axes, None)
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


def main(arguments: list[str]) -> None:
    """Print a row for each prediction, and how many hold."""
    parser = new_parser(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a reference")
    options = parser.parse_args(arguments)
    found = predictions([read_reference(folder) for folder in options.folders])
    if found.empty:
        raise UserError("no two of them have a study in common; name two or more of one study")
    print(found.to_string(index=False, float_format="{:.4g}".format))
    known = found.dropna(subset="holds")
    is_open = (known["foretold_low"] == 0) ^ (known["foretold_high"] == math.inf)
    counts = f"{is_open.sum()} open to one side; {len(found) - len(known)} more foretell nothing"
    print(f"{known['holds'].sum()} of {len(known)} hold, {counts}")

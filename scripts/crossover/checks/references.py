"""Whether a machine's crossovers are foretold by its CPU and the GPU of another, each of several held out in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pandas as pd

from crossover.config.words import HERE, is_cpu
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.references import agreeing, held_against
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.references import Reference
from crossover.tables.registry import LINE_AXES

LINE = [axis for axis in LINE_AXES if axis != "machine"]
SHOWN = ["study", "protocol", "batch_size", "precision", "execution"]


def predictions(references: Sequence[Reference]) -> pd.DataFrame:
    """One row for each line and ordered pair of machines whose own crossover is known.

    `foretold_low` and `foretold_high` are the interval, or of single trials the bracket; `holds` is whether the
    crossover measured on the machine itself lies within. All are in sizes.
    """
    found = []
    for there, here in permutations(references, 2):
        own = here.trials.assign(machine=HERE)
        x_axes = dict.fromkeys(own["study"], "size")
        cpu = own[[is_cpu(device) for device in own["device"]]]
        foretold, _ = held_against(cpu, agreeing(cpu, [there]), x_axes, None)
        for row in records(foretold[foretold["cost"] == "time"]):
            measured = records(rows_with(headline_rows(crossovers_of(own, x_axes)), LINE, row))
            if measured and measured[0]["crossover"] is not None:
                found.append(_compared(row, measured[0], there.facts.name, here.facts.name))
    return pd.DataFrame(found)


def _compared(foretold: dict[str, Any], measured: dict[str, Any], there: str, here: str) -> dict[str, Any]:
    name = "bracket" if foretold["trials"] == 1 else "crossover"
    low, high = foretold[f"{name}_low"], foretold[f"{name}_high"]
    within = (low or 0) <= measured["crossover"] <= (high or math.inf)
    return {
        "gpu_of": there,
        "cpu_of": here,
        **{axis: foretold[axis] for axis in SHOWN},
        "measured": measured["crossover"],
        "foretold": foretold["crossover"],
        "foretold_low": low,
        "foretold_high": high,
        "holds": within and (low is not None or high is not None),
    }

"""This machine held against machines measured elsewhere: where their GPU would pay off, and how far their CPU is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.ratios import ratios_of
from crossover.tables.references import KEPT, Reference
from crossover.tables.registry import CELL_AXES

PAIR = "reference"
SHARED = [axis for axis in CELL_AXES if axis not in ("machine", "device")]
"""What a row must have in common with one of this machine to be compared with it, beside the model's code."""


def held_against(
    measurements: pd.DataFrame,
    references: Sequence[Reference],
    x_axes: Mapping[str, str],
    prices: Mapping[str, float] | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of tables `crossovers` and `ratios` for this machine and each reference, of pair `reference`.

    A reference counts where study, model, code of the model, size, batch, protocol, precision and execution agree.
    Crossovers are those of its accelerator with the CPU here, if there is no accelerator here; ratios compare that, and
    each device with the same one there.
    """
    shared = measurements[[*SHARED, "model_key"]].dropna(subset="model_key").drop_duplicates()
    found = [reference.trials.merge(shared, on=[*SHARED, "model_key"]) for reference in references]
    rows = pd.concat([one for one in found if len(one)] or [measurements.head(0)])
    if rows.empty:
        return crossovers_of(rows, x_axes), ratios_of(rows)
    known = measurements.merge(rows[SHARED].drop_duplicates(), on=SHARED)
    columns = ["machine", *KEPT]
    joined = pd.concat([known[columns].astype(object), rows[columns].astype(object)], ignore_index=True)
    names = {reference.facts.name for reference in references}
    return (
        _across(crossovers_of(joined, x_axes, prices), names, ("device",)),
        _across(ratios_of(joined), names, ("device", "machine")),
    )


def _across(table: pd.DataFrame, names: set[str], pairs: Sequence[str]) -> pd.DataFrame:
    """The rows that compare this machine with a reference."""
    across = table["machine"].isin(names) & ~table["baseline_machine"].isin(names) & table["pair"].isin(pairs)
    return table[across].assign(pair=PAIR)

"""Read the roofs of devices, written by scripts/probe_roofs.py, into one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from crossover.reading import UnreadableError, check_readable, read_each, read_json
from crossover.tables.run_tables import table_of


def read_roofs_of(folder: Path) -> pd.DataFrame:
    """The roofs in a results folder; empty where none were probed."""
    return read_roofs(sorted((folder / "roofs").rglob("*.json")))


def read_roofs(paths: Sequence[Path]) -> pd.DataFrame:
    """One row per roof, device by device; raises UserError naming all files that are unreadable or outdated."""
    tables, torn = read_each(paths, _table)
    check_readable(torn)
    return pd.concat([table_of("roofs"), *tables.values()], ignore_index=True)


def _table(path: Path) -> pd.DataFrame:
    try:
        return table_of("roofs", read_json(path, "list of roofs"))
    except (KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not readable roofs") from None


@dataclass(frozen=True)
class Roofs:
    """The roofs of one device."""

    peaks: Mapping[str, float]
    """FLOP/s by precision."""
    working_sets: Sequence[float]
    """Bytes, ascending."""
    bandwidths: Sequence[float]
    """B/s at each of them."""
    graph_launch_s: float
    """Seconds of a tiny kernel within a CUDA graph; NaN on a device without CUDA graphs."""
    graph_gap_s: float
    """The part of that time in which the kernel does not run."""

    @classmethod
    def best_of(cls, rows: pd.DataFrame) -> Roofs:
        """The roofs by the fastest repeat of each probe."""
        in_seconds = rows["unit"] == "s"
        return cls.of(rows.assign(value=rows["lowest"].where(in_seconds, rows["highest"])))

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Roofs:
        """The roofs in the rows of one device, by the median repeat of each probe."""
        products = rows[rows["roof"] == "matmul"]
        memory = rows[rows["roof"] == "memory"].sort_values("working_set_bytes")

        def only(roof: str) -> float:
            values = rows.loc[rows["roof"] == roof, "value"]
            return float(values.iloc[0]) if len(values) else math.nan

        return cls(
            dict(zip(products["precision"], products["value"].astype(float), strict=True)),
            memory["working_set_bytes"].astype(float).tolist(),
            memory["value"].astype(float).tolist(),
            only("graph_launch"),
            only("graph_gap"),
        )

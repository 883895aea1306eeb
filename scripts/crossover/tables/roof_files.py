"""Read the roofs of devices, which scripts/probe_roofs.py writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from crossover.reading import UnreadableError, check_readable, read_each, read_json
from crossover.tables.run_tables import table_of


def read_roofs_of(folder: Path) -> pd.DataFrame:
    """`read_roofs` for all files in a results folder; an empty table if no roofs were probed."""
    return read_roofs(sorted((folder / "roofs").rglob("*.json")))


def read_roofs(paths: Sequence[Path]) -> pd.DataFrame:
    """Table `roofs` from its files; raises UserError that lists all unreadable and outdated files."""
    tables, errors = read_each(paths, _read_roofs)
    check_readable(errors)
    return pd.concat([table_of("roofs"), *tables.values()], ignore_index=True)


def _read_roofs(path: Path) -> pd.DataFrame:
    try:
        rows = read_json(path, "list of roofs")
        return table_of("roofs", [{name: row[name] for name in row if name != "plan_key"} for row in rows])
    except (KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not readable roofs") from None


@dataclass(frozen=True)
class Roofs:
    """The roofs of one device."""

    peaks: Mapping[str, float]
    """FLOP/s by precision."""
    working_sets: Sequence[float]
    """In bytes, ascending."""
    bandwidths: Sequence[float]
    """In B/s, for each working set."""
    graph_launch_s: float
    """Time of a tiny kernel within a CUDA graph; NaN if not probed."""
    graph_gap_s: float
    """The part of `graph_launch_s` in which the kernel does not run."""
    framework_s: float = math.nan
    """Time of a tiny network's training step on a core of a CPU; NaN if not probed."""

    @classmethod
    def best_of(cls, rows: pd.DataFrame) -> Roofs:
        """The roofs according to the fastest repeat of each probe; in older files, `value` is the median."""
        in_seconds = rows["unit"] == "s"
        return cls.of(rows.assign(value=rows["lowest"].where(in_seconds, rows["highest"])))

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Roofs:
        """The roofs by column `value`, from the rows of one device."""
        products = rows[rows["roof"] == "matmul"]
        memory = rows[rows["roof"] == "memory"].sort_values("working_set_bytes")
        value_of = dict(zip(rows["roof"], rows["value"].astype(float), strict=True))
        return cls(
            dict(zip(products["precision"], products["value"].astype(float), strict=True)),
            memory["working_set_bytes"].astype(float).tolist(),
            memory["value"].astype(float).tolist(),
            value_of.get("graph_launch", math.nan),
            value_of.get("graph_gap", math.nan),
            value_of.get("framework", math.nan),
        )

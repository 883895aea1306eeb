"""Published results as a table, to stand beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.published_rows import AXES_OF_RESULTS, COUNTS, METRICS, TEXTS, read_published_rows

PUBLISHED_COLUMNS = (*AXES_OF_RESULTS, *TEXTS, "source", *METRICS)


def read_published(path: Path) -> pd.DataFrame:
    """One row a published run: our axes, label, hardware, source, and metrics in seconds, bytes and samples per second.

    What the file does not give is None in texts, NA in counts and NaN in metrics. Raises UserError naming file, line
    and column.
    """
    source, rows = read_published_rows(path)
    whole = [dict.fromkeys(PUBLISHED_COLUMNS) | row | {"source": source} for row in rows]
    table = pd.DataFrame(whole, columns=list(PUBLISHED_COLUMNS), dtype=object)
    return table.astype({**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(METRICS, "float64")})


def on_line(published: pd.DataFrame, line: Mapping[str, Any]) -> pd.DataFrame:
    """The published runs that belong beside a line of ours: on every axis that they state they agree with it."""
    fits = pd.Series(True, published.index)
    for axis in AXES_OF_RESULTS:
        if axis in line and axis not in ("size", "device"):
            fits &= (published[axis].isna() | (published[axis] == line[axis])).fillna(False).astype(bool)
    return published[fits]

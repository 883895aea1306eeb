"""The memory that a measuring job asks a cluster for, from what is known before it runs."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from crossover.config.models import Table
from crossover.errors import UserError
from crossover.reading import read_arrow

VALUE_BYTES = 50
"""Of a table's value while it is read and made a tensor (measured: 29 to 48 B)."""
CSV_BYTES = 10
"""The same of a character of a CSV file (measured: 2.4 B where values are long, 8 B where they are short)."""
COMPRESSED = (".gz", ".bz2", ".zst")
EXPANSION = 5
"""Characters for each byte of a compressed CSV file."""

OTHERS_MB = 1000
"""Of the processes beside the one whose memory a row holds."""
MARGIN = 1.5


def table_mb(table: Table | None) -> int:
    """Megabytes that reading a user's own table takes; 0 without one, or where the file is not there."""
    if table is None:
        return 0
    path = Path(table.file)
    try:
        if path.suffix != ".parquet":
            expansion = EXPANSION if path.suffix in COMPRESSED else 1
            return math.ceil(CSV_BYTES * expansion * path.stat().st_size / 1e6)
        import pyarrow.parquet  # only for such a table: a run should start quickly

        whole = pyarrow.parquet.read_metadata(path)
        columns = len(table.inputs) + 1 if table.inputs else whole.num_columns
        return math.ceil(VALUE_BYTES * int(whole.num_rows) * int(columns) / 1e6)
    except (OSError, ValueError):
        return 0


def measured_mb(row: Path) -> int | None:
    """Megabytes that a further trial of a cell needs, from the row of its first; None if that does not say."""
    try:
        return _measured_mb(row, row.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=10_000)
def _measured_mb(row: Path, _written: int) -> int | None:
    with suppress(UserError, KeyError):
        (peak_bytes,) = read_arrow(row, "row", ["peak_rss_bytes"])["peak_rss_bytes"].to_pylist()
        return None if peak_bytes is None else math.ceil(MARGIN * peak_bytes / 1e6) + OTHERS_MB
    return None

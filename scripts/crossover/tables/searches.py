"""The results of searches for the largest batch, read into one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.studies import SEARCH_VERSION
from crossover.config.words import HERE
from crossover.reading import UnreadableError, check_readable, read_each, read_json
from crossover.tables.registry import LARGEST_BATCHES, SEARCH_AXES, table_of


def collect_searches(paths: Sequence[Path]) -> pd.DataFrame:
    """One row a search, in the order of their axes; raises UserError naming all unreadable or outdated files."""
    rows, torn = read_each(paths, _row)
    check_readable(torn)
    return table_of("largest_batches", rows.values()).sort_values(SEARCH_AXES, ignore_index=True)


def _row(path: Path) -> dict[str, Any]:
    found = read_json(path, "search")
    try:
        if found["schema_version"] != SEARCH_VERSION:
            raise UnreadableError(path, "written by another version of this workflow")
        return {
            **{name: found.get(name) for name in LARGEST_BATCHES},
            "machine": found.get("machine", HERE),
            "tries_count": len(found["tries"]),
            "search_s": float(sum(one["duration_s"] for one in found["tries"])),
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not a readable search") from None

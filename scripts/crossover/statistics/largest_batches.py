"""The largest batches that searches found: their files joined into one table, and what is said of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import pandas as pd

from crossover.answers.naming import name_by, varying
from crossover.config.studies import SEARCH_VERSION
from crossover.config.words import HERE
from crossover.figures.style import bytes_text, device_label, rate_text
from crossover.reading import UnreadableError, check_readable, read_each, read_json
from crossover.tables.frames import CELL_AXES, records

SEARCH_AXES = [axis for axis in CELL_AXES if axis != "batch_size"]
"""The axes of a search."""

SEARCH_COLUMNS = {
    "status": "how the search ended: ok, oom (not even one row fits), timeout, invalid, unsupported",
    "reason": "why, where the status is not ok",
    "largest": "largest batch that fitted, every time it was tried; empty unless the status is ok",
    "largest_fitting": "largest batch that fitted before the search was stopped; empty unless it was",
    "smallest_failing": "smallest batch that did not fit; empty where all that were tried fit",
    "throughput_samples_per_s": "samples per second at the largest batch; empty where it was not timed",
    "timed_batches": "batches that were timed for it",
    "timed_s": "their seconds",
    "throughput_reason": "why there is no throughput, where there was to be one",
    "start": "first batch size to try",
    "limit": "largest batch size to try; empty without a limit",
    "memory_limit_bytes": "memory that the cell was allowed to take, in bytes; empty for all there is",
    "tries_count": "tries of the search",
    "search_s": "seconds of all of them",
    "device_name": "name of the device that ran",
    "driver_version": "GPU driver",
    "cuda_version": "CUDA (or HIP) that torch was built for",
    "hostname": "name of the host",
    "cpu_model": "CPU of the host",
    "threads": "threads of torch",
    "torch_version": "version of torch",
    "command": "command that searches again",
}
"""The columns of a search beside its axes."""

ENDING_WIDTH = 60
"""Most characters of how a search was stopped."""

_WHOLE = (
    "largest",
    "largest_fitting",
    "smallest_failing",
    "timed_batches",
    "start",
    "limit",
    "memory_limit_bytes",
    "threads",
)
_NUMBERS = ("throughput_samples_per_s", "timed_s")


def collect_searches(paths: Sequence[Path]) -> pd.DataFrame:
    """One row a search, in the order of their axes; raises UserError naming all unreadable or outdated files."""
    rows, torn = read_each(paths, _row)
    check_readable(torn)
    table = pd.DataFrame(list(rows.values()), columns=[*SEARCH_AXES, *SEARCH_COLUMNS])
    # Whole numbers, though some are missing; and a column of none is one of numbers still.
    return table.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(_NUMBERS, float)).sort_values(
        SEARCH_AXES, ignore_index=True
    )


def _row(path: Path) -> dict[str, Any]:
    found = read_json(path, "search")
    try:
        if found["schema_version"] != SEARCH_VERSION:
            raise UnreadableError(path, "written by another version of this workflow")
        return {
            **{name: found.get(name) for name in (*SEARCH_AXES, *SEARCH_COLUMNS)},
            "machine": found.get("machine", HERE),
            "tries_count": len(found["tries"]),
            "search_s": float(sum(one["duration_s"] for one in found["tries"])),
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not a readable search") from None


def largest_words(found: Mapping[str, Any]) -> str:
    """'largest batch that fits: 14,336 (limit 8 GB)'; or how the search ended without one, and what it knew by then."""
    limit = "" if found["memory_limit_bytes"] is None else f" (limit {_memory_words(found['memory_limit_bytes'])})"
    if found["status"] == "oom":
        return f"not even a batch of {found['smallest_failing']:,} fits{limit}"
    if found["status"] != "ok" and found["largest_fitting"] is not None:
        return f"largest batch: at least {found['largest_fitting']:,}{limit}, then {_ending_words(found)}"
    if found["status"] != "ok":
        return f"largest batch not found: {found['status']}"
    if found["smallest_failing"] is None:
        return f"largest batch tried: {found['largest']:,}, which fits{limit}"
    return f"largest batch that fits: {found['largest']:,}{limit}"


def _ending_words(found: Mapping[str, Any]) -> str:
    """'timeout: batch 8192: not done after 300 s': how a search was stopped, without the advice after a semicolon.

    Short enough for a figure; the report shows the whole reason beside it.
    """
    return shorten(f"{found['status']}: {found['reason']}".partition(";")[0], ENDING_WIDTH, placeholder=" …")


def _memory_words(size: int) -> str:
    """Memory as it was asked for, where that is a whole number of GB or GiB."""
    for unit_bytes, unit in ((10**9, "GB"), (2**30, "GiB")):
        if size % unit_bytes == 0:
            return f"{size // unit_bytes:,} {unit}"
    return bytes_text(size)


def searches_view(table: pd.DataFrame) -> list[dict[str, str]]:
    """The report's table: one row a search, as text."""
    named = varying(table, [axis for axis in SEARCH_AXES if axis != "device"])
    rows = []
    for found in records(table):
        rate = found["throughput_samples_per_s"]
        names = [device_label(found["device"], found["device_name"]), name_by(found, named)]
        rows.append(
            {
                "of": ", ".join(name for name in names if name),
                "words": largest_words(found),
                "throughput": "" if rate is None else rate_text(rate),
                "tries": str(found["tries_count"]),
                "reason": found["reason"]
                or (found["throughput_reason"] and f"not timed: {found['throughput_reason']}"),
            }
        )
    return [row | {"reason": row["reason"] or ""} for row in rows]

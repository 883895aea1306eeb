"""Files beside the report, with what tells whether somebody else's are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from crossover.report.report_figures import link_to


def file_facts(kind: str, paths: Sequence[Path], page: Path) -> Iterator[dict[str, str | int]]:
    """Kind, name, address from the page, bytes and SHA-256 of each file that is there."""
    for path in paths:
        if path.is_file():
            size = path.stat().st_size
            facts: dict[str, str | int] = {"kind": kind, "name": path.name, "link": link_to(path, page)}
            yield facts | {"bytes": size, "sha256": sha256_of(path)}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def with_csv(tables: Sequence[Path]) -> list[Path]:
    """The tables, each followed by the CSV of the same name that a reader may open."""
    return [path for table in tables for path in (table, table.with_suffix(".csv")) if path.is_file()]

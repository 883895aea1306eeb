"""Results of an unfinished run: the rows so far, and why each other result is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from crossover.config.studies import CELL_PATH, SEARCH_PATH, TRAINING_PATH
from crossover.config.words import AXES, HERE
from crossover.errors import UserError
from crossover.reading import UnreadableError
from crossover.tables.columns import Measurement, Row, Training
from crossover.tables.frames import first_row
from crossover.tables.guards import ENVIRONMENT_COLUMNS, host_columns
from crossover.tables.rows import collect_searches, joined, read_row, read_rows

Key = TypeVar("Key")

EXCLUDED = (
    "its row was measured with settings other than the config's, on a host other than that of the newest rows, or "
    "with an installation other than that of its device's newest row"
)
NOT_YET = "not measured yet"
STOPPED = "it is still running, or was stopped"


@dataclass(frozen=True)
class Work:
    """A kind of job, with the location of its results."""

    rule: str
    pattern: str
    """Pattern of a result's path, relative to its folder and without its suffix."""
    read: Callable[[Path], Any]
    """Raises UserError if a result is unreadable."""


WORKS = {
    "trial": Work("measure_cell", f"{CELL_PATH}/trial-{{trial}}", read_row),
    "training": Work("train_model", TRAINING_PATH, lambda path: read_row(path, Training)),
    "search": Work("find_largest_batch", SEARCH_PATH, lambda path: collect_searches([path])),
}
"""The kinds of jobs, by the name of a result."""


@dataclass(frozen=True)
class MissingResult:
    """A trial, training or search without a result."""

    work: str
    axes: Mapping[str, Any]
    kind: str
    """failed, missing, unreadable or excluded."""
    reason: str


def finished_rows(
    paths: Sequence[Path],
    several_hosts: bool,
    record: type[Row] = Measurement,
    settings: Mapping[str, Collection[str]] | None = None,
) -> pa.Table:
    """The rows of trials (or trainings) in existing files that were measured under the same conditions.

    Rows of a device must come from the environment of its newest one, and all rows from the newest one's host.
    `settings` holds the current options of a study's trials: rows measured with other options are left out, as are
    missing and unreadable ones; `missing_results` lists all of these.
    """
    rows, _ = read_rows(_newest_first(paths), record)
    facts = enumerate(rows.select(["study", "command", "machine", "device", *ENVIRONMENT_COLUMNS]).to_pylist())
    alike = _alike({index: row for index, row in facts if _of_today(row, settings or {})}, several_hosts)
    return joined(rows.take(pa.array(alike, pa.int64())), record)


def finished_searches(paths: Sequence[Path], several_hosts: bool) -> pd.DataFrame:
    """`finished_rows` for searches for the largest batch."""
    searches = {}
    for path in _newest_first(paths):
        with suppress(UserError):
            searches[path] = first_row(collect_searches([path]))
    return collect_searches(_alike(searches, several_hosts))


def missing_results(
    requested: Mapping[str, Sequence[Path]], collected: Mapping[str, pd.DataFrame]
) -> Iterator[MissingResult]:
    """The requested results that were not collected, both given by kind of work (trial, training, search)."""
    for name, paths in requested.items():
        work, table = WORKS[name], collected.get(name)
        keys = ["machine", *re.findall(r"\{(\w+)\}", work.pattern)]
        present = set() if table is None else set(table[keys].astype(str).itertuples(index=False, name=None))
        for path in paths:
            tail, values = _parsed(work, path)
            if tuple(values[key] for key in keys) not in present:
                results = Path(*path.parts[: -len(tail.parts) - 1])
                kind, reason = _why(work, path, results / "logs" / work.rule / f"{tail.as_posix()}.log")
                axes: dict[str, Any] = {axis: values.get(axis) for axis in AXES}
                numbers = {axis: int(axes[axis]) for axis in ("size", "batch_size") if axes[axis]}
                yield MissingResult(name, axes | numbers, kind, reason)


def _of_today(row: Mapping[str, Any], settings: Mapping[str, Collection[str]]) -> bool:
    return row["command"] is None or set(settings.get(row["study"], ())) <= set(row["command"].split())


def _newest_first(paths: Sequence[Path]) -> list[Path]:
    """The existing files, newest first."""
    written = {}
    for path in paths:
        try:
            written[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return sorted(written, key=lambda path: -written[path])


def _alike(rows: Mapping[Key, Mapping[str, Any]], several_hosts: bool) -> list[Key]:
    """The keys of rows with the same environment as the first row of their device, and the same host as the first row
    of their machine. A field missing from a row matches any value.
    """
    columns = [column for column in ENVIRONMENT_COLUMNS if column != "hostname" or not several_hosts]
    expected: dict[tuple[str, str | None, str], Any] = {}
    alike = []
    for key, row in rows.items():
        facts = {(row["machine"], row["device"], name): row.get(name) for name in columns}
        facts |= {(row["machine"], None, name): row.get(name) for name in host_columns(several_hosts)}
        facts = {fact: value for fact, value in facts.items() if value is not None}
        if all(expected.get(fact, value) == value for fact, value in facts.items()):
            expected |= facts
            alike.append(key)
    return alike


def _parsed(work: Work, path: Path) -> tuple[Path, dict[str, str]]:
    """The end of a path (from the study on, without suffix) and the values in it; classes of nodes add a level."""
    for pattern in (work.pattern, work.pattern.replace("/{device}", "/{machine}/{device}")):
        tail = Path(*path.parts[-len(Path(pattern).parts) :]).with_suffix("")
        regex = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
        if match := re.fullmatch(regex, tail.as_posix()):
            return tail, {"machine": HERE} | match.groupdict()
    raise ValueError(f"{path} is not a path of {work.rule}")


def _why(work: Work, path: Path, log: Path) -> tuple[str, str]:
    """Why a result is missing, from its file and the log of its job."""
    if path.is_file():
        try:
            work.read(path)
        except UserError as error:
            return "unreadable", error.why if isinstance(error, UnreadableError) else str(error)
        return "excluded", EXCLUDED
    try:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return "missing", NOT_YET
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if not errors:
        # The last line of a traceback names the error.
        errors = [line for line in lines[-1:] if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return ("failed", errors[-1]) if errors else ("missing", STOPPED)

"""Results of an unfinished run: the rows so far, and the reasons why other results are missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from crossover.config.studies import path_of_result
from crossover.config.words import AXES, HERE
from crossover.errors import UserError
from crossover.reading import UnreadableError
from crossover.tables.columns import Measurement, Row, Training
from crossover.tables.frames import first_row
from crossover.tables.guards import CONDITIONS, HOST_COLUMNS, compared_columns
from crossover.tables.rows import collect_searches, joined, read_row, read_rows

Key = TypeVar("Key")

EXCLUDED = (
    "its row was measured with other settings, code or hardware than the plan's, on a host other than that of the "
    "newest rows, or under other conditions than its device's newest row"
)
NOT_YET = "not measured yet"
STOPPED = "its job is still running, or was stopped"


@dataclass(frozen=True)
class Work:
    """A kind of job and its results."""

    rule: str
    kind: str
    """The kind of job in `crossover.config.studies.RESULTS`."""
    read: Callable[[Path], Any]
    """Reads a result; raises UserError if it is unreadable."""


WORKS = {
    "trial": Work("measure_cell", "trial", read_row),
    "training": Work("train_model", "training", lambda path: read_row(path, Training)),
    "search": Work("find_largest_batch", "batch_try", lambda path: collect_searches([path])),
}


@dataclass(frozen=True)
class MissingResult:
    """A trial, training or search whose result was not collected."""

    work: str
    axes: Mapping[str, Any]
    kind: str
    """failed, missing, unreadable or excluded."""
    reason: str


def finished_rows(
    paths: Sequence[Path],
    several_hosts: bool,
    record: type[Row] = Measurement,
    keys: Collection[str] = (),
) -> pa.Table:
    """The rows of trials (or trainings) so far that were measured as planned, under the same conditions.

    Rows are left out if they differ from the newest row in one of CONDITIONS, or from their machine's newest row in the
    host. `keys` are the keys of the plan.
    """
    rows, _ = read_rows(_newest_first(paths), record)
    names = {"plan_key", *HOST_COLUMNS, *(name for axes, columns in CONDITIONS.items() for name in (*axes, *columns))}
    facts = rows.select([name for name in rows.column_names if name in names]).to_pylist()
    current = {index: row for index, row in enumerate(facts) if not keys or row["plan_key"] in (None, *keys)}
    return joined(rows.take(pa.array(_of_newest_environment(current, several_hosts), pa.int64())), record)


def finished_searches(paths: Sequence[Path], several_hosts: bool) -> pd.DataFrame:
    """`finished_rows` for searches for the largest batch."""
    searches = {}
    for path in _newest_first(paths):
        with suppress(UserError):
            searches[path] = first_row(collect_searches([path]))
    return collect_searches(_of_newest_environment(searches, several_hosts))


def missing_results(
    requested: Mapping[str, Sequence[Path]], collected: Mapping[str, pd.DataFrame]
) -> Iterator[MissingResult]:
    """The requested results that were not collected; the arguments are by kind of work (trial, training, search)."""
    for name, paths in requested.items():
        work, table = WORKS[name], collected.get(name)
        keys = [name for name in path_of_result(work.kind).groupindex if name != "again"]
        present = set() if table is None else set(table[keys].astype(str).itertuples(index=False, name=None))
        for path in paths:
            match = re.search(rf"(?<![^/]){path_of_result(work.kind).pattern}\Z", path.as_posix())
            assert match, f"{path} is no result of {work.rule}"
            values = match.groupdict() | {"machine": match["machine"] or HERE}
            if tuple(values[key] for key in keys) not in present:
                log = Path(match.string[: match.start()], "logs", work.rule, match[0].partition("/")[2])
                kind, reason = _cause(work, path, log.with_suffix(".log"))
                axes: dict[str, Any] = {axis: values.get(axis) for axis in AXES}
                numbers = {axis: int(axes[axis]) for axis in ("size", "batch_size") if axes[axis]}
                yield MissingResult(name, axes | numbers, kind, reason)


def _newest_first(paths: Sequence[Path]) -> list[Path]:
    return sorted(filter(Path.exists, paths), key=lambda path: -path.stat().st_mtime_ns)


def _of_newest_environment(rows: Mapping[Key, Mapping[str, Any]], several_hosts: bool) -> list[Key]:
    """Keys of the rows that match the first row of their group in CONDITIONS, and of their machine in the host.

    A null matches any value.
    """
    groups = {**CONDITIONS, ("machine",): HOST_COLUMNS}
    expected: dict[tuple[Any, ...], Any] = {}
    keys = []
    for key, row in rows.items():
        facts = {
            (axes, *map(row.get, axes), column): row[column]
            for axes, columns in groups.items()
            for column in compared_columns(columns, several_hosts)
            if row.get(column) is not None
        }
        if all(expected.get(fact, value) == value for fact, value in facts.items()):
            expected |= facts
            keys.append(key)
    return keys


def _cause(work: Work, path: Path, log: Path) -> tuple[str, str]:
    if path.is_file():
        try:
            work.read(path)
        except UserError as error:
            return "unreadable", error.reason if isinstance(error, UnreadableError) else str(error)
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

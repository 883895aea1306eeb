"""What a config asks for that has no row: why not, as its file and the log of its job tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.studies import CELL_PATH, SEARCH_PATH, TRAINING_PATH
from crossover.config.words import AXES, HERE
from crossover.errors import UserError
from crossover.plan.hardware import placed
from crossover.statistics.largest_batches import collect_searches
from crossover.tables.columns import Training
from crossover.tables.frames import read_row

UNFINISHED = ("failed", "missing", "unreadable", "excluded")
"""How work can be without a result."""

EXCLUDED = (
    "its row was measured with other settings than the config has now, or on another host or installation than the "
    "newest rows of its device"
)
NOT_YET = "not measured yet"
STOPPED = "it is running now, or was stopped"


@dataclass(frozen=True)
class Work:
    """A kind of jobs: what a unit of it is called, and where its rows lie."""

    name: str
    folder: str
    pattern: str
    """Of a row's path, below the folder and without its suffix."""
    number: str | None
    """What numbers the rows of a cell."""
    read: Callable[[Path], Any]
    """Raises UserError where a row is unreadable."""


WORKS = {
    "measure_cell": Work("trial", "cells", f"{CELL_PATH}/trial-{{trial}}", "trial", read_row),
    "train_model": Work("training", "trainings", TRAINING_PATH, "seed", lambda path: read_row(path, Training)),
    "find_largest_batch": Work("search", "largest_batch", SEARCH_PATH, None, lambda path: collect_searches([path])),
}
"""By the rule that does it."""


@dataclass(frozen=True)
class Unfinished:
    """A piece of work without a row."""

    work: str
    axes: Mapping[str, Any]
    kind: str
    """One of UNFINISHED."""
    reason: str


def find_unfinished(asked: Mapping[str, Sequence[str]], collected: Mapping[str, pd.DataFrame]) -> Iterator[Unfinished]:
    """What is asked for, as paths of rows by rule, and not among the rows that were collected, by work."""
    for rule, paths in asked.items():
        work = WORKS[rule]
        table = collected.get(work.name)
        names = ["machine", *re.findall(r"\{(\w+)\}", work.pattern)]
        known = set() if table is None else set(table[names].astype(str).itertuples(index=False, name=None))
        for path in map(Path, paths):
            tail, found = _parsed(work, path)
            if tuple(found[name] for name in names) not in known:
                results = Path(*path.parts[: -len(tail.parts) - 1])
                kind, reason = _why(work, path, results / "logs" / rule / f"{tail.as_posix()}.log")
                yield Unfinished(work.name, _axes(found), kind, reason)


def _parsed(work: Work, path: Path) -> tuple[Path, dict[str, str]]:
    """The end of a path, from the study on and without suffix, and what it says; classes of nodes are a level of it."""
    for pattern in (work.pattern, placed(work.pattern, {})):
        tail = Path(*path.parts[-len(Path(pattern).parts) :]).with_suffix("")
        regex = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
        if found := re.fullmatch(regex, tail.as_posix()):
            return tail, {"machine": HERE} | found.groupdict()
    raise ValueError(f"{path} is no path of a {work.name}")


def _axes(texts: Mapping[str, str]) -> dict[str, Any]:
    values = {axis: texts.get(axis) for axis in AXES}
    return {axis: int(text) if text and axis in ("size", "batch_size") else text for axis, text in values.items()}


def _why(work: Work, path: Path, log: Path) -> tuple[str, str]:
    if path.is_file():
        try:
            work.read(path)
        except UserError as error:
            return "unreadable", str(error).removeprefix(f"{path}: ").partition("; ")[0]
        return "excluded", EXCLUDED
    try:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return "missing", NOT_YET
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if not errors:
        # The last line of a traceback: what was not foreseen.
        errors = [line for line in lines[-1:] if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return ("failed", errors[-1]) if errors else ("missing", STOPPED)

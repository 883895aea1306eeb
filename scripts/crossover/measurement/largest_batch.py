"""The search for the largest batch of a cell that fits its device: one measuring process per try, one result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from crossover.config.studies import SEARCH_VERSION
from crossover.measurement.memory.batch_search import find_largest
from crossover.measurement.process.requests import BatchTry
from crossover.measurement.process.supervision import Outcome


@dataclass(frozen=True)
class Try:
    """One try of a search."""

    batch_size: int
    status: str
    reason: str | None
    duration_s: float
    """From asking for the measuring process until it is gone."""


@dataclass(frozen=True)
class Throughput:
    """How fast the largest batch is. Null where it was not timed."""

    throughput_samples_per_s: float | None = None
    """Batches x batch size / seconds."""
    timed_batches: int | None = None
    timed_s: float | None = None
    throughput_reason: str | None = None
    """Why there is none although it was asked for."""


@dataclass(frozen=True)
class LargestBatch:
    """What a search found."""

    status: str
    """`ok`; `oom` where nothing fits; else how the try ended that stopped the search."""
    reason: str | None
    largest: int | None
    """The largest batch that fitted, every time it was tried; None unless the status is ok."""
    smallest_failing: int | None
    """The smallest batch that did not fit; None where none was found."""
    tries: list[Try] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """What ran: host, device and versions."""
    throughput: Throughput = field(default_factory=Throughput)
    largest_fitting: int | None = None
    """The largest batch that fitted before the search was stopped, below all that did not fit; None unless it was."""


class _StoppedError(Exception):
    """A try ended in a way that says nothing about memory."""


def search_largest(
    first: BatchTry,
    limit: int | None,
    attempt: Callable[[BatchTry], Outcome],
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> LargestBatch:
    """Search from the batch size of `first` up to `limit`; `attempt` does one try, `tell` takes a line for each.

    A batch does not fit only where a try ends as `oom`. Any other end but `ok` stops the search, and is its status.
    """
    tries: list[Try] = []
    facts: dict[str, Any] = {}

    def fits(batch_size: int) -> bool:
        start_s = clock()
        outcome = attempt(replace(first, cell=replace(first.cell, batch_size=batch_size)))
        tries.append(Try(batch_size, outcome.status, outcome.reason, clock() - start_s))
        facts.update(outcome.facts)
        tell(_line(tries[-1]))
        if outcome.status not in ("ok", "oom"):
            raise _StoppedError
        return outcome.status == "ok"

    try:
        found = find_largest(fits, first.cell.batch_size, limit)
    except _StoppedError:
        return _stopped(tries, facts)
    if found.largest is None:
        smallest = min(tries, key=lambda one: one.batch_size)
        reason = f"batch {smallest.batch_size} does not fit: {smallest.reason}"
        return LargestBatch("oom", reason, None, found.smallest_failing, tries, facts)
    return LargestBatch("ok", None, found.largest, found.smallest_failing, tries, facts)


def _stopped(tries: list[Try], facts: dict[str, Any]) -> LargestBatch:
    """What a search learnt before its last try stopped it; a batch that once did not fit counts as failing."""
    last = tries[-1]
    failing = min((one.batch_size for one in tries if one.status == "oom"), default=None)
    fitted = [one.batch_size for one in tries if one.status == "ok" and (failing is None or one.batch_size < failing)]
    reason = f"batch {last.batch_size}: {last.reason}"
    return LargestBatch(last.status, reason, None, failing, tries, facts, largest_fitting=max(fitted, default=None))


def time_largest(
    first: BatchTry,
    found: LargestBatch,
    timed_batches: int,
    attempt: Callable[[BatchTry], Outcome],
    tell: Callable[[str], None],
) -> LargestBatch:
    """Time up to `timed_batches` batches of the largest size, in a process of its own; nothing where there is none.

    However that ends, the largest batch that fits stays what it is, and the tries those of the search.
    """
    if found.largest is None or not timed_batches:
        return found
    cell = replace(first.cell, batch_size=found.largest)
    outcome = attempt(replace(first, cell=cell, timed_batches=timed_batches))
    if outcome.status != "ok":
        tell(f"batch {found.largest}: not timed, {outcome.status} ({outcome.reason})")
        return replace(found, throughput=Throughput(throughput_reason=f"{outcome.status}: {outcome.reason}"))
    batches, seconds = outcome.found["timed_batches"], outcome.found["timed_s"]
    rate = batches * found.largest / seconds
    tell(f"batch {found.largest}: {rate:.4g} samples/s over {batches} batches")
    return replace(found, throughput=Throughput(rate, batches, seconds))


def describe(first: BatchTry, limit: int | None, found: LargestBatch, command: str) -> dict[str, Any]:
    """A search and its result as plain values, for a JSON file."""
    cell = asdict(first.cell)
    result = asdict(found)
    facts = result.pop("facts")
    tries = result.pop("tries")
    throughput = result.pop("throughput")
    return {
        "schema_version": SEARCH_VERSION,
        **{axis: value for axis, value in cell.items() if axis != "batch_size"},
        **result,
        **throughput,
        "start": cell["batch_size"],
        "limit": limit,
        "memory_limit_bytes": first.memory_limit_bytes,
        "time_limit_s": first.time_limit_s,
        "seed": first.seed,
        **facts,
        "command": command,
        "tries": tries,
    }


def _line(one: Try) -> str:
    ending = one.status if one.reason is None else f"{one.status} ({one.reason})"
    return f"batch {one.batch_size}: {ending}, {one.duration_s:.1f} s"

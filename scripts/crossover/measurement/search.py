"""The search for the largest batch of a cell that fits its device: one measuring process per try, one result.

The process that searches does without torch: what a try needs is imported in the measuring process.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from crossover.config.studies import SEARCH_VERSION
from crossover.errors import InvalidError, UserError
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.memory.batch_search import find_largest
from crossover.measurement.process.jobs import Outcome, TryJob, plain_cell

TIMED_MAX_S = 10.0
"""About the longest that batches are timed, judged by the last of these steps."""

TIMED_MIN = 3
"""Fewest batches that are timed, however long they take."""

FACTS = (
    "device_name",
    "device_uuid",
    "device_memory_bytes",
    "driver_version",
    "code_key",
    "packages",
    "hostname",
    "operating_system",
    "cpu_model",
    "memory_bytes",
    "threads",
    "torch_version",
    "cuda_version",
    "python_version",
    "crossover_version",
)
"""What a result says about the code, host and device, under the names of a row's columns."""


@dataclass(frozen=True)
class Try:
    batch_size: int
    status: str
    reason: str | None
    duration_s: float
    """From asking for the measuring process until it is gone."""


@dataclass(frozen=True, kw_only=True)
class LargestBatch:
    """The result of a search."""

    status: str
    """`ok`; `oom` if nothing fits; else how the try ended that stopped the search."""
    reason: str | None = None
    largest: int | None = None
    """The largest batch that fitted every time it was tried; None unless the status is ok."""
    smallest_failing: int | None = None
    """The smallest batch that did not fit; None if none was found."""
    largest_fitting: int | None = None
    """If the search was stopped: the largest batch that had fitted, below all that did not."""
    throughput_samples_per_s: float | None = None
    """Samples / seconds, of the largest batch."""
    timed_batches: int | None = None
    timed_s: float | None = None
    throughput_reason: str | None = None
    """Why there is no throughput although it was asked for."""
    tries: list[Try] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class _StoppedError(Exception):
    """A try ended in a way that says nothing about memory."""


def search_largest(
    first: TryJob,
    limit: int | None,
    attempt: Callable[[TryJob], Outcome],
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> LargestBatch:
    """Search from the batch size of `first` up to `limit`; `attempt` does one try, `tell` takes a line for each.

    A batch does not fit only if a try ends as `oom`. Any other end but `ok` stops the search, and is its status.
    """
    tries: list[Try] = []
    facts: dict[str, Any] = {}

    def fits(batch_size: int) -> bool:
        start_s = clock()
        outcome = attempt(replace(first, cell=replace(first.cell, batch_size=batch_size)))
        tries.append(Try(batch_size, outcome.status, outcome.reason, clock() - start_s))
        facts.update(outcome.facts)
        ending = outcome.status if outcome.reason is None else f"{outcome.status} ({outcome.reason})"
        tell(f"batch {batch_size}: {ending}, {tries[-1].duration_s:.1f} s")
        if outcome.status not in ("ok", "oom"):
            raise _StoppedError
        return outcome.status == "ok"

    largest, stopped = None, False
    try:
        largest = find_largest(fits, first.cell.batch_size, limit)
    except _StoppedError:
        stopped = True
    failing = min((one.batch_size for one in tries if one.status == "oom"), default=None)
    result = LargestBatch(status="ok", largest=largest, smallest_failing=failing, tries=tries, facts=facts)
    if stopped:
        last = tries[-1]
        fitted = [one.batch_size for one in tries if one.status == "ok" and (not failing or one.batch_size < failing)]
        reason = f"batch {last.batch_size}: {last.reason}"
        return replace(result, status=last.status, reason=reason, largest_fitting=max(fitted, default=None))
    if largest is None:
        smallest = min(tries, key=lambda one: one.batch_size)
        return replace(result, status="oom", reason=f"batch {smallest.batch_size} does not fit: {smallest.reason}")
    return result


def time_largest(
    first: TryJob,
    found: LargestBatch,
    timed_batches: int,
    attempt: Callable[[TryJob], Outcome],
    tell: Callable[[str], None],
) -> LargestBatch:
    """Time up to `timed_batches` batches of the largest size, in a process of its own; nothing if there is none.

    However that ends, the largest batch and the tries of the search stay as they are.
    """
    if found.largest is None or not timed_batches:
        return found
    cell = replace(first.cell, batch_size=found.largest)
    outcome = attempt(replace(first, cell=cell, timed_batches=timed_batches))
    if outcome.status != "ok":
        tell(f"batch {found.largest}: not timed, {outcome.status} ({outcome.reason})")
        return replace(found, throughput_reason=f"{outcome.status}: {outcome.reason}")
    rate = outcome.found["throughput_samples_per_s"]
    tell(f"batch {found.largest}: {rate:.4g} samples/s over {outcome.found['timed_batches']} batches")
    return replace(found, **outcome.found)


def describe(first: TryJob, limit: int | None, found: LargestBatch, command: str) -> dict[str, Any]:
    """A search and its result as plain values, for a JSON file."""
    cell, result = first.cell.values, asdict(found)
    facts, tries = result.pop("facts"), result.pop("tries")
    return {
        "schema_version": SEARCH_VERSION,
        **{axis: value for axis, value in cell.items() if axis != "batch_size"},
        **result,
        "start": cell["batch_size"],
        "limit": limit,
        "memory_limit_bytes": first.memory_limit_bytes,
        "time_limit_s": first.time_limit_s,
        "seed": first.seed,
        **facts,
        "command": command,
        "tries": tries,
    }


def run_try(
    job: TryJob, tell: Callable[[dict[str, Any]], None] = lambda _message: None
) -> tuple[str, str | None, dict[str, Any]]:
    """Build a cell at its batch size, run a few steps, and return a status, its reason, and what was timed.

    `ok`: it fits; `oom`: it does not. An error of the workload is `invalid`, because a search must not take it for
    either; its traceback is printed. `tell` takes `begun` with what ran before the model is built. Raises UserError for
    a device or a dataset that is not there, RefusedError for a step that fails but on the CPU in fp32.
    """
    from crossover.measurement.cell import open_cell
    from crossover.measurement.step.endings import ending, first_line, is_mistake, refusal

    cell = open_cell(job)
    tell({"begun": {name: cell.columns[name] for name in FACTS}})
    try:
        return "ok", None, _run_steps(job, cell)
    except Exception as error:
        if (end := ending(error, cell.target.device)) is not None:
            return *end, {}
        if isinstance(error, UserError) and (is_mistake(error) or job.cell == plain_cell(job.cell)):
            raise
        if job.cell != plain_cell(job.cell):
            raise refusal(error) from error
        traceback.print_exc()
        return "invalid", f"{type(error).__name__}: {first_line(error)}", {}


def _run_steps(job: TryJob, cell: Any) -> dict[str, Any]:
    from crossover.measurement.cell import with_rows
    from crossover.measurement.memory.memory_limit import limit_memory
    from crossover.measurement.step.execution import prepare
    from crossover.measurement.step.precision import SKIPPED_MAX
    from crossover.measurement.workloads import workload_code

    arithmetic, target = cell.arithmetic(), cell.target
    workload_code(job.cell)  # the cell's memory does not include its imports
    if job.memory_limit_bytes is not None:
        limit_memory(target.device, target.memory_bytes, job.memory_limit_bytes)
    task = cell.build(with_rows(cell.data(), job.cell.batch_size), arithmetic, job.seed)
    step = prepare(task, job.cell.execution).step
    watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, target.synchronise)
    if not task.arithmetic.run_until_updated(lambda: time_block(step, 1, watch)):
        raise InvalidError(f"the loss scaler skipped {SKIPPED_MAX} updates in a row: what an update needs is not known")
    step_s = [time_block(step, 1, watch).wall_s for _ in range(job.steps)][-1]
    found = {}
    if job.timed_batches:
        taken = task.samples_taken
        found = time_batches(step, job.timed_batches, step_s, watch)
        samples = found["timed_batches"] * job.cell.batch_size if taken is None else task.samples_taken - taken
        found["throughput_samples_per_s"] = samples / found["timed_s"]
    cell.check(task)
    return found


def time_batches(step: Step, most: int, step_s: float, watch: Stopwatch) -> dict[str, Any]:
    """Time up to `most` batches between two synchronisations, after Geifman (docs/explanation/measurement.md).

    Nobody waits in between, so how many fit into TIMED_MAX_S is judged beforehand, by a step that took `step_s`.
    """
    batches = min(most, max(TIMED_MIN, int(TIMED_MAX_S / max(step_s, 1e-9))))
    with without_garbage_collection():
        timed_s = time_block(step, batches, watch).wall_s
    return {"timed_batches": batches, "timed_s": timed_s}

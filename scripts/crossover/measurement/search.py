"""Search for the largest batch of a cell that fits its device, with a measuring process for each try.

A size that fits once may fail the next time (fragmentation, other processes), so the largest size is tried again. If it
then fails, smaller sizes are tried. The search assumes a threshold: sizes above it fail, and sizes near it may fit or
fail at random. Only the measuring processes import torch.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from crossover.config.studies import SEARCH_VERSION
from crossover.errors import InvalidError, RefusedError, UserError
from crossover.measurement import Tell
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.process.jobs import Outcome, TryJob

TIMED_MAX_S = 10.0
"""Approximate maximum duration of the timed batches, projected from the step before them."""

TIMED_MIN = 3
"""Minimum number of timed batches, unless fewer are requested."""

CONFIRMATIONS = 2
"""Number of further tries in which the largest size must fit."""

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


@dataclass(frozen=True)
class Try:
    batch_size: int
    status: str
    reason: str | None
    duration_s: float
    """Seconds from the request for the measuring process to its end."""


@dataclass(frozen=True, kw_only=True)
class LargestBatch:
    status: str
    """`ok`, `oom` if nothing fits, or the status of the try that stopped the search."""
    reason: str | None = None
    largest: int | None = None
    """The largest batch that fitted in each of its tries; None unless the status is `ok`."""
    smallest_failing: int | None = None
    largest_fitting: int | None = None
    """For a stopped search: the largest batch that fitted and is smaller than all that did not."""
    throughput_samples_per_s: float | None = None
    timed_batches: int | None = None
    timed_s: float | None = None
    throughput_reason: str | None = None
    """Why there is no throughput although it was requested."""
    tries: list[Try] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class _StoppedError(Exception):
    """A try ended with a status other than `ok` and `oom`."""


def search_largest(
    first: TryJob,
    attempt: Callable[[TryJob], Outcome],
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> LargestBatch:
    """Search for the largest batch up to the limit that `first` has, starting with its batch size.

    `attempt` runs a try, and `tell` receives a line about each. A status other than `ok` and `oom` stops the search.
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

    largest = None
    with suppress(_StoppedError):
        largest = find_largest(fits, first.cell.batch_size, first.search.limit)
    failing = min((tried.batch_size for tried in tries if tried.status == "oom"), default=None)
    result = LargestBatch(status="ok", largest=largest, smallest_failing=failing, tries=tries, facts=facts)
    last = tries[-1]
    if last.status not in ("ok", "oom"):
        fitting = [tried.batch_size for tried in tries if tried.status == "ok"]
        largest_fitting = max((size for size in fitting if not failing or size < failing), default=None)
        reason = f"batch {last.batch_size}: {last.reason}"
        return replace(result, status=last.status, reason=reason, largest_fitting=largest_fitting)
    if largest is None:
        smallest = min(tries, key=lambda tried: tried.batch_size)
        return replace(result, status="oom", reason=f"batch {smallest.batch_size} does not fit: {smallest.reason}")
    return result


def time_largest(
    first: TryJob, result: LargestBatch, attempt: Callable[[TryJob], Outcome], tell: Callable[[str], None]
) -> LargestBatch:
    """Add the throughput over up to `timed_batches` batches of the largest size, measured in a new process."""
    timed_batches = first.search.timed_batches
    if result.largest is None or not timed_batches:
        return result
    cell = replace(first.cell, batch_size=result.largest)
    outcome = attempt(replace(first, cell=cell, timed_batches=timed_batches))
    if outcome.status != "ok":
        tell(f"batch {result.largest}: not timed, {outcome.status} ({outcome.reason})")
        return replace(result, throughput_reason=f"{outcome.status}: {outcome.reason}")
    rate = outcome.result["throughput_samples_per_s"]
    tell(f"batch {result.largest}: {rate:.4g} samples/s over {outcome.result['timed_batches']} batches")
    return replace(result, **outcome.result)


def describe(first: TryJob, result: LargestBatch) -> dict[str, Any]:
    """A search and its result, as plain values for a JSON file."""
    cell, values = first.cell.values, asdict(result)
    facts, tries = values.pop("facts"), values.pop("tries")
    return {
        "schema_version": SEARCH_VERSION,
        **{axis: value for axis, value in cell.items() if axis != "batch_size"},
        **values,
        "start": cell["batch_size"],
        "limit": first.search.limit,
        "memory_limit_bytes": first.memory_limit_bytes,
        "time_limit_s": first.time_limit_s,
        "seed": first.seed,
        "plan_key": first.plan_key,
        **facts,
        "command": first.command,
        "tries": tries,
    }


def run_try(job: TryJob, tell: Tell) -> tuple[str, str | None, dict[str, Any]]:
    """Build a cell at its batch size and run a few steps; returns a status, its reason, and the timing.

    The status is `ok` if the batch fits and `oom` if it does not. `tell` receives `begun` with the FACTS before the
    model is built. Raises UserError and RefusedError as `open_cell` and `OpenCell.ending` do.
    """
    from crossover.measurement.cell import open_cell

    cell = open_cell(job)
    tell({"begun": {name: cell.columns[name] for name in FACTS}})
    try:
        return "ok", None, _run_steps(job, cell)
    except Exception as error:
        try:
            return *cell.ending(error), {}
        except (UserError, RefusedError):
            raise
        except Exception:
            traceback.print_exc()
            return "invalid", "the step fails by an error of Crossover, which the log shows", {}


def _run_steps(job: TryJob, cell: Any) -> dict[str, Any]:
    from crossover.measurement.cell import with_rows
    from crossover.measurement.memory.memory_limit import limit_memory
    from crossover.measurement.step.execution import prepare
    from crossover.measurement.step.precision import SKIPPED_MAX
    from crossover.measurement.workloads import workload_code

    arithmetic, target = cell.arithmetic(), cell.target
    workload_code(job.cell)  # imported now, so that imports do not count towards the cell's memory
    if job.memory_limit_bytes is not None:
        limit_memory(target.device, target.memory_bytes, job.memory_limit_bytes)
    task = cell.build(with_rows(cell.data(), job.cell.batch_size), arithmetic, job.seed)
    execution = prepare(task, job.cell.execution)
    step = execution.step
    watch = Stopwatch(synchronise=target.synchronise, around=execution.around)

    def timed_step_s() -> float:
        step_s = time_block(step, 1, watch).wall_s
        task.check_batch()
        return step_s

    if not task.arithmetic.run_until_updated(timed_step_s):
        raise InvalidError(
            f"the loss scaler skipped {SKIPPED_MAX} updates in a row, so the memory of an update is unknown"
        )
    step_s = [timed_step_s() for _ in range(job.steps)][-1]
    timed = {}
    if job.timed_batches:
        samples_before = task.samples_taken
        timed = time_batches(execution.timed_step(), job.timed_batches, step_s, watch)
        samples = timed["timed_batches"] * (task.samples or job.cell.batch_size)
        if samples_before is not None:
            samples = task.samples_taken - samples_before
        timed["throughput_samples_per_s"] = samples / timed["timed_s"]
    cell.check(task)
    return timed


def time_batches(step: Step, limit: int, step_s: float, watch: Stopwatch) -> dict[str, Any]:
    """Time `limit` batches in one block, or fewer if they would exceed TIMED_MAX_S at `step_s` each."""
    batches = min(limit, max(TIMED_MIN, int(TIMED_MAX_S / max(step_s, 1e-9))))
    with without_garbage_collection():
        timed_s = time_block(step, batches, watch).wall_s
    return {"timed_batches": batches, "timed_s": timed_s}


def find_largest(fits: Callable[[int], bool], start: int, limit: int | None) -> int | None:
    """The largest size up to `limit` that fits in its try and in CONFIRMATIONS further tries; None if no size does.

    If a confirmation fails, smaller sizes must fit 1 + CONFIRMATIONS times in a row.
    """

    def fits_times(size: int, times: int) -> bool:
        return all(fits(size) for _ in range(times))

    low, high = _double(fits, start if limit is None else min(start, limit), limit)
    low = _bisect(fits, low, high)
    if low and not fits_times(low, CONFIRMATIONS):
        low = _step_down(lambda size: fits_times(size, 1 + CONFIRMATIONS), low)
    return low or None


def _double(fits: Callable[[int], bool], first: int, limit: int | None) -> tuple[int, int]:
    """The last size that fits (0 if none does) and the first that fails (limit + 1 if none does)."""
    low, size = 0, first
    while fits(size):
        if size == limit:
            return limit, limit + 1
        low, size = size, size * 2 if limit is None else min(size * 2, limit)
    return low, size


def _bisect(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Bisect between a size that fits (or 0) and one that does not; returns the largest that fits."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _step_down(fits: Callable[[int], bool], failing: int) -> int:
    """The largest size below a failing one that fits; 0 if none does."""
    high, step = failing, 1
    while high > step:
        if fits(high - step):
            return _bisect(fits, high - step, high)
        high, step = high - step, step * 2
    return _bisect(fits, 0, high)

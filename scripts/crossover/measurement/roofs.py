"""Measured peak rates of a device: matrix products, memory bandwidth, copies between host and device, launches.

Those of a CPU include `framework_rows`, its speed at launching a step.

The rates of products and memory are the bounds of the roofline model (Williams, Waterman and Patterson, "Roofline: an
insightful visual performance model for multicore architectures", 2009). Torch and its threads are the same as in the
trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml
import torch

from crossover.config.words import unit_of_side
from crossover.errors import UnsupportedError
from crossover.machine.kernel import available_bytes, last_level_cache_bytes
from crossover.machine.threads import usable_cpus
from crossover.machine.trust import host_flags, why_invalid
from crossover.measurement import Tell
from crossover.measurement.clock.profiling import profile_device
from crossover.measurement.clock.timing import NANO, Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.framework import framework_rows
from crossover.measurement.host.description import describe_host
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.process.jobs import ProbeJob
from crossover.measurement.step.conditions import set_switches
from crossover.measurement.step.devices import OpenDevice, open_device
from crossover.measurement.step.precision import PURE, arithmetic_of

ROUNDS = 2
"""Number of times that all roofs are probed one after the other, so that a short disturbance spoils no roof."""
REPEATS = 4
BLOCK_S = 0.02
ATTEMPTS = 3
"""Maximum number of times that disturbed rounds are repeated, including the first."""
LONGEST_STEP_S = 0.2
"""Approximate maximum duration of a step; larger sizes are skipped."""

MOST_BYTES = 10**9
"""Maximum total size of a product's three matrices."""
COPY_BYTES = 2**26
PASSES = 16
"""Number of passes through memory in one CUDA graph."""
LAUNCHES = 1000
"""Number of tiny operations in a chain."""

HOST_ROWS: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192)
ACCELERATOR_ROWS: tuple[int, ...] = (2048, 4096, 8192)
"""Rows of the square matrices to multiply, ascending. Many cores need large ones, which LONGEST_STEP_S spares few."""
HOST_WORKING_SETS = tuple(2**power for power in range(20, 30, 2))
"""Bytes that a pass through memory touches, ascending; `host_working_sets` adds larger ones."""
ACCELERATOR_WORKING_SETS = tuple(2**power for power in (23, 25, 27, 29))
"""Smaller working sets would show launch overhead."""
CACHES = 2
"""Largest working set on a CPU, as a multiple of its last-level caches; little of such a set stays in the caches."""
FREE_SHARE = 1 / 8
"""Maximum share of the free memory for a working set; a probe holds three at a time."""


def host_working_sets(cache_bytes: int | None, free_bytes: int) -> tuple[int, ...]:
    """HOST_WORKING_SETS and larger ones, up to the lesser of CACHES times the caches and FREE_SHARE of free memory."""
    largest = min(CACHES * (cache_bytes or 0), int(FREE_SHARE * free_bytes))
    working_sets = list(HOST_WORKING_SETS)
    while working_sets[-1] < largest:
        working_sets.append(min(4 * working_sets[-1], largest))
    return tuple(working_sets)


def run_probe(job: ProbeJob, tell: Tell, probing: Any = None) -> tuple[str, None, dict[str, Any]]:
    """Probe the device of the job's cell in this process, by `probe` or a function with the same arguments.

    Returns `ok`, no reason, and the rows of table `roofs`.
    """
    torch.set_num_threads(job.threads)
    target = open_device(job.cell.device)
    host = describe_host()
    names = {
        "machine": job.cell.machine,
        "device": job.cell.device,
        "device_name": target.name or host["cpu_model"],
        **{name: host[name] for name in ("hostname", "threads", "torch_version")},
    }
    tell({"begun": names})
    watch = Stopwatch(synchronise=target.synchronise)

    def attempt() -> tuple[list[dict[str, Any]], str | None]:
        surroundings = Surroundings(unit_of_side(job.cell.device), job.uuid, pynvml)
        started_ns = watch.wall_ns()
        surroundings.counts()
        arguments = target, job.threads, watch, job.precisions
        rows = [row for _ in range(ROUNDS) for row in (probing or probe)(*arguments)]
        surroundings.counts()
        timed_s = (watch.wall_ns() - started_ns) * NANO
        facts = {**host, "device": job.cell.device, "threads": job.threads, "timed_s": timed_s}
        return rows, disturbances(facts | surroundings.columns(timed_s, 1))

    return "ok", None, {"rows": [names | row for row in best_roofs(attempt)]}


def disturbances(facts: Mapping[str, Any]) -> str | None:
    """What disturbed a probe, by the rules for trials; None if nothing did."""
    reason = why_invalid(facts)
    return ", ".join([*host_flags(facts), *([reason] if reason else [])]) or None


def best_roofs(attempt: Callable[[], tuple[list[dict[str, Any]], str | None]]) -> list[dict[str, Any]]:
    """The best value of each roof in all attempts, which end once one is not `disturbed`.

    A roof is a maximum, and a disturbance can only lower it, so the values of a disturbed attempt count too.
    """
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _ in range(ATTEMPTS):
        rows, disturbed = attempt()
        for row in rows:
            roof = (row["roof"], row.get("precision"), row["roof"] != "matmul" and row.get("working_set_bytes"))
            best[roof] = _better(best.get(roof, row), row)
        if disturbed is None:
            break
    return [row | {"disturbed": disturbed} for row in best.values()]


def _better(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    best = (min if first["unit"] == "s" else max)(first, second, key=lambda row: row["value"])
    lowest, highest = min(first["lowest"], second["lowest"]), max(first["highest"], second["highest"])
    return best | {"lowest": lowest, "highest": highest}


def probe(target: OpenDevice, threads: int, watch: Stopwatch, precisions: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of table `roofs`, without the columns that identify the device; unsupported precisions have no row."""
    rows, working_sets = ACCELERATOR_ROWS, ACCELERATOR_WORKING_SETS
    if target.device.type == "cpu":
        rows, working_sets = HOST_ROWS, host_working_sets(last_level_cache_bytes(usable_cpus()), available_bytes())
    with without_garbage_collection(), torch.no_grad():
        for precision in precisions:
            try:
                yield _matrix_products(target.device, precision, threads, watch, rows)
            except UnsupportedError:
                continue
        set_switches("fp32", threads)
        for working_set in working_sets:
            row = _memory(target.device, working_set, watch)
            yield row
            if working_set / row["value"] > LONGEST_STEP_S / 2:
                break
        yield from _launches(target.device, watch)
        if target.device.type == "cpu":
            yield from framework_rows(watch)
        if target.device.type == "cuda":
            yield from _copies(target.device, watch)


def _matrix_products(
    device: torch.device, precision: str, threads: int, watch: Stopwatch, sizes: tuple[int, ...]
) -> dict[str, Any]:
    """The row for the size with the best rate, in FLOP/s; a product of n x n matrices has 2 n^3 operations."""
    set_switches(precision, threads)
    dtype = PURE.get(precision, arithmetic_of(precision, device).dtype)
    probes: list[Probe] = []
    for rows in sizes:
        if 3 * rows**2 * dtype.itemsize > MOST_BYTES:
            break
        left, right = (torch.randn(rows, rows, device=device).to(dtype) for _ in range(2))
        out = torch.empty_like(left)
        step = partial(torch.mm, left, right, out=out)
        probes.append(timed(step, watch, 2 * rows**3, working_set_bytes=3 * out.nbytes))
        if probes[-1].step_s > LONGEST_STEP_S / 8:  # doubling the rows takes eight times as long
            break
    best = max(probes, key=lambda probe: probe.rate)
    return row_of("matmul", best.times_s(watch), best.count, "FLOP/s", precision=precision, **best.columns)


def _memory(device: torch.device, working_set: int, watch: Stopwatch) -> dict[str, Any]:
    """The row of the memory bandwidth in B/s for a working set: the fastest of an addition, a copy and a sum."""
    third, half = (torch.ones(working_set // (4 * parts), device=device) for parts in (3, 2))
    thirds, other = (torch.empty_like(third), torch.empty_like(third)), torch.empty_like(half)
    whole = torch.ones(working_set // 4, device=device)
    passes: tuple[tuple[Step, int], ...] = (
        (lambda: torch.add(third, thirds[0], out=thirds[1]), 3 * third.nbytes),
        (lambda: other.copy_(half), 2 * half.nbytes),
        (whole.sum, whole.nbytes),
    )
    repeats = PASSES if device.type == "cuda" else 1
    probes = [timed(_replayed(step, device, repeats), watch, repeats * count) for step, count in passes]
    best = max(probes, key=lambda probe: probe.rate)
    return row_of("memory", best.times_s(watch), best.count, "B/s", working_set_bytes=working_set)


def _launches(device: torch.device, watch: Stopwatch) -> Iterator[dict[str, Any]]:
    """Rows for a chain of tiny, dependent operations.

    They have the seconds per operation, launched singly and in a CUDA graph, and the gap between kernels.
    """
    inputs, outputs, sums = (torch.zeros(shape, device=device) for shape in ((16, 16), (16, 16), (16,)))
    unit = torch.eye(16, device=device)

    def many() -> None:
        for _ in range(LAUNCHES // 4):
            torch.mm(inputs, unit, out=outputs)
            outputs.relu_()
            torch.sum(outputs, 0, out=sums)
            torch.add(outputs, sums, out=inputs)

    yield row_of("launch", [time_s / LAUNCHES for time_s in timed(many, watch).times_s(watch)], None, "s")
    if device.type == "cuda":
        replay = _replayed(many, device)
        replayed_s = [time_s / LAUNCHES for time_s in timed(replay, watch).times_s(watch)]
        yield row_of("graph_launch", replayed_s, None, "s")
        profile = profile_device(replay, device, watch.synchronise, LAUNCHES * replayed_s[0], most_steps=2)
        if profile is not None:
            kernel_s = profile.busy_s / profile.kernels
            yield row_of("graph_gap", [max(0.0, time_s - kernel_s) for time_s in replayed_s], None, "s")


def _copies(device: torch.device, watch: Stopwatch) -> Iterator[dict[str, Any]]:
    on_device = torch.empty(COPY_BYTES, dtype=torch.uint8, device=device)
    for memory in ("pageable", "pinned"):
        on_host = torch.ones(COPY_BYTES, dtype=torch.uint8, pin_memory=memory == "pinned")
        for roof, target, source in (("host_to_device", on_device, on_host), ("device_to_host", on_host, on_device)):
            times_s = timed(partial(target.copy_, source), watch).times_s(watch)
            yield row_of(f"{roof}_{memory}", times_s, COPY_BYTES, "B/s", working_set_bytes=COPY_BYTES)


def _replayed(step: Step, device: torch.device, repeats: int = 1) -> Step:
    """A replay of a step, or of several, as a CUDA graph; on devices other than CUDA the step itself."""
    if device.type != "cuda":
        return step
    step()  # loads libraries, which cannot be loaded during a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            step()
    return graph.replay


@dataclass(frozen=True)
class Probe:
    step: Step
    step_s: float
    count: int
    """Number of bytes or operations per step."""
    columns: dict[str, Any]

    @property
    def rate(self) -> float:
        return self.count / self.step_s

    def times_s(self, watch: Stopwatch) -> list[float]:
        steps = max(1, math.ceil(BLOCK_S / max(self.step_s, 1e-9)))
        return [time_block(self.step, steps, watch).wall_s / steps for _ in range(REPEATS)]


def timed(step: Step, watch: Stopwatch, count: int = 1, **columns: Any) -> Probe:
    time_block(step, 1, watch)
    steps = max(1, math.ceil(BLOCK_S / max(time_block(step, 1, watch).wall_s, 1e-9)))
    return Probe(step, time_block(step, steps, watch).wall_s / steps, count, columns)


def row_of(roof: str, times_s: list[float], count: int | None, unit: str, **columns: Any) -> dict[str, Any]:
    """The row of a roof: lowest and highest of the blocks' times, or of their rates `count` / time; the best counts."""
    values = times_s if count is None else [count / time_s for time_s in times_s]
    lowest, highest = min(values), max(values)
    value = lowest if count is None else highest
    return {"roof": roof, "value": value, "lowest": lowest, "highest": highest, "unit": unit, **columns}

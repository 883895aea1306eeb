"""Remedies for a slow step: variants of it, for example without data loading or launch overhead.

The time that a remedy saves is the cost of what the remedy removes. On an accelerator, the remedies are a ready batch
(in host memory, in pinned memory or on the device) and, with the batch on the device, a CUDA graph of the step. On a
CPU, they are a ready batch, fewer threads, and a larger batch. A remedy that raises an error is skipped.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.config.words import LARGER_BATCH
from crossover.errors import UnsupportedError
from crossover.machine.kernel import available_bytes
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.resident_memory import grown_bytes, status_bytes
from crossover.measurement.step.conditions import on_threads
from crossover.measurement.step.execution import Execution, capture, prepare, why_not_captured
from crossover.measurement.step.operators import host_work_s
from crossover.measurement.step.tasks import Task
from crossover.measurement.step.trees import map_plain, map_tensors, tensors_of

Inputs = tuple[Any, ...]

LONGEST_STEP_S = 1.0
"""Remedies are not tried on steps longer than this, since they would take half a minute or more."""
LONGEST_TWICE_S = 0.05
"""On steps longer than this, remedies are tried in a cell's first trial only."""
BLOCK_S = 0.005
"""Minimum duration of a block. On an H100 host, medians of three blocks of 10 ms were no more repeatable."""
ALONE_S = 0.01
"""Steps at least this long are timed singly. Shorter steps are timed in blocks, in which the host gets ahead."""
ROUNDS = 3
"""Number of blocks for each method."""
FEWER_THREADS_S = 0.05
"""Fewer threads are not tried on steps longer than this, since that would take long and gain little."""
FREE_SHARE = 0.5
"""Maximum share of the free memory for a larger batch."""
WORKING_S = 0.02
WORKING_STEPS = (3, 200)
"""Minimum and maximum number of steps that `working_s` times; between these, as many as fit in WORKING_S."""


def time_remedies(
    task: Task, execution: Execution, name: str, step_time_s: float, build: Callable[[], Task], watch: Stopwatch
) -> dict[str, Any]:
    """Time the step as it is and with each remedy, interleaved; returns columns of `Measurement`.

    `build` makes a new task for a CUDA graph. The remedies change the weights and allocate memory. Raises the errors of
    the unmodified step.
    """
    columns: dict[str, Any] = {"working_s": working_s(task, execution, watch, step_time_s)}
    with HostCopies() as copies:
        inputs = task.next_inputs()
    batch = held_batch(inputs, task.arithmetic.device)
    methods = remedies_of(task, execution, name, step_time_s, inputs, batch, copies)
    if task.arithmetic.device.type == "cuda" and name != "cuda-graph":
        with suppress(Exception):
            replay, columns["fits_graph"] = replayed(build(), name, batch)
            methods |= replay
    # The operators in compiled code are not visible to `host_work_s`.
    eager = torch.compiler.set_stance("force_eager") if name == "compile" else nullcontext()
    with suppress(Exception), eager:
        columns["host_work_s"] = host_work_s(_step_with(task, execution, batch))
    return columns | time_interleaved(methods, BLOCK_S, watch)


def held_batch(inputs: Inputs, device: torch.device) -> Inputs:
    """Move a batch to the device if the whole batch is on the host; otherwise tensors on the host belong there."""
    return map_tensors(lambda tensor: tensor.to(device), inputs) if _is_on_host(inputs) else inputs


def _is_on_host(inputs: Inputs) -> bool:
    """True if the whole batch is on the host; on an accelerator, the forward pass then copies it."""
    return all(tensor.device.type == "cpu" for tensor in tensors_of(inputs))


def _step_with(task: Task, execution: Execution, batch: Inputs) -> Callable[[], None]:
    def step() -> None:
        execution.run(*batch)
        task.end_step()

    return step


def remedies_of(
    task: Task,
    execution: Execution,
    name: str,
    step_time_s: float,
    inputs: Inputs,
    batch: Inputs,
    copies: HostCopies,
) -> dict[str, Method]:
    """What to time, by column: the unmodified step first, then loading and all remedies except a CUDA graph.

    `batch` is `inputs` on the device, and `copies` counts the copies that `next_inputs` made.
    """
    on_batch = _step_with(task, execution, batch)
    methods = {"split_step_s": Method(execution.step), "loading_s": Method(task.next_inputs)}
    methods["held_s"] = Method(on_batch)
    if task.arithmetic.device.type == "cpu":
        threads = torch.get_num_threads()
        if step_time_s < FEWER_THREADS_S and threads > 1:
            methods["one_thread_s"] = Method(on_batch, partial(on_threads, 1))
            if threads > 3:
                methods["half_threads_s"] = Method(on_batch, partial(on_threads, threads // 2))
        # A compiled model would recompile, and only a batch of rows can be repeated.
        if name != "compile" and task.batched and has_rows(batch) and LARGER_BATCH * step_time_s <= LONGEST_STEP_S:
            with suppress(Exception):  # a model may accept no other batch size
                methods |= _on_larger_batch(task, execution, batch)
        return methods
    tensors = tensors_of(inputs)
    is_on_host = _is_on_host(inputs)
    if tensors and (is_on_host or 0 < sum(map(dense_bytes, tensors)) <= 2 * copies.bytes):
        pinned = all(is_pinned(tensor) for tensor in tensors) if is_on_host else copies.pinned
        with suppress(Exception):
            # If steps copy their batch, a CUDA graph of the step reads it from the host.
            copy_first = not is_on_host and not (task.copies and name == "cuda-graph")
            methods |= _on_host_batch(task, execution, inputs, batch, pinned, copy_first)
    return methods


def has_rows(batch: Inputs) -> bool:
    """True if a batch consists of dense tensors with the same number of rows, without lists and numbers.

    A list may contain a tensor for each sample, such as images of several sizes, and a number may count the samples.
    """
    leaves = tree_leaves(batch, is_leaf=lambda part: isinstance(part, list))
    if any(isinstance(leaf, list | int | float) for leaf in leaves):
        return False
    tensors = tensors_of(batch)
    dense = all(tensor.layout == torch.strided and tensor.dim() for tensor in tensors)
    return dense and len({len(tensor) for tensor in tensors}) == 1


def dense_bytes(tensor: torch.Tensor) -> int:
    return tensor.nbytes if tensor.layout == torch.strided else 0


def is_pinned(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.is_pinned()


def working_s(task: Task, execution: Execution, watch: Stopwatch, step_time_s: float) -> float:
    """Median seconds of the device's part of a step, with synchronisation; each batch is made beforehand."""
    times_s = []
    for _ in range(max(WORKING_STEPS[0], min(round(WORKING_S / step_time_s), WORKING_STEPS[1]))):
        inputs = task.next_inputs()
        times_s.append(time_block(partial(execution.run, *inputs), 1, watch).wall_s)
        task.end_step()
    return statistics.median(times_s)


class HostCopies(TorchDispatchMode):
    """Counts the bytes of the dense tensors, except scalars, that are copied from host memory to the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.bytes = 0
        self.pinned = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        copied = {torch.ops.aten._to_copy: 0, torch.ops.aten.copy_: 1}.get(func.overloadpacket)
        if copied is not None:
            source = args[copied]
            if source.device.type == "cpu" and result.device.type != "cpu" and source.dim():
                self.bytes += dense_bytes(source)
                self.pinned = self.pinned and is_pinned(source)
        return result


def _on_host_batch(
    task: Task, execution: Execution, inputs: Inputs, batch: Inputs, pinned: bool, copy_first: bool
) -> dict[str, Method]:
    """Methods for the step on a batch in host memory, and for the copy of that batch alone.

    Unless the batch is `pinned`, there are methods for pinned memory too, if possible. `copy_first` is True if
    `next_inputs` copies the batch to the device, False if `execution.run` does.
    """
    host = map_tensors(torch.Tensor.cpu, inputs)
    targets = [tensor.device for tensor in tensors_of(batch)]
    map_batch = map_plain if task.copies else map_tensors  # as in the unmodified step

    def copied(source: Inputs, wait: bool) -> Inputs:
        devices = iter(targets)
        copies: Inputs = map_batch(lambda tensor: tensor.to(next(devices), non_blocking=not wait), source)
        return copies

    def step(source: Inputs, wait: bool, copy_first: bool) -> None:
        execution.run(*(copied(source, wait) if copy_first else source))
        task.bring_back()
        task.end_step()

    dense = all(tensor.layout == torch.strided for tensor in tensors_of(host))
    in_pinned = map_tensors(torch.Tensor.pin_memory, host) if dense and task.arithmetic.device.type == "cuda" else None
    source = in_pinned if pinned and in_pinned else host
    methods = {
        "prepared_s": Method(partial(step, source, not pinned, copy_first)),
        "transfer_s": Method(partial(copied, source, not pinned)),
    }
    if in_pinned and not pinned:
        methods |= {
            "pinned_s": Method(partial(step, in_pinned, False, True)),
            "pinned_transfer_s": Method(partial(copied, in_pinned, False)),
        }
    return methods


def replayed(task: Task, name: str, batch: Inputs) -> tuple[dict[str, Method], bool | None]:
    """The step on a batch on the device as one CUDA graph, and whether it could be captured (None if not tried).

    `task` must not have run yet, since the state of earlier steps would belong to another stream.
    """
    reads_back = task.reads_back
    if reads_back:
        vars(task).update(reads_back=False, observe=lambda *_results: None)
    for group in () if task.optimizer is None else task.optimizer.param_groups:
        if "capturable" in group:  # the optimizer then counts its steps on the device
            group["capturable"] = True
    if why_not_captured(task) is not None:
        return {}, None
    prepare(task, name)
    try:
        with torch.compiler.set_stance("fail_on_recompile") if name == "compile" else nullcontext():
            graph = capture(task, batch)
    except UnsupportedError:
        return {}, False

    def step() -> None:
        graph.replay()
        if not reads_back:
            task.end_step()

    return {"replayed_s": Method(step)}, True


def _on_larger_batch(task: Task, execution: Execution, batch: Inputs) -> dict[str, Method]:
    """The step on LARGER_BATCH times the rows; empty if its memory would exceed FREE_SHARE of the free memory."""
    free_bytes = FREE_SHARE * available_bytes()
    peak_bytes = status_bytes(Path("/proc/self"), "VmHWM")
    if peak_bytes is None or LARGER_BATCH * peak_bytes > free_bytes:
        needed_bytes = grown_bytes(_step_with(task, execution, batch)) + sum(map(dense_bytes, tensors_of(batch)))
        if LARGER_BATCH * needed_bytes > free_bytes:
            return {}
    larger = map_tensors(lambda tensor: torch.cat([tensor] * LARGER_BATCH), batch)
    step = _step_with(task, execution, larger)
    step()
    return {"larger_s": Method(step)}


@dataclass(frozen=True)
class Method:
    step: Step
    setting: Callable[[], AbstractContextManager[object]] = nullcontext
    """Makes the context in which the step runs; entering and leaving it is not timed."""


def time_interleaved(methods: Mapping[str, Method], block_min_s: float, watch: Stopwatch) -> dict[str, float]:
    """Seconds of a step with each method: the median of synchronised blocks that last about `block_min_s` or longer.

    The first method is the unmodified step; other methods that raise errors are skipped. A step of at least ALONE_S is
    a block by itself, and its first two runs are kept. Every second round is in reverse order, so that a steady drift
    affects all methods alike.
    """
    unmodified = next(iter(methods))
    samples_s: dict[str, list[float]] = {name: [] for name in methods}

    def add_block(name: str, steps: int) -> None:
        method = methods[name]
        try:
            with method.setting():
                if steps > 1:
                    time_block(method.step, 1, watch)
                samples_s[name].append(time_block(method.step, steps, watch).wall_s / steps)
        except Exception:
            if name == unmodified:
                raise
            del samples_s[name]

    with without_garbage_collection():
        for name in [*methods, *list(methods)[::-1]]:
            if name in samples_s:
                add_block(name, 1)
        shortest_s = {name: max(min(times_s), 1e-9) for name, times_s in samples_s.items()}
        steps = {name: 1 if s >= ALONE_S else max(2, math.ceil(block_min_s / s)) for name, s in shortest_s.items()}
        for name, times_s in samples_s.items():
            if steps[name] > 1:
                times_s.clear()
        for number in range(ROUNDS):
            for name in list(methods)[:: -1 if number % 2 else 1]:
                if name in samples_s and len(samples_s[name]) < ROUNDS:
                    add_block(name, steps[name])
    return {name: statistics.median(times_s) for name, times_s in samples_s.items()}

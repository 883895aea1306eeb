"""Remedies for a slow step, each a way to run it without one of its causes: loader, transfer, launches, threads.

What a step gains by a remedy is what its cause costs. On an accelerator the batch is first prepared in host memory,
then pinned, then held on the device, and then the step on the held batch is replayed as one CUDA graph. On a CPU the
batch is held, the step runs on fewer threads, and on a larger batch, whose further rows cost no further calls.

A remedy that raises anything is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.config.words import LARGER_BATCH
from crossover.errors import UnsupportedError
from crossover.machine.kernel import available_bytes
from crossover.measurement.clock.timing import Stopwatch, time_block
from crossover.measurement.clock.turns import Way, time_in_turns
from crossover.measurement.memory.memory_host import measure_host, status_bytes
from crossover.measurement.step.execution import Execution, capture, prepare, why_not_captured
from crossover.measurement.step.operators import host_work_s
from crossover.measurement.step.tasks import Task
from crossover.measurement.step.trees import map_tensors, tensors_of

Inputs = tuple[Any, ...]


LONGEST_STEP_S = 1.0
"""Longer steps have no remedies tried, which would take half a minute."""
LONGEST_TWICE_S = 0.05
"""Longer steps have them tried in a cell's first trial alone."""
TURN_S = 0.01
"""Length of a block of a remedy; the median of three needs no more."""
FEWER_THREADS_S = 0.05
"""Longer steps have no use for fewer threads, and would take long on them."""
FREE_SHARE = 0.5
"""Share of the free memory that a larger batch may take."""


def time_remedies(
    task: Task, execution: Execution, name: str, step_time_s: float, build: Callable[[], Task], watch: Stopwatch
) -> dict[str, Any]:
    """Time the step as it is and with each remedy in turns; returns columns of `Measurement`.

    `name` is that of the execution; `build` makes the task anew, as a CUDA graph takes it. Leaves other weights, and
    holds memory of its own. Raises what the step as it is raises.
    """
    columns: dict[str, Any] = {"working_s": working_s(task, execution, watch, step_time_s)}
    with HostCopies() as copies:
        inputs = task.next_inputs()
    held = held_batch(inputs, task.arithmetic.device)
    ways = remedies_of(task, execution, name, step_time_s, inputs, held, copies)
    if task.arithmetic.device.type == "cuda" and name != "cuda-graph":
        with suppress(Exception):
            replay, columns["fits_graph"] = replayed(build(), name, held)
            ways |= replay
    with suppress(Exception), _uncompiled(name):
        columns["host_work_s"] = host_work_s(_step_on(task, execution, held))
    return columns | time_in_turns(ways, TURN_S, watch)


def held_batch(inputs: Inputs, device: torch.device) -> Inputs:
    """The batch as the device holds it; a tensor that stays on the host beside others on the device stays there."""
    return map_tensors(lambda tensor: tensor.to(device), inputs) if _is_late(inputs) else inputs


def _is_late(inputs: Inputs) -> bool:
    """Whether the whole batch lies on the host, so that only the step copies it."""
    return all(tensor.device.type == "cpu" for tensor in tensors_of(inputs))


def _step_on(task: Task, execution: Execution, batch: Inputs) -> Callable[[], None]:
    def step() -> None:
        execution.run(*batch)
        task.end_step()

    return step


def _uncompiled(name: str) -> Any:
    """What no operator is hidden in, as one is in compiled code."""
    return torch.compiler.set_stance("force_eager") if name == "compile" else nullcontext()


def remedies_of(
    task: Task,
    execution: Execution,
    name: str,
    step_time_s: float,
    inputs: Inputs,
    held: Inputs,
    copies: HostCopies,
) -> dict[str, Way]:
    """The step as it is, first, and with each remedy but a CUDA graph, by column of `Measurement`."""
    on_held = _step_on(task, execution, held)
    ways = {"split_step_s": Way(execution.step), "loading_s": Way(task.next_inputs), "held_s": Way(on_held)}
    if task.arithmetic.device.type == "cpu":
        if step_time_s < FEWER_THREADS_S:
            ways |= _on_fewer_threads(on_held)
        # A compiled model would compile anew, and what is no batch of rows has no four times of them.
        if name != "compile" and task.batched and are_rows(held) and LARGER_BATCH * step_time_s <= LONGEST_STEP_S:
            with suppress(Exception):  # a model may take batches of one size only
                ways |= _larger(task, execution, held)
        return ways
    tensors = tensors_of(inputs)
    late = _is_late(inputs)
    if tensors and (late or 0 < sum(map(dense_bytes, tensors)) <= 2 * copies.bytes):
        pinned = all(is_pinned(tensor) for tensor in tensors) if late else copies.pinned
        with suppress(Exception):
            ways |= _from_the_host(task, execution, inputs, held, pinned, early=not late)
    return ways


def are_rows(batch: Inputs) -> bool:
    """Whether a batch is dense tensors with a row for each sample, without lists and numbers.

    A list may hold a tensor for each sample, such as images of unlike sizes, and a number may count the samples.
    """
    leaves = tree_leaves(batch, is_leaf=lambda part: isinstance(part, list))
    if any(isinstance(leaf, list | int | float) for leaf in leaves):
        return False
    tensors = tensors_of(batch)
    dense = all(tensor.layout == torch.strided and tensor.dim() for tensor in tensors)
    return dense and len({len(tensor) for tensor in tensors}) == 1


def dense_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor; 0 for a sparse one, which has no single block of them."""
    return tensor.nbytes if tensor.layout == torch.strided else 0


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies in pinned memory, as no sparse one does."""
    return tensor.layout == torch.strided and tensor.is_pinned()


def working_s(task: Task, execution: Execution, watch: Stopwatch, step_time_s: float) -> float:
    """Median seconds of a step without taking its batch, synchronised, within whole steps."""
    found = []
    for _ in range(max(WORKING_STEPS[0], min(round(WORKING_S / step_time_s), WORKING_STEPS[1]))):
        inputs = task.next_inputs()
        found.append(time_block(lambda: execution.run(*inputs), 1, watch).wall_s)  # noqa: B023 - run at once
        task.end_step()
    return statistics.median(found)


WORKING_S = 0.05
WORKING_STEPS = (3, 200)
"""Fewest and most of these steps."""


class HostCopies(TorchDispatchMode):
    """Sums up what operations copy from host memory to the device; single numbers do not count."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0
        self.pinned = True
        """Whether all of it came from pinned memory."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        copied = {torch.ops.aten._to_copy: 0, torch.ops.aten.copy_: 1}.get(func.overloadpacket)
        if copied is not None:
            source = args[copied]
            if source.device.type == "cpu" and result.device.type != "cpu" and source.dim():
                self.bytes += dense_bytes(source)
                self.pinned = self.pinned and is_pinned(source)
        return result


def _from_the_host(
    task: Task, execution: Execution, inputs: Inputs, held: Inputs, pinned: bool, early: bool
) -> dict[str, Way]:
    """The step on a batch in host memory: as the step's own, and pinned; and the copies alone.

    `early`: whether `next_inputs` copies it, rather than the step's forward pass.
    """
    host = map_tensors(torch.Tensor.cpu, inputs)

    def copied(batch: Inputs, wait: bool) -> Inputs:
        devices = iter([tensor.device for tensor in tensors_of(held)])
        return map_tensors(lambda tensor: tensor.to(next(devices), non_blocking=not wait), batch)  # type: ignore[no-any-return]

    def step(batch: Inputs, wait: bool, early: bool) -> None:
        execution.run(*(copied(batch, wait) if early else batch))
        task.end_step()

    dense = all(tensor.layout == torch.strided for tensor in tensors_of(host))
    fixed = map_tensors(torch.Tensor.pin_memory, host) if dense and task.arithmetic.device.type == "cuda" else None
    own = fixed if pinned and fixed else host
    ways = {
        "prepared_s": Way(partial(step, own, not pinned, early)),
        "transfer_s": Way(partial(copied, own, not pinned)),
    }
    if fixed and not pinned:
        ways |= {
            "pinned_s": Way(partial(step, fixed, False, True)),
            "pinned_transfer_s": Way(partial(copied, fixed, False)),
        }
    return ways


def replayed(task: Task, name: str, held: Inputs) -> tuple[dict[str, Way], bool | None]:
    """The step on a held batch as one CUDA graph, and whether one can hold it; None if that was not tried.

    The task is one that has not run yet: what it keeps of earlier steps would belong to another stream. Its results are
    not read back. A compiled step runs the code that is there: a model for which it would compile anew raises.
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
            graph = capture(task, held)
    except UnsupportedError:
        return {}, False

    def step() -> None:
        graph.replay()
        if not reads_back:
            task.end_step()

    return {"replayed_s": Way(step)}, True


def _on_fewer_threads(step: Callable[[], None]) -> dict[str, Way]:
    threads = torch.get_num_threads()
    fewer = {"one_thread_s": 1} if threads > 1 else {}
    if threads > 3:
        fewer["half_threads_s"] = threads // 2
    return {name: Way(step, partial(_threads, count)) for name, count in fewer.items()}


def _larger(task: Task, execution: Execution, held: Inputs) -> dict[str, Way]:
    """The step on LARGER_BATCH times the rows; empty where they would not fit into free memory."""
    if not _four_times_fit(_step_on(task, execution, held), sum(map(dense_bytes, tensors_of(held)))):
        return {}
    larger = map_tensors(lambda tensor: torch.cat([tensor] * LARGER_BATCH), held)
    step = _step_on(task, execution, larger)
    step()
    return {"larger_s": Way(step)}


def _four_times_fit(step: Callable[[], None], batch_bytes: int) -> bool:
    """Whether LARGER_BATCH times what a step adds to this process, with as much of its batch, fits into free memory."""
    free_bytes = FREE_SHARE * available_bytes()
    most_bytes = status_bytes(Path("/proc/self"), "VmHWM")
    if most_bytes is not None and LARGER_BATCH * most_bytes <= free_bytes:
        return True  # all that the process ever held is no less
    memory = measure_host(step)
    step_bytes: int = memory["peak_rss_bytes"] - memory["base_rss_bytes"]
    return LARGER_BATCH * (step_bytes + batch_bytes) <= free_bytes


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

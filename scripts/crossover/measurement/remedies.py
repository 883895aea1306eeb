"""Remedies for a slow step, each a way to run it without one of its causes: loader, transfer, launches, threads.

What a step gains by a remedy is what its cause costs. On an accelerator the batch is first prepared in host memory,
then pinned, then held on the device, and then the step on the held batch is replayed as one CUDA graph. On a CPU the
batch is held, the step runs on fewer threads, and on a larger batch, whose further rows cost no further calls.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from crossover.config.words import LARGER_BATCH
from crossover.errors import UnsupportedError
from crossover.measurement.clock.timing import Stopwatch, time_block
from crossover.measurement.clock.turns import Way
from crossover.measurement.step.endings import unless_out_of_memory
from crossover.measurement.step.execution import Execution, capture, why_not_captured
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


def remedies_of(
    task: Task, execution: Execution, name: str, step_time_s: float, build: Callable[[], Task]
) -> dict[str, Way]:
    """The step as it is and with each remedy, by column of `Measurement`.

    `name` is that of the execution; `build` makes the task anew. Leaves other weights, and holds memory of its own.
    """
    with HostCopies() as copies:
        inputs = task.next_inputs()
    device = task.arithmetic.device
    held = map_tensors(lambda tensor: tensor.to(device), inputs)

    def on(batch: Inputs) -> Callable[[], None]:
        def step() -> None:
            execution.run(*batch)
            task.end_step()

        return step

    ways = {"split_step_s": Way(execution.step), "loading_s": Way(task.next_inputs), "held_s": Way(on(held))}
    if device.type == "cpu":
        if step_time_s < FEWER_THREADS_S:
            ways |= _on_fewer_threads(on(held))
        # A compiled model would compile anew, and what is no batch of rows has no four times of them.
        return ways if name == "compile" or not task.batched else ways | _larger(on, held, execution.run)
    host = map_tensors(torch.Tensor.cpu, inputs)
    tensors = tensors_of(inputs)
    late = tensors[0].device.type == "cpu"
    if late or 2 * copies.bytes >= sum(tensor.nbytes for tensor in tensors):
        pinned = all(tensor.is_pinned() for tensor in tensors) if late else copies.pinned
        ways |= _from_the_host(task, execution, host, pinned, early=not late)
    if name != "cuda-graph":
        nothing: dict[str, Way] = {}
        with suppress(UnsupportedError):
            ways |= unless_out_of_memory(lambda: _replayed(build(), held), nothing)
    return ways


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
                self.bytes += source.nbytes
                self.pinned = self.pinned and source.is_pinned()
        return result


def _from_the_host(task: Task, execution: Execution, host: Inputs, pinned: bool, early: bool) -> dict[str, Way]:
    """The step on a batch in host memory: as the step's own, and pinned; and the copies alone.

    `early`: whether `next_inputs` copies it, rather than the step's forward pass.
    """
    device = task.arithmetic.device

    def copied(batch: Inputs, wait: bool) -> Inputs:
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=not wait), batch)  # type: ignore[no-any-return]

    def step(batch: Inputs, wait: bool, early: bool) -> None:
        execution.run(*(copied(batch, wait) if early else batch))
        task.end_step()

    fixed = map_tensors(torch.Tensor.pin_memory, host) if device.type == "cuda" else None
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


def _replayed(task: Task, held: Inputs) -> dict[str, Way]:
    """The step on a held batch as one CUDA graph; empty where none can hold it.

    The task is one that has not run yet: what it keeps of earlier steps would belong to another stream. Its results are
    not read back.
    """
    reads_back = task.reads_back
    if reads_back:
        vars(task).update(reads_back=False, observe=lambda *_results: None)
    for group in () if task.optimizer is None else task.optimizer.param_groups:
        if "capturable" in group:  # the optimizer then counts its steps on the device
            group["capturable"] = True
    if why_not_captured(task) is not None:
        return {}
    graph = capture(task, held)

    def step() -> None:
        graph.replay()
        if not reads_back:
            task.end_step()

    return {"replayed_s": Way(step)}


def _on_fewer_threads(step: Callable[[], None]) -> dict[str, Way]:
    threads = torch.get_num_threads()
    fewer = {"one_thread_s": 1} if threads > 1 else {}
    if threads > 3:
        fewer["half_threads_s"] = threads // 2
    return {name: Way(step, partial(_threads, count)) for name, count in fewer.items()}


def _larger(on: Callable[[Inputs], Callable[[], None]], held: Inputs, run: Callable[..., None]) -> dict[str, Way]:
    """The step on LARGER_BATCH times the rows; empty where the memory or the model does not take them."""
    try:
        larger = map_tensors(lambda tensor: torch.cat([tensor] * LARGER_BATCH), held)
        run(*larger)
    except Exception:  # a model may take batches of one size only
        return {}
    return {"larger_s": Way(on(larger))}


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

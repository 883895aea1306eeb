"""Executions of a task's step: eager, with its model compiled, or as a CUDA graph."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten

from crossover.errors import UnsupportedError, shown_text
from crossover.measurement.step.endings import early_end, first_line
from crossover.measurement.step.tasks import Task, TrainingTask, step_results
from crossover.measurement.step.trees import map_tensors, tensors_of

CAPTURE_WARMUP_STEPS = 3
"""Steps on a side stream before a capture, as in torch's notes on CUDA graphs."""

COMPARED_BATCHES = 8
COMPARED_S = 1.0
"""Maximum number of batches, and of seconds, in the check for changing batches before a compilation or capture."""

RECOMPILED_MAX = 4
"""Number of recompilations allowed; torch gives up after 8 and runs eagerly."""

READ_BY_HOST_MAX = 4096
"""An integer tensor on the host, such as lengths, is compared by value if it has at most this many elements."""


@dataclass(frozen=True)
class Execution:
    step: Callable[[], None]
    run: Callable[..., None]
    bind: Callable[[], Callable[[], object]] | None = None
    """Makes `timed_step`; None if that is `step`."""
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    """Makes the context of a block of `timed_step`."""
    compile_s: Callable[[], float | None] = lambda: None
    """Seconds of compilation or capture so far; None for an eager step."""
    compilations: Callable[[], int] = lambda: 0
    dynamic_shapes: bool | None = None
    """None if the step is not compiled."""
    check_compilations: Callable[[], None] | None = None
    """Raises UnsupportedError for a step that is recompiled again and again; called after synchronisations."""
    results: Callable[[], list[torch.Tensor]] | None = None
    """The results of a CUDA graph's last replay, as `step_results` returns them; None for other steps."""

    def timed_step(self) -> Callable[[], object]:
        """The step for the loops that are timed, within `around`; call this after a first `step`."""
        return self.step if self.bind is None else self.bind()


def prepare(task: Task, execution: str) -> Execution:
    """Prepare a task's step for an execution; raises UnsupportedError if the step cannot be compiled or captured."""
    if execution == "compile":
        return _compiled(task)
    if execution == "cuda-graph":
        return _captured(task)
    return Execution(task.step, task.run, task.timed_step, task.around)


def _compiled(task: Task) -> Execution:
    """The step with its model compiled; the rest, such as the optimizer, stays eager."""
    import torch._dynamo.utils
    import torch._inductor.config

    if (reason := _compiler_missing(task.arithmetic.device)) is not None:
        raise UnsupportedError(reason)
    inductor: Any = torch._inductor.config
    inductor.force_disable_caches = True  # otherwise a second trial would take its code from the cache
    is_dynamic = changing_batches(task)[1] is not None
    model: Any = task.model
    # model.compile() would compile nothing if `forward` is torch's own, as in a Sequential. With dynamic=None, a batch
    # of another shape would change the graph of later passes.
    model.forward = torch.compile(model.forward, dynamic=is_dynamic)
    dynamo: Any = torch._dynamo.utils
    return Execution(
        task.step,
        task.run,
        task.timed_step,
        task.around,
        compile_s=lambda: float(dynamo.calculate_time_spent()["total_wall_time"]),
        compilations=compiled_graphs,
        dynamic_shapes=is_dynamic,
        check_compilations=_recompilation_check(),
    )


def compiled_graphs() -> int:
    """Number of graphs compiled in this process; does not import dynamo."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters["stats"]["unique_graphs"])


def _recompilation_check() -> Callable[[], None]:
    """Return a check that raises UnsupportedError once more than 1 + RECOMPILED_MAX calls have found new graphs."""
    compiled, recompiled = compiled_graphs(), 0

    def check() -> None:
        nonlocal compiled, recompiled
        before, compiled = compiled, compiled_graphs()
        recompiled += compiled > before
        if recompiled > 1 + RECOMPILED_MAX:
            raise UnsupportedError(
                f"compile recompiles the model in step after step ({recompiled - 1} times after the first): its shapes "
                "or Python values change; keep them fixed, or use execution: eager"
            )

    return check


Signature = tuple[Any, ...]


def changing_batches(task: Task, device: torch.device | None = None) -> tuple[Signature, Signature | None]:
    """The signature of a task's next batch, and the first one after it that differs (None if the next few agree)."""
    first = signature(task.next_inputs(), device)
    deadline_s = time.perf_counter() + COMPARED_S
    for _ in range(COMPARED_BATCHES - 1):
        if time.perf_counter() > deadline_s:
            break
        if (other := signature(task.next_inputs(), device)) != first:
            return first, other
    return first, None


def signature(inputs: Any, device: torch.device | None = None) -> Signature:
    """The properties of a batch that compiled and captured steps assume constant: nesting, shapes, types, plain values.

    With `device`, these include the values of short integer tensors that are not on it, such as lengths that the host
    reads.
    """

    def constant(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return repr(leaf)
        elsewhere = device is not None and leaf.device.type != device.type
        if elsewhere and leaf.numel() <= READ_BY_HOST_MAX and not leaf.dtype.is_floating_point:
            return tuple(leaf.shape), leaf.dtype, leaf.tolist()
        return tuple(leaf.shape), leaf.dtype

    leaves, nesting = tree_flatten(inputs)
    return (str(nesting), *map(constant, leaves))


@contextmanager
def observed(task: Task) -> Iterator[list[torch.Tensor]]:
    """Yield a list that holds the results of the last forward pass in the block, as `step_results` returns them."""
    results: list[torch.Tensor] = []
    observe, own_observe = task.observe, vars(task).get("observe")

    def record(*outputs: torch.Tensor) -> None:
        results[:] = step_results(task, outputs)
        observe(*outputs)

    vars(task)["observe"] = record
    try:
        yield results
    finally:
        del vars(task)["observe"]
        if own_observe is not None:
            vars(task)["observe"] = own_observe


def _compiler_missing(device: torch.device) -> str | None:
    if device.type == "cpu":
        from torch._inductor.cpp_builder import get_cpp_compiler

        try:
            get_cpp_compiler()
        except Exception as error:  # the error's type is private to torch
            return f"compile needs a C++ compiler for the CPU ({first_line(error)}); install one (g++)"
    elif device.type in ("cuda", "xpu"):
        from torch.utils._triton import has_triton

        if not has_triton():
            return "compile needs triton for this GPU; install the triton that belongs to this torch"
    return None


def _captured(task: Task) -> Execution:
    """The step as replays of one CUDA graph, into whose buffers each batch is copied."""
    if (reason := why_not_captured(task)) is not None:
        raise UnsupportedError(f"cuda-graph {reason}")
    device = task.arithmetic.device
    first, other = changing_batches(task, device)
    if other is not None:
        raise UnsupportedError(_batch_change(first, other))
    start_s = time.perf_counter()
    buffers = map_tensors(torch.clone, task.next_inputs())
    with observed(task) as results:
        graph = capture(task, buffers)
    capture_s = time.perf_counter() - start_s
    # A model may require gradients of its inputs.
    targets = [buffer.detach() for buffer in tensors_of(task.part_read(buffers))]

    def sources(inputs: tuple[Any, ...]) -> list[torch.Tensor]:
        tensors = tensors_of(task.part_read(inputs))
        # copy_ would broadcast a batch of another shape
        if any(buffer.shape != tensor.shape for buffer, tensor in zip(targets, tensors, strict=True)):
            raise UnsupportedError(_batch_change(first, signature(inputs, device)))
        return [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]

    def replay(tensors: Sequence[torch.Tensor]) -> None:
        for buffer, tensor in zip(targets, tensors, strict=True):
            buffer.copy_(tensor, non_blocking=task.pinned)
        graph.replay()
        if task.copies:
            task.results = results

    def run(*inputs: Any) -> None:
        replay(sources(inputs))

    def step() -> None:
        run(*task.next_batch())  # the host's batch is copied directly into the buffers
        task.bring_back()
        task.end_step()

    def bind() -> Callable[[], None]:
        """The step; a batch that is the same object in each step is read and checked here, not in each step."""
        batch = task.next_batch()
        if task.samples_taken is not None or batch is not task.next_batch():
            return step
        tensors = sources(batch)

        def on_tensors() -> None:
            replay(tensors)
            task.bring_back()
            task.end_step()

        return on_tensors

    return Execution(step, run, bind, compile_s=lambda: capture_s, results=lambda: results)


def _batch_change(first: Signature, other: Signature) -> str:
    def shown(part: Any) -> str:
        return f"shape {list(part[0])}" if isinstance(part, tuple) and isinstance(part[0], tuple) else shown_text(part)

    before, after = next(((a, b) for a, b in zip(first, other, strict=False) if a != b), (first, other))
    return (
        f"cuda-graph cannot take batches that change: {shown(before)}, then {shown(after)}; give all batches the same "
        "shape (padding, drop_last=True), or use execution: eager"
    )


def capture(task: Task, buffers: tuple[Any, ...]) -> torch.cuda.CUDAGraph:
    """A CUDA graph of a step's device work, which reads `buffers`; raises UnsupportedError if capturing fails."""
    device = task.arithmetic.device
    # Torch would warn if a workload's sum over steps keeps autograd's graph of the warm-up alive. That is harmless.
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    generators_before = host_generators()
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARMUP_STEPS):
            task.run(*buffers)
            task.check_batch(*buffers)
    torch.cuda.current_stream(device).wait_stream(side)
    if host_generators() != generators_before:
        raise UnsupportedError("cuda-graph cannot capture a step that draws random numbers on the host")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            task.run(*buffers)
    except Exception as error:
        if early_end(error) is not None:
            raise
        raise UnsupportedError(f"cuda-graph cannot capture the step: {first_line(error)}") from error
    return graph


def host_generators() -> tuple[object, ...]:
    name, keys, *position = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), name, np.asarray(keys).tobytes(), *position


def why_not_captured(task: Task) -> str | None:
    """Return why a CUDA graph cannot capture a task's step; None if no reason is known before the capture."""
    arithmetic, optimizer = task.arithmetic, task.optimizer
    if arithmetic.device.type != "cuda":
        return f"needs a CUDA device; this is {arithmetic.device.type}"
    if task.reads_back:
        return "cannot capture a step in which the host reads results"
    if arithmetic.scaler is not None and isinstance(task, TrainingTask):
        return "cannot capture amp-fp16: the host reads the loss scaler's verdict in each step"
    if optimizer is not None and not all(group.get("capturable", True) for group in optimizer.param_groups):
        name = type(optimizer).__name__
        return f"cannot capture {name} as this workload sets it up, since it counts its steps on the host"
    return None

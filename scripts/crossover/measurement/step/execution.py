"""Executions: a task's step run eagerly, with its model compiled, or captured whole in a CUDA graph."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from crossover.errors import UnsupportedError
from crossover.measurement.step.endings import early_end
from crossover.measurement.step.tasks import Task, TrainingTask
from crossover.measurement.step.trees import map_tensors, tensors_of

CAPTURE_WARMUP_STEPS = 3
"""Steps on a side stream before a capture, as torch's notes on CUDA graphs ask for."""


@dataclass(frozen=True)
class Execution:
    """A step that is ready to be timed."""

    step: Callable[[], None]
    run: Callable[..., None]
    """The device's work of a step on inputs that are there already."""
    compile_s: Callable[[], float | None] = lambda: None
    """Seconds spent compiling or capturing so far; None for an eager step."""
    compilations: Callable[[], int] = lambda: 0
    """Graphs compiled so far."""


def prepare(task: Task, execution: str) -> Execution:
    """Make a task's step ready; raises UnsupportedError if it cannot run in this execution."""
    if execution == "compile":
        return _compiled(task)
    if execution == "cuda-graph":
        return _captured(task)
    return Execution(task.step, task.run)


def _compiled(task: Task) -> Execution:
    """The step with its model compiled; loss and optimizer stay eager, as users write it."""
    import torch._dynamo.utils
    import torch._inductor.config

    if (reason := _compiler_missing(task.arithmetic.device)) is not None:
        raise UnsupportedError(reason)
    inductor: Any = torch._inductor.config
    inductor.force_disable_caches = True  # or the second trial would seem to compile in no time
    model: Any = task.model
    # Not model.compile(), which compiles nothing if the model's own forward is torch's, as a Sequential's is. Not
    # dynamic, or the numerical check's smaller batch would leave a graph for any batch to the passes after it.
    model.forward = torch.compile(model.forward, dynamic=False)
    dynamo: Any = torch._dynamo.utils
    return Execution(
        task.step,
        task.run,
        lambda: float(dynamo.calculate_time_spent()["total_wall_time"]),
        lambda: int(dynamo.counters["stats"]["unique_graphs"]),
    )


def _compiler_missing(device: torch.device) -> str | None:
    """Why torch.compile cannot generate code for a device; None if it can."""
    if device.type == "cpu":
        from torch._inductor.cpp_builder import get_cpp_compiler

        try:
            get_cpp_compiler()
        except Exception as error:  # its type is private to torch
            return f"compile needs a C++ compiler for the CPU ({str(error).partition(chr(10))[0]}); install one (g++)"
    elif device.type in ("cuda", "xpu"):
        from torch.utils._triton import has_triton

        if not has_triton():
            return "compile needs triton for this GPU; install the triton that belongs to this torch"
    return None


def _captured(task: Task) -> Execution:
    """The device's work of a whole step, captured once and replayed; inputs are copied into its buffers."""
    if (reason := why_not_captured(task)) is not None:
        raise UnsupportedError(f"cuda-graph {reason}")
    start_s = time.perf_counter()
    buffers = map_tensors(torch.clone, task.next_inputs())
    graph = capture(task, buffers)
    capture_s = time.perf_counter() - start_s

    held = tensors_of(buffers)

    def run(*inputs: Any) -> None:
        for buffer, tensor in zip(held, tensors_of(inputs), strict=True):
            buffer.copy_(tensor)
        graph.replay()

    def step() -> None:
        run(*task.next_inputs())
        task.end_step()

    return Execution(step, run, lambda: capture_s)


def capture(task: Task, buffers: tuple[Any, ...]) -> torch.cuda.CUDAGraph:
    """A CUDA graph of the device's work of a step, whose inputs are what `buffers` hold when it is replayed.

    Raises UnsupportedError for a step that runs eagerly but not in a graph, or that would not be the same in one.
    """
    device = task.arithmetic.device
    # A workload's sums over steps keep the graph of the steps on the side stream, which is harmless here.
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    drawn = host_generators()
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARMUP_STEPS):
            task.run(*buffers)
    torch.cuda.current_stream(device).wait_stream(side)
    if host_generators() != drawn:
        raise UnsupportedError("cuda-graph cannot hold a step that draws random numbers on the host")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            task.run(*buffers)
    except Exception as error:
        if early_end(error) is not None:
            raise
        raise UnsupportedError(f"cuda-graph cannot hold the step: {str(error).partition(chr(10))[0]}") from error
    return graph


def host_generators() -> tuple[object, ...]:
    """The state of the host's random generators, which a draw changes."""
    name, keys, *place = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), name, np.asarray(keys).tobytes(), *place


def why_not_captured(task: Task) -> str | None:
    """What keeps a task's step out of a CUDA graph; None if nothing does."""
    arithmetic, optimizer = task.arithmetic, task.optimizer
    if arithmetic.device.type != "cuda":
        return f"needs a CUDA device; this is {arithmetic.device.type}"
    if task.reads_back:
        return "cannot hold a step whose results the host reads in its midst"
    if arithmetic.scaler is not None and isinstance(task, TrainingTask):
        return "cannot hold amp-fp16: the host reads the loss scaler's verdict in each step"
    if optimizer is not None and not all(group.get("capturable", True) for group in optimizer.param_groups):
        name = type(optimizer).__name__
        return f"cannot hold {name} as this workload sets it: its steps are counted on the host"
    return None

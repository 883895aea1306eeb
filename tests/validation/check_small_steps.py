"""Compare the timed loop of small steps with a plain loop of the same work, as `timeit` runs it.

Each line is a step: a function, an inference or a training, in each execution. `added_us` is the difference of the
lower quartiles over blocks of the two loops, which take turns; `noise_us` is that of two plain loops.
"""

from __future__ import annotations

import statistics
import tempfile
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch.nn import functional

from crossover.config.models import read_model
from crossover.config.options import device, new_parser
from crossover.config.studies import Cell
from crossover.config.words import BASELINE
from crossover.machine.threads import confine
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.process.jobs import ProbeJob
from crossover.measurement.process.reservation import reserve
from crossover.measurement.step.conditions import set_switches
from crossover.measurement.step.devices import OpenDevice, open_device
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.workloads import build_task
from crossover.tables.frames import write_csv

MODULE = """
import torch
from torch import nn

def empty(n, device):
    return lambda: None

def total(n, device):
    numbers = list(range(n))
    return lambda: sum(numbers)

def build(width, batch_size):
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(1 if width < 100 else 4)]
    return nn.Sequential(*layers), torch.randn(batch_size, width), torch.randn(batch_size, width)
"""

STEPS = [
    *[("empty", 1), *(("total", n) for n in (10, 100, 1000, 10_000, 100_000))],
    *[(mode, width) for mode in ("infer", "train") for width in (4, 64, 256)],
]
"""A function or mode, and its size."""
BLOCK_S = 0.01
BATCH_SIZE = 8


def plain_step(task: Any, execution: str) -> Step:
    """The step that a user would write for the task; the model, batch and optimizer are the task's own."""
    if task.is_function:
        run: Step = task.user_step.run
        return run
    (values, targets), optimizer = task.resident_batch, task.optimizer
    model = task.model
    if optimizer is None:

        def step() -> None:
            model(values)

    else:

        def step() -> None:
            functional.mse_loss(model(values), targets).backward()
            optimizer.step()
            optimizer.zero_grad()

    if execution != "cuda-graph":
        return step
    return _captured(step, [values] if optimizer is None else [values, targets])


def _captured(step: Callable[[], None], buffers: Sequence[torch.Tensor]) -> Step:
    """Replays of the step, each after a copy of what it reads into its buffers."""
    sources = [buffer.clone() for buffer in buffers]
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        step()

    def replay() -> None:
        for buffer, source in zip(buffers, sources, strict=True):
            buffer.copy_(source)
        graph.replay()

    return replay


def plain_loop(step: Step, synchronise: Callable[[], None]) -> timeit.Timer:
    """Timeit's loop, with a wait before and after it."""

    def now_s() -> float:
        synchronise()
        return timeit.default_timer()

    return timeit.Timer(step, timer=now_s)


def compare(name: str, size: int, execution: str, target: OpenDevice, folder: Path, rounds: int) -> dict[str, Any]:
    is_model = name in ("infer", "train")
    model = read_model(f"{folder / 'small_steps.py'}:{'build' if is_model else name}", folder, "check")
    model = replace(model, mode=name) if is_model else model
    cell = Cell("check", "model", "resident", BATCH_SIZE, "fp32", execution, size, target.device.type, model=model)
    task = build_task(cell, {}, arithmetic_of("fp32", target.device))
    ready = prepare(task, execution)
    watch = Stopwatch(synchronise=target.synchronise, mark=target.mark, between_s=target.between_s, around=ready.around)
    time_block(ready.step, 3, watch)
    timed, plain = ready.timed_step(), plain_loop(plain_step(task, execution), target.synchronise)
    with ready.around():
        steps = max(1, round(BLOCK_S * 100 / plain.timeit(100)))
    samples: dict[str, list[float]] = {"plain": [], "again": [], "timed": []}
    methods: dict[str, Callable[[], float]] = {
        **dict.fromkeys(("plain", "again"), lambda: plain.timeit(steps)),
        "timed": lambda: time_block(timed, steps, watch).wall_s,
    }
    with without_garbage_collection(), ready.around():  # for the plain loop too
        for turn in range(rounds):
            for method in list(methods)[:: -1 if turn % 2 else 1]:
                samples[method].append(methods[method]() / steps * 1e6)
    plain_us, again_us, timed_us = (statistics.quantiles(samples[method])[0] for method in ("plain", "again", "timed"))
    added_us = timed_us - (plain_us + again_us) / 2
    return {
        **{"step": name, "size": size, "execution": execution, "plain_us": plain_us, "added_us": added_us},
        **{"noise_us": abs(again_us - plain_us), "added": f"{added_us / plain_us:.1%}"},
        "within": added_us <= max(1, 0.01 * plain_us),
    }


def rows(kind: str, folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    target = open_device(kind)
    for execution in ("eager", "compile", *(["cuda-graph"] if kind == "cuda" else [])):
        for name, size in STEPS:
            if execution == "eager" or name in ("infer", "train"):
                yield compare(name, size, execution, target, folder, rounds)


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--device", default=BASELINE, type=device)
    parser.add_argument("--rounds", default=200, type=int, help="blocks of each loop")
    parser.add_argument(
        "--output", type=Path, help="CSV file to write (default: results/checks/small_steps-DEVICE.csv)"
    )
    options = parser.parse_args(arguments)
    job = ProbeJob(cell=Cell("check", "model", "resident", 1, "fp32", "eager", 1, options.device), cpu_threads=1)
    with reserve(job) as lease, tempfile.TemporaryDirectory() as name:
        confine(lease.cpus)
        set_switches("fp32", 1)
        (Path(name) / "small_steps.py").write_text(MODULE)
        table = pd.DataFrame(rows(options.device, Path(name), options.rounds))
    write_csv(table, options.output or Path(f"results/checks/small_steps-{options.device}.csv"))
    print(table.to_string(index=False, float_format="%.4g"))

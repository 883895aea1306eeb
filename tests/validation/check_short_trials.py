"""Time a step with the default effort and then for longer in the same process, and compare the two times.

    python tests/validation short_trials --devices cpu cuda --minutes=8

After the short timing, a process warms up for two more seconds and times for one. The ratio of the two times, short
over long, shows whether the warm-up of a short trial is long enough. As both times are from one process, the ratio does
not contain the spread between processes. The table also has the standard deviations of both logarithms. An interrupted
check can be continued, and extended with more minutes or pairs.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from pairs import check_cell, collect_pairs, dataset_file, pair_options, write_comparison

from crossover.config.studies import Cell, Effort
from crossover.config.words import CUDA_GRAPH, EXECUTIONS, is_cpu
from crossover.machine.threads import usable_cores

LENGTHS = ("long", "short")
CELL = ["workload", "size", "execution", "device"]
CELLS = {"tiny": ("disc_mlp", 100, 4), "wide": ("higgs_mlp", 32, 1000), "large": ("linear_stack", 512, 4096)}
"""Workload, batch size and size of cells with steps of 0.05 to 100 ms."""
LONG = Effort(warmup_min_s=2.0, warmup_accelerator_min_s=2.0, timed_min_s=1.0, timed_max_s=1.0)
MARGIN = 0.01


def time_short_and_long(cell: Cell, dataset: str | None) -> dict[str, float]:
    """The step time in s with the default effort (`short`) and then with the longer one (`long`)."""
    from crossover.measurement.cell import open_cell
    from crossover.measurement.clock.timing import Stopwatch, time_steps
    from crossover.measurement.process.jobs import TrialJob
    from crossover.measurement.step.execution import prepare

    job = TrialJob(
        cell=cell, trial=1, seed=0, dataset=dataset, output="", threads=usable_cores(), time_limit_s=600.0,
        effort=Effort(),
    )  # fmt: skip
    opened = open_cell(job)
    task = opened.build(opened.data(), opened.arithmetic(), job.seed)
    step = prepare(task, cell.execution).step
    watch = Stopwatch(
        synchronise=opened.target.synchronise,
        mark=opened.target.mark,
        between_s=opened.target.between_s,
    )
    return {
        name: time_steps(step, task.cycle_steps, effort.on(cell.device), watch)[0]["step_time_s"]
        for name, effort in {"short": Effort(), "long": LONG}.items()
    }


def main(arguments: list[str]) -> None:
    parser = pair_options(__doc__, CELLS, [*CELLS])
    parser.add_argument("--executions", nargs="+", default=["eager"], choices=EXECUTIONS)
    parser.add_argument("--output", default=Path("results/checks/short_trials.csv"), type=Path, help="file to write")
    options = parser.parse_args(arguments)
    until_s = time.monotonic() + 60 * options.minutes
    cells = {
        f"{name} {device} {execution}": replace(check_cell(*CELLS[name], device), execution=execution)
        for device in options.devices
        for execution in options.executions
        for name in options.cells
        if not (execution == CUDA_GRAPH and is_cpu(device))
    }
    fresh = multiprocessing.get_context("forkserver")
    fresh.set_forkserver_preload(["crossover.measurement.trial"])
    path = options.output.with_suffix(".pairs.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with fresh.Pool(1, maxtasksperchild=1) as processes:

        def measure(name: str) -> dict[str, object]:
            cell = cells[name]
            file = dataset_file(cell.workload, path.parent)
            times = processes.apply(partial(time_short_and_long, cell, file and str(file)))
            return {axis: getattr(cell, axis) for axis in CELL} | times

        samples = collect_pairs(
            [*cells],
            options.pairs,
            path,
            lambda names, _pair: measure(" ".join(names)),
            lambda: time.monotonic() < until_s,
        )
    write_comparison(samples, CELL, *LENGTHS, options.output, MARGIN)

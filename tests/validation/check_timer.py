"""Compare the step times of a trial with those of a plain loop and of torch.utils.benchmark.Timer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from pairs import check_cell, dataset_file, pair_table
from torch.utils.benchmark import Timer

from crossover.config.options import device, new_parser, positive
from crossover.config.studies import Effort
from crossover.config.words import BASELINE
from crossover.machine.threads import confine
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, time_steps
from crossover.measurement.process.reservation import reserve
from crossover.measurement.step.conditions import set_switches
from crossover.measurement.step.devices import open_device
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.workloads import build_task, read_dataset
from crossover.tables.frames import write_csv

CELLS = (("disc_mlp", 100, (3, 8, 10)), ("higgs_mlp", 32, (100, 1000)))
"""Workload, batch size and sizes."""
MARGINS = {True: 0.05, False: 0.02}
"""Equivalence margins, on the CPU (True), which other work on the machine disturbs, and on other devices."""

EFFORT = Effort(warmup_min_steps=1, warmup_min_s=0.02, warmup_max_s=0.02, timed_min_s=0.1, timed_max_s=0.1)
"""A short effort, so that a machine whose speed drifts changes little within a round."""

STEP_S = 100e-6
"""Duration of the step with which the overhead of the harness is compared."""


def three_methods(
    step: Step, cycle_steps: int, watch: Stopwatch, threads: int, rounds: int
) -> Iterator[dict[str, float]]:
    """Yield the step time by each method, for each round; the order of the methods rotates."""
    steps = time_steps(step, cycle_steps, EFFORT, watch)[0]["timed_steps"]
    timer = Timer("step()", globals={"step": step}, num_threads=threads)
    methods: list[tuple[str, Callable[[], float]]] = [
        ("trial_s", lambda: float(time_steps(step, cycle_steps, EFFORT, watch)[0]["step_time_s"])),
        ("by_hand_s", lambda: by_hand_s(step, steps, watch.synchronise)),
        ("timer_s", lambda: float(timer.timeit(steps).median)),
    ]
    for turn in range(rounds):
        order = methods[turn % 3 :] + methods[: turn % 3]
        yield {name: method() for name, method in order}


def by_hand_s(step: Step, steps: int, synchronise: Step) -> float:
    """Step time in s by a plain loop after a short warm-up."""
    for _ in range(max(3, steps // 10)):
        step()
    synchronise()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    synchronise()
    return (time.perf_counter() - start) / steps


def harness_cost_s(watch: Stopwatch) -> float:
    """Time in s that the harness adds to a step, from blocks of as many empty steps as steps of STEP_S fill a block."""
    steps = round(EFFORT.block_min_s / STEP_S)
    return statistics.median(time_block(lambda: None, steps, watch).wall_s for _ in range(500)) / steps


def measure(device: str, folder: Path, rounds: int, threads: int) -> pd.DataFrame:
    """Step times in s by each method, one row per cell and round; prints the overhead of the harness."""
    target = open_device(device)
    watch = Stopwatch(synchronise=target.synchronise, mark=target.mark, between_s=target.between_s)
    cost_s = harness_cost_s(watch)
    print(f"{device}: the harness adds {cost_s * 1e9:.0f} ns to a step, {cost_s / STEP_S:.2%} of one of 100 us")
    rows = []
    cells = [check_cell(workload, batch_size, size, device) for workload, batch_size, sizes in CELLS for size in sizes]
    for cell in cells:
        set_switches(cell.precision, threads)
        data = read_dataset(str(dataset_file(cell.workload, folder)), cell.workload)
        task = build_task(cell, data, arithmetic_of(cell.precision, target.device))
        for times in three_methods(task.step, task.cycle_steps, watch, threads, rounds):
            rows.append({"device": device, "workload": cell.workload, "size": cell.size, **times})
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--device", default=BASELINE, type=device)
    parser.add_argument("--pairs", default=80, type=positive, help="rounds of each cell, each with all three methods")
    parser.add_argument("--output", type=Path, help="CSV file to write (default: results/checks/timer-DEVICE.csv)")
    options = parser.parse_args(arguments)
    output = options.output or Path(f"results/checks/timer-{options.device}.csv")
    with reserve(options.device, "auto", "check_timer") as lease:
        confine(lease.cpus)
        samples = measure(options.device, output.parent, options.pairs, lease.threads)
    by, margin = ["device", "workload", "size"], MARGINS[options.device == BASELINE]
    tables = [
        pair_table(samples, by, method, "trial_s", margin).rename(columns={method: "other_s"}).assign(other=method[:-2])
        for method in ("by_hand_s", "timer_s")
    ]
    table = pd.concat(tables)
    write_csv(table, output)
    print(table.to_string(index=False, float_format="%.4g"))

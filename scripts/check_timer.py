"""Times steps in turn as trials do, by a loop written by hand and by torch.utils.benchmark.Timer."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pandas as pd

from crossover.checks.checks import pair_table
from crossover.config.studies import Cell
from crossover.config.words import BASELINE, DEVICES
from crossover.errors import one_line_errors
from crossover.machine.threads import confine
from crossover.measurement.process.holding import holding
from crossover.tables.frames import write_csv

BATCHES = {"disc_mlp": 100, "higgs_mlp": 32}
TOLERANCES = {True: 0.05, False: 0.02}
"""By whether it is the CPU, which other work on the machine reaches."""


def measure(
    device: str, datasets: dict[str, Path], sizes: dict[str, list[int]], rounds: int, threads: int
) -> pd.DataFrame:
    """One row a round and cell, in seconds; prints the harness's cost."""

    from crossover.measurement.clock.agreement import STEP_S, harness_cost_s, three_ways
    from crossover.measurement.clock.timing import Stopwatch
    from crossover.measurement.step.conditions import set_switches
    from crossover.measurement.step.devices import open_device
    from crossover.measurement.step.precision import arithmetic_of
    from crossover.measurement.workloads import build_task, read_dataset

    target = open_device(device)
    watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, target.synchronise, target.mark, target.between_s)
    cost_s = harness_cost_s(watch)
    print(f"{device}: the harness adds {cost_s * 1e9:.0f} ns to a step, {cost_s / STEP_S:.2%} of one of 100 us")
    rows = []
    for workload, own_sizes in sizes.items():
        for size in own_sizes:
            cell = Cell("check", workload, "resident", BATCHES[workload], "fp32", "eager", size, device)
            set_switches(cell.precision, threads)
            data = read_dataset(str(datasets[workload]), workload)
            task = build_task(cell, data, arithmetic_of(cell.precision, target.device))
            rows += [
                {"device": device, "workload": workload, "size": size, **times}
                for times in three_ways(task.step, task.cycle_steps, watch, threads, rounds)
            ]
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> None:
    """Compare on one device, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=BASELINE, choices=DEVICES)
    parser.add_argument("--disc", required=True, type=Path, help="the disc dataset")
    parser.add_argument("--higgs", required=True, type=Path, help="the higgs dataset")
    parser.add_argument("--rounds", default=80, type=int)
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    with holding(options.device, "auto", "check_timer") as held:
        confine(held.cpus)
        datasets = {"disc_mlp": options.disc, "higgs_mlp": options.higgs}
        sizes = {"disc_mlp": [3, 8, 10], "higgs_mlp": [100, 1000]}
        samples = measure(options.device, datasets, sizes, options.rounds, held.threads)
    tolerance = TOLERANCES[options.device == BASELINE]
    by = ["device", "workload", "size"]
    tables = [
        pair_table(samples, by, other, "trial_s", tolerance).rename(columns={other: "other_s"}).assign(other=other[:-2])
        for other in ("by_hand_s", "timer_s")
    ]
    table = pd.concat(tables)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Time the same steps alternately as in a trial, with a hand-written loop and with torch.utils.benchmark.Timer."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from pairs import check_cell, dataset_file, pair_table

from crossover.config.options import device, new_parser, positive
from crossover.config.words import BASELINE
from crossover.machine.threads import confine
from crossover.measurement.process.reservation import reserve
from crossover.tables.frames import write_csv

CELLS = (("disc_mlp", 100, (3, 8, 10)), ("higgs_mlp", 32, (100, 1000)))
"""Workload, batch size and sizes."""
MARGINS = {True: 0.05, False: 0.02}
"""Equivalence margins by whether the device is the CPU, which other work on the machine disturbs."""


def measure(device: str, folder: Path, rounds: int, threads: int) -> pd.DataFrame:
    """One row per cell and round, in seconds; prints the harness's cost."""

    from agreement import STEP_S, harness_cost_s, three_methods

    from crossover.measurement.clock.timing import Stopwatch
    from crossover.measurement.step.conditions import set_switches
    from crossover.measurement.step.devices import open_device
    from crossover.measurement.step.precision import arithmetic_of
    from crossover.measurement.workloads import build_task, read_dataset

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
    """Compare on one device, write the table and print it."""
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

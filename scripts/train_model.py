"""Train one model, predict held-out rows, and write one Parquet row.

    python scripts/train_model.py --study=quality --workload=higgs_mlp --batch-size=32 --precision=fp32 --size=100 \
        --device=cpu --seed=1 --epochs=1 --dataset=results/datasets/higgs.safetensors --output=training.parquet

The same seed gives the same initial weights and the same order of rows on every device; only the arithmetic differs. If
the training runs out of memory, exceeds the time limit, crashes, diverges or is not supported, the exit status is still
0, and the row has the reason. The training runs in a separate process. This command only supervises that process and
holds the GPU's lease.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from crossover.config.options import (
    add_cell_options,
    add_number,
    add_process_options,
    cell_of_options,
    check_writable,
    new_parser,
    positive,
)
from crossover.config.studies import Trainings
from crossover.config.workloads import trains
from crossover.errors import UserError, one_line_errors
from crossover.machine.invocation import code_version
from crossover.time_limits import note_end


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add_cell_options(parser).add_argument("--batch-size", required=True, type=positive)
    training = parser.add_argument_group("training")
    add_number(training, Trainings, "epochs", help="passes over the training set")
    add_number(training, Trainings, "test_share", help="share of the dataset's rows that is held out")
    add_process_options(training)
    training.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    options = parser.parse_args(arguments)
    for name, only in (("protocol", "resident"), ("execution", "eager")):
        if getattr(options, name) != only:
            parser.error(f"argument --{name}: {getattr(options, name)} changes no model; allowed: {only}")
    return options


def main(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    if not trains(options.workload):
        raise UserError(
            f"--workload: '{options.workload}' does not train on resident data with labels; allowed: one that does"
        )
    cell = cell_of_options(options)
    check_writable(options.output)

    from crossover.measurement.process.attempts import measure
    from crossover.measurement.process.jobs import TrainingJob
    from crossover.measurement.process.reservation import job_fields, reserve

    with reserve(cell.device, options.cpu_threads) as host:
        job = TrainingJob(
            **job_fields(cell, options, host),
            epochs=options.epochs,
            test_share=options.test_share,
            output=str(options.output),
            command=shlex.join(["python3", sys.argv[0], *arguments]),
            code_version=code_version(),
        )
        note_end(options.limit_note, options.time_limit_s, measure(job).reason)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

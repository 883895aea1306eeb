"""Train one model, predict held-out rows, and write one Parquet row.

    python scripts/train_model.py \\
        '{"cell": {"workload": "higgs_mlp", "size": 100, "batch_size": 32}, "epochs": 1, "test_share": 0.33}' \\
        --device=cpu --seed=1 --dataset=results/datasets/higgs.safetensors --output=training.parquet

The same seed gives the same initial weights and the same order of rows on every device; only the arithmetic differs. If
the training runs out of memory, exceeds the time limit, crashes, diverges or is not supported, the exit status is still
0, and the row has the reason. The training runs in a separate process. This command only supervises that process and
holds the GPU's lease.
"""

from __future__ import annotations

import sys

from crossover.config.workloads import trains
from crossover.errors import UserError, one_line_errors
from crossover.measurement.process.attempts import measure
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import TrainingJob
from crossover.measurement.process.reservation import reserve


def main(arguments: list[str]) -> None:
    job = read_job(TrainingJob, __doc__, arguments)
    if not trains(job.cell.workload):
        raise UserError(
            f"cell.workload: '{job.cell.workload}' does not train on resident data with labels; allowed: one that does"
        )
    for axis, only in (("protocol", "resident"), ("execution", "eager")):
        if (value := getattr(job.cell, axis)) != only:
            raise UserError(f"cell.{axis}: '{value}' changes no model; allowed: {only}")
    with reserve(job) as reserved:
        measure(reserved)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

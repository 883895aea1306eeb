"""Find the largest batch of one cell that fits its device, time it, and write one JSON file.

    python scripts/find_largest_batch.py \\
        '{"cell": {"workload": "disc_mlp", "size": 8}, "search": {"memory_limit_gb": 1}}' \\
        --device=cpu --dataset=results/datasets/disc.safetensors --output=largest.json

Each try is a separate process that builds the cell and runs three steps. The batch size doubles from `start` until a
batch does not fit, or `limit` is reached. Bisection then finds the largest size that fits, which must fit twice more.
Only running out of memory counts as not fitting: of `memory_limit_gb` in addition to Python and torch, by default 80 %
of the available memory for the CPU, all memory of other devices. The time limit, a crash or an unsupported precision
stops the search. The exit status is still 0, and the result has the reason. A final process times up to `timed_batches`
batches of the largest size, within about 10 s but at least 3. If the dataset has fewer rows than a batch, rows are
repeated.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from crossover.config.options import tell
from crossover.config.words import is_cpu
from crossover.errors import one_line_errors
from crossover.files import atomic_path
from crossover.machine.kernel import available_bytes
from crossover.measurement.process.attempts import run_supervised
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import TryJob
from crossover.measurement.process.reservation import reserve
from crossover.measurement.search import describe, search_largest, time_largest

CPU_SHARE = 0.8
"""Share of the available host memory that a search on the CPU may use by default; the rest is for other programs."""


def main(arguments: list[str]) -> None:
    job = read_job(TryJob, __doc__, arguments)
    with reserve(job) as first:
        if job.memory_limit_bytes is None and is_cpu(job.cell.device):
            first = replace(first, memory_limit_bytes=int(CPU_SHARE * available_bytes()))
        largest = search_largest(first, run_supervised, tell)
        largest = time_largest(first, largest, run_supervised, tell)
    with atomic_path(Path(job.output)) as temporary:
        temporary.write_text(json.dumps(describe(first, largest), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Find the largest batch of one cell that fits its device, time it, and write one JSON file.

    python scripts/find_largest_batch.py --study=disc_depth --workload=disc_mlp --protocol=resident --precision=fp32 \
        --execution=eager --size=8 --device=cpu --memory-limit=1GiB --dataset=results/datasets/disc.safetensors \
        --output=largest.json

Each try is a separate process that builds the cell and runs three steps. The batch size doubles until a batch does not
fit. Bisection then finds the largest size that fits, which must fit twice more. Only running out of memory counts as
not fitting. The time limit, a crash or an unsupported precision stops the search. The exit status is still 0, and the
result has the reason. A final process times batches of the largest size. If the dataset has fewer rows than a batch,
rows are repeated.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from crossover.config.options import (
    add_cell_options,
    add_number,
    add_process_options,
    cell_of_options,
    check_writable,
    memory_size,
    new_parser,
    tell,
)
from crossover.config.studies import BatchSearch
from crossover.config.words import is_cpu
from crossover.errors import one_line_errors
from crossover.files import atomic_path
from crossover.time_limits import note_end

CPU_SHARE = 0.8
"""Share of the available host memory that a search on the CPU may use by default; the rest is for other programs."""


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add_cell_options(parser)
    search = parser.add_argument_group("search")
    add_number(search, BatchSearch, "start", help="the first batch size to try")
    add_number(search, BatchSearch, "limit", help="the largest batch size to try; default: none")
    search.add_argument(
        "--memory-limit",
        default=None,
        type=memory_size,
        help="memory that the cell may use, such as 8GB or 8GiB, in addition to Python and torch; default: 80%% of "
        "the available memory for the CPU, all memory of other devices",
    )
    add_number(
        search,
        BatchSearch,
        "timed_batches",
        help="maximum number of batches of the largest size to time, within about 10 s but at least 3; 0: none",
    )
    add_process_options(search)
    search.add_argument("--output", required=True, type=Path, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    cell = cell_of_options(options, batch_size=options.start)
    check_writable(options.output, begins=b"{")

    from crossover.machine.kernel import available_bytes
    from crossover.measurement.process.attempts import run_supervised
    from crossover.measurement.process.jobs import TryJob
    from crossover.measurement.process.reservation import job_fields, reserve
    from crossover.measurement.search import describe, search_largest, time_largest

    with reserve(cell.device, options.cpu_threads) as host:
        memory_limit = options.memory_limit
        if memory_limit is None and is_cpu(cell.device):
            memory_limit = int(CPU_SHARE * available_bytes())
        first = TryJob(**job_fields(cell, options, host), memory_limit_bytes=memory_limit)
        largest = search_largest(first, options.limit, run_supervised, tell)
        largest = time_largest(first, largest, options.timed_batches, run_supervised, tell)
    result = describe(first, options.limit, largest, shlex.join(["python3", sys.argv[0], *arguments]))
    with atomic_path(options.output) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    note_end(options.limit_note, options.time_limit_s, largest.reason or largest.throughput_reason)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

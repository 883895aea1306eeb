"""Measure one trial of one cell and write one Parquet row.

The workflow runs this command for every trial (`snakemake -p` prints it, and column `command` has it). By hand:

    python scripts/measure_cell.py '{"cell": {"workload": "disc_mlp", "size": 8, "batch_size": 100}}' --device=cpu \\
        --dataset=results/datasets/disc.safetensors --output=trial.parquet
    python scripts/measure_cell.py '{"cell": {"model": "my_net.py:build", "size": 256, "batch_size": 32}}' \\
        --device=cpu --output=trial.parquet

JOB may have `trial`, `repeat`, `seed`, `effort` (its numbers, as in the config), `latency_steps`, `latency_mistakes`,
`time_limit_s` and `isolation` (an option counts instead); its cell also `protocol`, `precision`, `execution`, `variant`
and `study`.

If the trial runs out of memory, exceeds the time limit, crashes, gives a wrong result or is not supported, the exit
status is still 0, and the row has the reason. The measurement runs in a separate process, forked from a preloaded
server or started afresh. This command only supervises that process and holds the GPU's lease.
"""

from __future__ import annotations

import math
import os
import sys

from crossover.errors import one_line_errors
from crossover.measurement.process.attempts import measure
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import Outcome, TrialJob
from crossover.measurement.process.reservation import reserve


def main(arguments: list[str]) -> None:
    job = read_job(TrialJob, __doc__, arguments)
    with reserve(job, alone=job.repeat > 0) as reserved:
        print(answer_of(measure(reserved)))


def answer_of(outcome: Outcome) -> str:
    """The result of a trial in one line: "1.24 ms per step, within ±2 % in this trial, peak 1.2 GB, on NVIDIA H200"."""
    from crossover.measurement.clock.stopping import relative_half_width
    from crossover.measurement.resident_memory import RESOLUTION_BYTES
    from crossover.text import bytes_text, percent_text, seconds_text

    facts = outcome.result
    if not facts:
        return outcome.status if outcome.reason is None else f"{outcome.status}: {outcome.reason}"
    words = [f"{seconds_text(facts['step_time_s'])} per step"]
    if (width := relative_half_width(facts["samples_s"])) < math.inf:
        words.append(f"within ±{percent_text(width)} in this trial")
    growth_bytes = facts["rss_growth_bytes"] or 0
    if peak_bytes := facts["peak_allocated_bytes"] or (growth_bytes >= RESOLUTION_BYTES and growth_bytes):
        words.append(f"peak {bytes_text(peak_bytes)}")
    caveats = f" (flagged: {', '.join(facts['flag_names'])})" if facts["flag_names"] else ""
    return ", ".join([*words, f"on {facts['on']}"]) + caveats


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
    os._exit(0)  # all is written; without the clean-up of Python's modules, the next trial begins 10 to 20 ms earlier

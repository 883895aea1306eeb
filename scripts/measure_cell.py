"""Measure one trial of one cell and write one Parquet row.

The workflow runs this command for every trial (`snakemake -p` prints it). To run it by hand:

    python scripts/measure_cell.py --study=disc_depth --workload=disc_mlp --protocol=resident --batch-size=100 \
        --precision=fp32 --execution=eager --size=8 --device=cpu --dataset=results/datasets/disc.safetensors \
        --output=trial.parquet

If the trial runs out of memory, exceeds the time limit, crashes, gives a wrong result or is not supported, the exit
status is still 0, and the row has the reason. The measurement runs in a separate process, forked from a preloaded
server or started afresh. This command only supervises that process and holds the GPU's lease.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.config.options import (
    add_cell_options,
    add_number,
    add_process_options,
    cell_of_options,
    check_writable,
    new_parser,
    number,
    positive,
    whole,
)
from crossover.config.studies import LATENCY_STEPS_MAX, LATENCY_STEPS_MIN, Effort
from crossover.errors import one_line_errors
from crossover.machine.invocation import code_version
from crossover.time_limits import note_end

if TYPE_CHECKING:
    from crossover.measurement.process.jobs import Outcome


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add_cell_options(parser).add_argument("--batch-size", required=True, type=positive)
    trial = parser.add_argument_group("trial")
    of_trial = "number of the trial; only trial 1 measures memory, operations and a profile, and checks the result"
    trial.add_argument("--trial", default=1, type=positive, help=of_trial)
    again = "number of earlier, disturbed measurements of the trial; above 0, nothing else is measured at the same time"
    trial.add_argument("--repeat", default=0, type=whole, help=again)
    add_process_options(trial)
    latency_steps = number(int, ge=LATENCY_STEPS_MIN, le=LATENCY_STEPS_MAX, other=0)
    trial.add_argument(
        "--latency-steps", default=0, type=latency_steps, help="individually synchronised steps; 0: none"
    )
    trial.add_argument(
        "--latency-mistakes", action="store_true", help="also time steps with each of the common mistakes"
    )
    trial.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    effort = parser.add_argument_group("effort")
    for field in fields(Effort):
        add_number(effort, Effort, field.name)
    options = parser.parse_args(arguments)
    if options.latency_mistakes and not options.latency_steps:
        parser.error(f"argument --latency-mistakes: needs --latency-steps; allowed: at least {LATENCY_STEPS_MIN}")
    return options


def main(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    cell = cell_of_options(options)
    check_writable(options.output)

    from crossover.measurement.process.attempts import measure
    from crossover.measurement.process.jobs import TrialJob
    from crossover.measurement.process.reservation import job_fields, reserve

    with reserve(cell.device, options.cpu_threads, alone=options.repeat > 0) as host:
        job = TrialJob(
            **job_fields(cell, options, host),
            trial=options.trial,
            repeat=options.repeat,
            output=str(options.output),
            effort=Effort(**{field.name: getattr(options, field.name) for field in fields(Effort)}),
            latency_steps=options.latency_steps,
            latency_mistakes=options.latency_mistakes,
            command=shlex.join(["python3", sys.argv[0], *arguments]),
            lease_wait_s=host.lease_wait_s,
            turn_missed=host.turn_missed,
            code_version=code_version(),
        )
        outcome = measure(job)
        note_end(options.limit_note, options.time_limit_s, outcome.reason)
        print(answer_of(outcome))


def answer_of(outcome: Outcome) -> str:
    """The result of a trial in one line: "1.24 ms per step, within ±2 % in this trial, peak 1.2 GB, on NVIDIA H200"."""
    from crossover.measurement.clock.stopping import relative_half_width
    from crossover.text import bytes_text, percent_text, seconds_text

    facts = outcome.result
    if not facts:
        return outcome.status if outcome.reason is None else f"{outcome.status}: {outcome.reason}"
    words = [f"{seconds_text(facts['step_time_s'])} per step"]
    if (width := relative_half_width(facts["samples_s"])) < math.inf:
        words.append(f"within ±{percent_text(width)} in this trial")
    words += [f"peak {bytes_text(facts['peak_bytes'])}"] if facts["peak_bytes"] else []
    caveats = f" (flagged: {', '.join(facts['flag_names'])})" if facts["flag_names"] else ""
    return ", ".join([*words, f"on {facts['on']}"]) + caveats


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

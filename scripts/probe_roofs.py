"""Measure a device's peak rates, bandwidths and launch times, and write one JSON file.

    python scripts/probe_roofs.py --device=cuda --output=roofs.json

A probe takes up to about 20 seconds, and is repeated at most twice while other processes disturb it. Roofs that stayed
disturbed are probed again by the next run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from crossover.config.options import (
    DEVICE_CHOICES,
    add_process_options,
    check_writable,
    device,
    machine,
    names,
    new_parser,
)
from crossover.config.studies import Cell
from crossover.config.words import COMPUTES_IN, HERE, PRECISIONS
from crossover.errors import UserError, count_failure, one_line_errors
from crossover.files import atomic_path

PURE = tuple(precision for precision in PRECISIONS if precision not in COMPUTES_IN)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--machine", default=HERE, type=machine, help="name of this machine, or of its class of nodes")
    parser.add_argument("--device", required=True, type=device, help=DEVICE_CHOICES)
    parser.add_argument("--precisions", default=PURE, type=names, help="precisions to probe, such as fp32,bf16")
    add_process_options(parser)
    parser.add_argument("--output", required=True, type=Path, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    check_writable(options.output, begins=b"[")

    from crossover.measurement.process.attempts import run_supervised
    from crossover.measurement.process.jobs import ProbeJob
    from crossover.measurement.process.reservation import job_fields, reserve

    # Only the device and the machine of this cell are used.
    cell = Cell("roofs", "matmul", "resident", 1, "fp32", "eager", 1, options.device, machine=options.machine)
    with reserve(options.device, options.cpu_threads) as host:
        outcome = run_supervised(ProbeJob(**job_fields(cell, options, host), precisions=options.precisions))
    if outcome.status != "ok":
        raise UserError(f"--device: {options.device} was not probed, {outcome.status}: {outcome.reason}")
    rows = [{**row, "plan_key": options.plan_key} for row in outcome.result["rows"]]
    with atomic_path(options.output) as temporary:
        temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if disturbed := rows[0]["disturbed"]:
        count_failure(options.output)
        print(f"disturbed: {disturbed}; the next run probes again")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

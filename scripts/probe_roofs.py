"""Measures what a device can do, and writes one JSON file: peak rates, bandwidths and launches.

    python scripts/probe_roofs.py --device=cuda --output=roofs.json

A device takes about 10 seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from crossover.config.options import (
    DEVICE_CHOICES,
    auto_or_threads,
    check_writable,
    device,
    machine,
    new_parser,
)
from crossover.config.words import HERE
from crossover.errors import one_line_errors
from crossover.files import atomic_path


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; ends the program with status 2 and one line if it is wrong."""
    parser = new_parser(__doc__)
    parser.add_argument("--machine", default=HERE, type=machine, help="name of this machine, or of its class of nodes")
    parser.add_argument("--device", required=True, type=device, help=DEVICE_CHOICES)
    parser.add_argument("--cpu-threads", default="auto", type=auto_or_threads, help="auto: usable physical cores")
    parser.add_argument("--output", required=True, type=Path, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Probe the device that the command line names."""
    options = parse_arguments(arguments)
    check_writable(options.output, begins=b"[")

    from crossover.measurement.process.holding import holding

    with holding(options.device, options.cpu_threads, f"{options.output}, roofs") as held:
        from crossover.machine.threads import confine

        confine(held.cpus)  # before torch starts a thread

        import torch

        from crossover.measurement.clock.timing import Stopwatch
        from crossover.measurement.host.description import describe_host
        from crossover.measurement.roofs import probe
        from crossover.measurement.step.devices import open_device

        torch.set_num_threads(held.threads)
        target = open_device(options.device)
        watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, target.synchronise)
        host = describe_host()
        known = {
            "machine": options.machine,
            "device": options.device,
            "device_name": target.name or host["cpu_model"],
            **{name: host[name] for name in ("hostname", "threads", "torch_version")},
        }
        rows = [known | row for row in probe(target, held.threads, watch)]
    with atomic_path(options.output) as temporary:
        temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Makes a reference machine of a finished run, to hold other machines against.

    python scripts/export_reference.py results --name=h200 --output=config/reference/h200

The run must have measured the CPU and the GPU of one machine. docs/how-to/machines.md says how to contribute one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.config.options import machine, new_parser
from crossover.errors import one_line_errors


def main(arguments: list[str]) -> None:
    """Write the reference that the command line names."""
    parser = new_parser(__doc__)
    parser.add_argument("results", type=Path, metavar="FOLDER", help="results folder of a finished run")
    parser.add_argument("--name", required=True, type=machine, help="what reports call the machine")
    parser.add_argument("--output", required=True, type=Path, help="folder to write")
    options = parser.parse_args(arguments)

    from crossover.reading import read_json
    from crossover.tables.frames import read_table
    from crossover.tables.references import write_reference

    run = read_json(options.results / "provenance.json", "provenance").get("run") or {}
    measurements = read_table(options.results / "measurements.parquet")
    reference = write_reference(measurements, options.name, run.get("command"), options.output)
    facts = reference.facts
    print(f"{options.output}: {len(reference.trials)} trials on {facts.device_name} and {facts.cpu_model}")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

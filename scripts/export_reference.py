"""Export a finished run as a reference machine, to compare other machines with.

    python scripts/export_reference.py results --name=h200 --output=config/reference/h200

The run must have measured the CPU and the GPU of one machine. To contribute the reference, see docs/how-to/machines.md.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from crossover.config.options import machine, new_parser, workflow_command
from crossover.errors import UserError, one_line_errors
from crossover.text import bytes_text

SHIPPED = Path("config/reference")


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("results", type=Path, metavar="FOLDER", help="results folder of a finished run")
    parser.add_argument("--name", required=True, type=machine, help="name of the machine in reports")
    parser.add_argument("--output", required=True, type=Path, help="folder to write")
    options = parser.parse_args(arguments)

    from check_run import check_trials
    from crossover.reading import read_json
    from crossover.report.run_checks import check_reference
    from crossover.tables.frames import read_table
    from crossover.tables.reference_files import with_cell_flags, write_reference

    run = read_json(options.results / "provenance.json", "provenance").get("run") or {}
    measurements, cells, roofs = (
        read_table(options.results / f"{name}.parquet") for name in ("measurements", "cells", "roofs")
    )
    if wrong := [finding for finding in check_trials(options.results) if finding.is_wrong]:
        count = f"{len(wrong)} findings, which scripts/check_run.py lists" if len(wrong) > 1 else "the only finding"
        raise UserError(f"{options.results / wrong[0].file}: {wrong[0].what} ({count}); measure again")
    flagged = with_cell_flags(measurements, cells[cells["origin"].isin(["study", "candidates"])])
    reference = write_reference(flagged, options.name, run.get("command"), options.output, roofs)
    for finding in check_reference(options.output):
        if finding.is_wrong:
            raise UserError(f"{options.output / finding.file}: {finding.what}; measure again")
    size = sum(path.stat().st_size for path in options.output.iterdir())
    facts = reference.facts
    again = workflow_command("--cores", "1", "--config", f"reference={options.output}")
    print(
        f"{options.output}: {len(reference.trials)} trials on {facts.device_name} and {facts.cpu_model}, "
        f"{bytes_text(size)}; checked.",
        f"To compare another machine with it: {again}",
        "To contribute it, in a checkout of Crossover:",
        f"  cp -r {shlex.quote(str(options.output.resolve()))} {SHIPPED}/",
        f"  git add {SHIPPED / options.name}",
        f'  git commit -m "Reference {options.name}: {facts.device_name}"',
        sep="\n",
    )
    shipped = Path(__file__).parents[1] / SHIPPED / options.name
    if shipped.is_dir() and shipped != options.output.resolve():
        print(f"Note: {SHIPPED / options.name} is there already; replace it, or export under another name.")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

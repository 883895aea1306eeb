"""Export a finished run in the formats of Bencher and github-action-benchmark.

python scripts/export_run.py results --output=results/export
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from crossover.config.options import new_parser
from crossover.errors import one_line_errors


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("results", type=Path, metavar="FOLDER", help="results folder of a finished run")
    parser.add_argument("--output", required=True, type=Path, help="folder to write to")
    options = parser.parse_args(arguments)

    from crossover.files import atomic_path
    from crossover.report.exports import action_benchmark, bencher
    from crossover.tables.frames import read_table

    cells = read_table(options.results / "cells.parquet")
    cells = cells[cells["origin"] == "study"]
    for name, content in (("bencher.json", bencher(cells)), ("action_benchmark.json", action_benchmark(cells))):
        with atomic_path(options.output / name) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Measures what the workflow itself takes for many cells: runs grids of cells that do nothing.

Each grid runs in a copy of the workflow in a temporary folder. A thousand cells take about five minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd

from crossover.checks.overhead import BATCH_SIZES, make_grid, measure_grid
from crossover.config.options import new_parser, positive
from crossover.errors import UserError, one_line_errors
from crossover.tables.frames import write_csv

WORKFLOW = Path(__file__).parents[1]


def main(arguments: list[str]) -> None:
    """Run a grid for each number of cells, write the table and print it."""
    parser = new_parser(__doc__)
    parser.add_argument("--cells", nargs="+", default=[1000], type=positive, help=f"multiples of {BATCH_SIZES}")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs Snakemake")
    parser.add_argument("--output", default=Path("results/checks/scale.csv"), type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    for cells in options.cells:
        if cells % BATCH_SIZES:
            raise UserError(f"--cells: {cells} is not allowed; allowed: multiples of {BATCH_SIZES}")
    snakemake = [options.python, "-m", "snakemake", "--cores", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SNAKEMAKE_")}
    tables = []
    for cells in options.cells:
        with tempfile.TemporaryDirectory(prefix="crossover-scale-") as folder:
            make_grid(WORKFLOW, Path(folder) / "grid", cells)
            tables.append(measure_grid(Path(folder) / "grid", cells, snakemake, environment))
    table = pd.concat(tables)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

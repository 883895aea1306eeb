"""Measures what the workflow itself takes for many cells: runs a grid of cells that do nothing in a folder of its own.

Beside it run workflows of one rule that only starts Python, as a shell command and as a script, under the same profile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from crossover.checks.grid import make_grid, write_rows
from crossover.checks.job_rate import BARE_RULES, make_bare, seconds_per_job
from crossover.checks.usage import Usage, run_measured
from crossover.config.options import positive
from crossover.errors import one_line_errors
from crossover.tables.frames import write_csv

ROWS = "results/cells/**/trial-1.parquet"

COLLECT = """
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
from crossover.tables.guards import matching_rows
from crossover.tables.frames import reading_processes, write_rows
rows = [Path(line) for line in Path("rows.txt").read_text().splitlines()]
write_rows(matching_rows(rows, False, processes=reading_processes()), Path("collected.parquet"))
"""


def main(arguments: list[str]) -> None:
    """Measure grids of all sizes, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="+", default=[1000, 10000], type=positive, help="multiples of 10")
    parser.add_argument("--jobs", default=200, type=positive, help="cells of a grid to run for real")
    parser.add_argument("--python", default=sys.executable, help="the one that Snakemake runs in")
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSOVER_", "SNAKEMAKE_"))}
    rows = []
    for cells in options.cells:
        with tempfile.TemporaryDirectory(prefix="crossover-scale-") as folder:
            rows += measure_grid(cells, options.jobs, options.python, Path(folder), own)
    table = pd.DataFrame(rows)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


def measure_grid(
    cells: int, jobs: int, python: str, folder: Path, environment: Mapping[str, str]
) -> list[dict[str, object]]:
    """One row for each thing that was done with a grid of so many cells."""
    snakemake = [python, "-m", "snakemake", "--cores", "1"]
    grid, log = folder / "grid", folder / "log.txt"
    make_grid(Path(__file__).parents[1], grid, cells)

    def done(what: str, *command: str) -> dict[str, object]:
        return {"cells": cells, "what": what, **_columns(run_measured(command, grid, environment, log), cells)}

    def per_job(what: str, place: Path, outputs: str, *more: str) -> dict[str, object]:
        seconds = seconds_per_job([*snakemake, *more], place, environment, log, outputs, min(jobs, cells // 2))
        return {"cells": cells, "what": what, "wall_s_per_cell": seconds}

    found = [done("dry-run", *snakemake, "--dry-run"), per_job("each cell", grid, ROWS)]
    for way in BARE_RULES:
        make_bare(folder / way, way, cells)
        profile = f"--profile={grid / 'profiles' / 'default'}"  # with a scheduler that is quick among thousands
        found.append(per_job(f"each job of a bare rule ({way})", folder / way, "out/*.txt", profile))
    shutil.rmtree(grid / ".snakemake")  # with the lock of what was killed
    (grid / "rows.txt").write_text("\n".join(write_rows(grid)), encoding="utf-8")
    found.append(done("collect", python, "-c", COLLECT))
    found.append(done("from rows to the report", *snakemake))
    found.append(done("nothing to be done", *snakemake))
    return found


def _columns(used: Usage, cells: int) -> dict[str, float]:
    return {
        "wall_s": used.wall_s,
        "cpu_s": used.cpu_s,
        "peak_mb": used.peak_bytes / 1e6,
        "wall_s_per_cell": used.wall_s / cells,
    }


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

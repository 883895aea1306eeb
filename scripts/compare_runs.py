"""Compares two runs cell by cell, and tells the outcome on the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.checks.runs import comparison_text, read_pair
from crossover.errors import logged
from crossover.statistics.run_comparison import compare_runs as compare_tables
from crossover.tables.frames import write_csv

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def compare_runs(
    paths_to_measurements: Sequence[Path], studies: Sequence[str | None], names: Sequence[str], path_to_csv: Path
) -> str:
    """Write one row a cell as CSV and return the comparison as text."""
    first, second = read_pair(paths_to_measurements, studies)
    comparison = compare_tables(first, second)
    write_csv(comparison, path_to_csv)
    return comparison_text(comparison, first, second, names)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        text = compare_runs(
            paths_to_measurements=[Path(path) for path in snakemake.input.measurements],
            studies=snakemake.params.studies,
            names=snakemake.params.names,
            path_to_csv=Path(snakemake.output.csv),
        )
        print(text)
    print(f"\n{text}\n")

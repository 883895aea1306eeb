"""Tells what the trials of a finished run cost beside their measuring, Snakemake's share included."""

from pathlib import Path
from typing import TYPE_CHECKING

from crossover.checks.checks import trial_costs
from crossover.errors import logged
from crossover.tables.frames import read_table, write_csv

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def check_overhead(path_to_measurements: Path, path_to_csv: Path) -> str:
    """Write one row a trial as CSV and return the medians as text."""
    costs = trial_costs(read_table(path_to_measurements))
    write_csv(costs, path_to_csv)
    by = costs.groupby(["device", "isolation", "trial"])["cost_s"]
    return by.describe(percentiles=[0.5, 0.9])[["count", "50%", "90%"]].round(3).to_string()


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        text = check_overhead(Path(snakemake.input.measurements), Path(snakemake.output.csv))
        print(text)
    print(f"\nSeconds of a trial beside warm-up, timing and memory pass\n{text}\n")

"""Joins the searches for the largest batch into one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from crossover.analysis.finished import finished_searches
from crossover.analysis.largest_batches import collect_searches
from crossover.analysis.merging import check_environments
from crossover.analysis.tables import write_table
from crossover.errors import UserError, logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def collect_largest_batches(
    paths_to_searches: Sequence[Path], several_hosts: bool, path_to_parquet: Path, path_to_csv: Path
) -> None:
    """Read one search a file, check that they belong together, and write them as Parquet and as CSV."""
    if not paths_to_searches:
        raise UserError(
            "studies: none of this run asks for its largest batches; set `largest_batch: true` in a study's file"
        )
    table = collect_searches(paths_to_searches)
    found = table[table["status"] == "ok"]  # another may have ended before it knew where it ran
    check_environments(pa.Table.from_pandas(found, preserve_index=False), several_hosts)
    write_table(table, path_to_parquet, path_to_csv)


def collect_finished(
    paths_asked_for: Sequence[Path], several_hosts: bool, path_to_parquet: Path, path_to_csv: Path
) -> None:
    """The same for a partial report, of what is there."""
    write_table(finished_searches(paths_asked_for, several_hosts), path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        partial = snakemake.params.asked is not None
        collect = collect_finished if partial else collect_largest_batches
        collect(
            [Path(path) for path in (snakemake.params.asked if partial else snakemake.input.searches)],
            several_hosts=snakemake.params.several_hosts,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

"""Joins the searches for the largest batch into one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from crossover.errors import UserError, logged
from crossover.machine.discovery import handed_down
from crossover.statistics.largest_batches import collect_searches
from crossover.tables.finished import finished_searches
from crossover.tables.frames import write_table
from crossover.tables.guards import check_environments

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def matching_searches(paths_to_searches: Sequence[Path], several_hosts: bool) -> pd.DataFrame:
    """All searches; raises UserError where there are none, and where those of a device do not belong together."""
    if not paths_to_searches:
        raise UserError(
            "studies: none of this run asks for its largest batches; set `largest_batch: true` in a study's file"
        )
    table = collect_searches(paths_to_searches)
    found = table[table["status"] == "ok"]  # another may have ended before it knew where it ran
    check_environments(pa.Table.from_pandas(found, preserve_index=False), several_hosts)
    return table


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        hosts = snakemake.params.several_hosts or handed_down().elsewhere
        asked = snakemake.params.asked
        write_table(
            matching_searches([Path(path) for path in snakemake.input.searches], hosts)
            if asked is None
            else finished_searches([Path(path) for path in asked], hosts),
            Path(snakemake.output.parquet),
            Path(snakemake.output.csv),
        )

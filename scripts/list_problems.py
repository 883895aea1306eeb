"""Lists what of a run has no result, or one that deserves less trust."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import logged
from crossover.statistics.problems import list_problems, rows_by_work
from crossover.statistics.unfinished import find_unfinished
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def write_problems(
    path_to_measurements: Path,
    path_to_cells: Path,
    path_to_quality: Path | None,
    path_to_searches: Path | None,
    asked: Mapping[str, Sequence[str]] | None,
    path_to_parquet: Path,
    path_to_csv: Path,
) -> None:
    """Write one row a problem, as Parquet and as CSV; `asked` holds the rows of a partial run by rule."""
    quality, searches = (read_table(path) if path else None for path in (path_to_quality, path_to_searches))
    collected = rows_by_work(read_table(path_to_measurements), quality, searches)
    table = list_problems(collected, read_table(path_to_cells), find_unfinished(asked or {}, collected))
    write_table(table, path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        write_problems(
            path_to_measurements=Path(snakemake.input.measurements),
            path_to_cells=Path(snakemake.input.cells),
            path_to_quality=Path(snakemake.input.quality) if snakemake.input.quality else None,
            path_to_searches=Path(snakemake.input.searches) if snakemake.input.searches else None,
            asked=snakemake.params.asked,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

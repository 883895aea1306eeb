"""Holds published statements against the measurements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.claims.claims import check_claims
from crossover.errors import logged
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def write_claims(
    claims: Sequence[Mapping[str, Any]],
    steps_per_run: Mapping[str, Any],
    path_to_measurements: Path,
    path_to_crossovers: Path,
    path_to_quality: Path | None,
    path_to_parquet: Path,
    path_to_csv: Path,
) -> None:
    """Write one row a claim, as Parquet and as CSV; without a table of quality, claims on it are not testable."""
    table = check_claims(
        claims,
        read_table(path_to_measurements),
        read_table(path_to_crossovers),
        read_table(path_to_quality) if path_to_quality else None,
        steps_per_run,
    )
    write_table(table, path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        quality = snakemake.input.get("quality")
        write_claims(
            claims=snakemake.params.claims,
            steps_per_run=snakemake.params.steps_per_run,
            path_to_measurements=Path(snakemake.input.measurements),
            path_to_crossovers=Path(snakemake.input.crossovers),
            path_to_quality=Path(quality) if quality else None,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

"""Writes the report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.analysis.report import FigureFile, link_to, render
from crossover.analysis.tables import read_table
from crossover.errors import logged
from crossover.files import atomic_path

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def render_report(
    path_to_template: Path,
    path_to_measurements: Path,
    path_to_cells: Path,
    path_to_crossovers: Path,
    path_to_claims: Path,
    figures: Sequence[FigureFile],
    studies: Mapping[str, Mapping[str, Any]],
    facts: Mapping[str, Any],
    path_to_method: Path,
    path_to_report: Path,
    path_to_quality: Path | None = None,
    path_to_searches: Path | None = None,
    path_to_cost_models: Path | None = None,
    path_to_cores_worth: Path | None = None,
) -> None:
    """Write one self-contained HTML page; only its link to the method leads out of it."""
    page = render(
        path_to_template,
        studies,
        read_table(path_to_measurements),
        read_table(path_to_cells),
        read_table(path_to_crossovers),
        read_table(path_to_claims),
        figures,
        {
            **facts,
            "made_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "method": link_to(path_to_method, path_to_report),
        },
        read_table(path_to_quality) if path_to_quality else None,
        read_table(path_to_searches) if path_to_searches else None,
        read_table(path_to_cost_models) if path_to_cost_models else None,
        read_table(path_to_cores_worth) if path_to_cores_worth else None,
    )
    with atomic_path(path_to_report) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        render_report(
            path_to_template=Path(snakemake.input.template),
            path_to_measurements=Path(snakemake.input.measurements),
            path_to_cells=Path(snakemake.input.cells),
            path_to_crossovers=Path(snakemake.input.crossovers),
            path_to_claims=Path(snakemake.input.claims),
            figures=[FigureFile(Path(path)) for path in snakemake.input.figures],
            studies=snakemake.params.studies,
            facts=snakemake.params.facts,
            path_to_method=Path(snakemake.params.method),
            path_to_report=Path(snakemake.output.report),
            path_to_quality=Path(snakemake.input.quality) if snakemake.input.quality else None,
            path_to_searches=Path(snakemake.input.largest_batches) if snakemake.input.largest_batches else None,
            path_to_cost_models=Path(snakemake.input.cost_models),
            path_to_cores_worth=Path(snakemake.input.cores_worth) if snakemake.input.cores_worth else None,
        )

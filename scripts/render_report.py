"""Writes the report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.analysis.report import render
from crossover.analysis.report_figures import FigureFile, link_to
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.tables import read_table
from crossover.errors import logged
from crossover.files import atomic_path

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def render_report(
    path_to_templates: Path,
    paths_to_tables: Mapping[str, str],
    figures: Sequence[FigureFile],
    studies: Mapping[str, Mapping[str, Any]],
    facts: Mapping[str, Any],
    path_to_method: Path,
    path_to_report: Path,
) -> None:
    """Write one self-contained HTML page; only its link to the method leads out of it.

    `paths_to_tables` has a path for each field of `ReportTables`; one that no study asks for may be empty.
    """
    tables = ReportTables(**{name: read_table(Path(path)) for name, path in paths_to_tables.items() if path})
    made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    method = link_to(path_to_method, path_to_report)
    page = render(path_to_templates, studies, tables, figures, {**facts, "made_at": made_at, "method": method})
    with atomic_path(path_to_report) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        render_report(
            path_to_templates=Path(snakemake.params.templates),
            paths_to_tables={field: snakemake.input[field] for field in ReportTables.__dataclass_fields__},
            figures=[FigureFile(Path(path)) for path in snakemake.input.figures],
            studies=snakemake.params.studies,
            facts={**snakemake.params.facts, "partial": snakemake.params.partial},
            path_to_method=Path(snakemake.params.method),
            path_to_report=Path(snakemake.output.report),
        )

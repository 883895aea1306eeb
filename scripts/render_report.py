"""Writes the report, and what of it is made for passing on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.analysis.report import render
from crossover.analysis.report_figures import FigureFile, link_to
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.run_summary import closing_lines, summary_markdown, summary_table
from crossover.analysis.tables import read_table, write_csv
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
    path_to_markdown: Path,
    path_to_csv: Path,
    path_to_closing: Path,
) -> None:
    """Write one self-contained HTML page, of which only the link to the method leads out, and the summaries of it.

    `paths_to_tables` has a path for each field of `ReportTables`; one that no study asks for may be empty.
    """
    tables = ReportTables(**{name: read_table(Path(path)) for name, path in paths_to_tables.items() if path})
    made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    method = link_to(path_to_method, path_to_report)
    complete = {**facts, "made_at": made_at, "method": method}
    write_csv(summary_table(studies, tables), path_to_csv)
    closing = closing_lines(studies, tables, facts["partial"], str(path_to_report), str(path_to_markdown))
    texts = {
        path_to_report: render(path_to_templates, studies, tables, figures, complete),
        path_to_markdown: summary_markdown(studies, tables, complete),
        path_to_closing: closing,
    }
    for path, text in texts.items():
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


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
            path_to_markdown=Path(snakemake.output.markdown),
            path_to_csv=Path(snakemake.output.csv),
            path_to_closing=Path(snakemake.output.closing),
        )

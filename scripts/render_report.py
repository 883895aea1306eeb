"""Writes the report, and what of it is made for passing on."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.answers.problem_words import problems_view
from crossover.errors import logged
from crossover.files import atomic_path
from crossover.plan.invocation import handed_down_invocation
from crossover.report.markdown_summary import summary_markdown
from crossover.report.page_files import with_csv
from crossover.report.provenance import provenance
from crossover.report.report import render
from crossover.report.report_figures import FigureFile, link_to
from crossover.report.report_tables import ReportTables
from crossover.report.run_summary import closing_lines, summary_table
from crossover.tables.frames import read_table, write_csv
from crossover.tables.merged_provenance import read_provenances
from crossover.tables.merged_runs import MergedRun

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
    path_to_provenance: Path,
    config: Mapping[str, Any],
    paths_to_data: Mapping[str, Sequence[Path]],
    merged: Sequence[MergedRun],
) -> None:
    """Write one self-contained HTML page, out of which only links lead, its origin as JSON, and its summaries.

    `paths_to_tables` has a path for each field of `ReportTables`; one that no study asks for may be empty.
    `paths_to_data` are further files to take checksums of, by what they are; `merged` the runs that were joined, whose
    own provenance is carried along.
    """
    tables = ReportTables(**{name: read_table(Path(path)) for name, path in paths_to_tables.items() if path})
    made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    method = link_to(path_to_method, path_to_report)
    files = {"table": with_csv([Path(path) for path in paths_to_tables.values() if path]), **paths_to_data}
    run, runs = handed_down_invocation(), read_provenances(merged)
    problems = problems_view(tables.problems, tables.by_work, list(studies), facts["partial"])
    finished = problems["partial"] and problems["partial"]["all"]
    gathered = provenance(tables.measured, config, studies, run, files, path_to_report, made_at, runs, finished)
    known = {**facts, "made_at": made_at, "method": method, "provenance": gathered, "results": path_to_report.parent}
    answers = summary_table(studies, tables)
    write_csv(answers, path_to_csv)
    texts = {
        path_to_provenance: json.dumps(gathered, indent=1, ensure_ascii=False),
        path_to_report: render(path_to_templates, studies, tables, figures, problems, known),
        path_to_markdown: summary_markdown(studies, tables, problems, known),
        path_to_closing: closing_lines(answers, problems, str(path_to_report), str(path_to_markdown)),
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
            path_to_provenance=Path(snakemake.output.provenance),
            config=snakemake.params.config,
            paths_to_data={
                "dataset": list(map(Path, snakemake.params.datasets)),
                "published results": list(map(Path, snakemake.params.published)),
            },
            merged=[MergedRun(folder, name) for folder, name in snakemake.params.merged],
        )

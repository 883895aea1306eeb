"""Write the report of a run, its summaries and its provenance."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.invocation import handed_down_invocation
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.report.problems import list_problems
from crossover.report.report import Run, write_report
from crossover.tables.frames import read_run

snakemake: Any  # injected by Snakemake


def render_report(path_to_plan: Path, templates: Path, results: Path) -> None:
    """Write report.html, summaries, thresholds and provenance.json beside the tables in the results folder."""
    plan, tables = plan_file.read(path_to_plan), read_run(results)
    run = Run(tables, plan.studies, plan.config, note=plan.note, problems=list_problems(tables))
    write_report(run, results, templates, handed_down_invocation())


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        render_report(
            path_to_plan=Path(snakemake.input.plan),
            templates=Path(snakemake.params.templates),
            results=Path(snakemake.output.report).parent,
        )

"""During a run, answer a study from the first trials of a few of its cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.files import atomic_path
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.report.templates import first_answer
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.guards import matching_rows
from crossover.tables.reference_files import read_reference
from crossover.tables.run_tables import table_of
from crossover.topics.analysis import analyse

snakemake: Any  # injected by Snakemake


def give_first_answer(
    study: str,
    path_to_plan: Path,
    paths_to_rows: Sequence[Path],
    several_hosts: bool,
    path_to_answer: Path,
) -> None:
    """Write a study's first answer as text for the terminal."""
    plan = plan_file.read(path_to_plan)
    rows = matching_rows(paths_to_rows, several_hosts).to_pandas()
    trainings = arrow_schema(Training).empty_table().to_pandas()
    references = [read_reference(Path(folder)) for folder in plan.references]
    studies = {study: plan.studies[study]}
    searches = table_of("cells")
    tables = analyse(rows, trainings, searches, studies, plan.config["prices"], references=references)
    measured, sizes = rows["size"].nunique(), len(plan.studies[study].sizes)
    with atomic_path(path_to_answer) as temporary:
        text = first_answer(tables.answers, measured, sizes)
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        give_first_answer(
            study=snakemake.wildcards.study,
            path_to_plan=Path(snakemake.input.plan),
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            several_hosts=snakemake.params.several_hosts,
            path_to_answer=Path(snakemake.output.answer),
        )

"""During a run, answer a study from the first trials of a few of its cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.config.study import Study, study_of
from crossover.errors import logged
from crossover.files import atomic_path
from crossover.machine.turns import computing
from crossover.report.templates import first_answer
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.guards import matching_rows
from crossover.tables.reference_files import read_reference
from crossover.tables.run_tables import table_of
from crossover.topics.analysis import analyse

snakemake: Any  # injected by Snakemake


def give_first_answer(
    study: Study,
    prices: Mapping[str, Any] | None,
    folders_of_references: Sequence[Path],
    paths_to_rows: Sequence[Path],
    several_hosts: bool,
    path_to_answer: Path,
) -> None:
    """Write a study's first answer as text for the terminal."""
    rows = matching_rows(paths_to_rows, several_hosts).to_pandas()
    trainings = arrow_schema(Training).empty_table().to_pandas()
    references = [read_reference(folder) for folder in folders_of_references]
    searches = table_of("cells")
    tables = analyse(rows, trainings, searches, {study.name: study}, prices, references=references)
    measured, sizes = rows["size"].nunique(), len(study.sizes)
    with atomic_path(path_to_answer) as temporary:
        text = first_answer(tables.answers, measured, sizes)
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        give_first_answer(
            study=study_of(snakemake.params.study),
            prices=snakemake.params.prices,
            folders_of_references=list(dict.fromkeys(Path(file).parent for file in snakemake.input.references)),
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            several_hosts=snakemake.params.several_hosts,
            path_to_answer=Path(snakemake.output.answer),
        )

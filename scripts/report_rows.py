"""Report on existing rows: the finished part of a run, or the runs of several machines side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from crossover.config.study import Study, study_of
from crossover.errors import Parser, UserError, one_line_errors
from crossover.plan import plan_file
from crossover.reading import UnreadableError, read_json
from crossover.report.figure_files import write_figures
from crossover.report.problems import list_problems
from crossover.report.provenance import read_provenances
from crossover.report.report import Run, write_report
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.finished import finished_rows, finished_searches, missing_results
from crossover.tables.frames import write_rows, write_run
from crossover.tables.merged_runs import join_runs
from crossover.tables.reference_files import read_reference
from crossover.tables.roof_files import read_roofs_of
from crossover.tables.run_tables import table_of
from crossover.topics.analysis import analyse

TEMPLATES = Path(__file__).parents[1] / "report"


def main(arguments: Sequence[str]) -> None:
    parser = Parser(description=__doc__)
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="[NAME=]FOLDER",
        help="results folder of a run: one, finished or not; or several, each with the name of its machine",
    )
    parser.add_argument(
        "--output", type=Path, help="folder to write to (default: FOLDER/partial; for several folders: results/merged)"
    )
    parser.add_argument("--figures", action="store_true", help="also draw the figures as files: SVG, PDF and PNG")
    options = parser.parse_args(arguments)
    runs = [_named(text) for text in options.folders]
    if len(runs) == 1:
        folder = runs[0][1]
        report_finished(folder, options.output or folder / "partial", options.figures)
    else:
        report_merged(runs, options.output or Path("results/merged"), options.figures)


def report_finished(folder: Path, output: Path, with_figures: bool) -> None:
    """Report the finished part of a run without changing the run's own files."""
    plan = plan_file.read(folder / "plan.json")
    results = Path(plan.config["results"])
    paths_of = {
        "trial": plan_file.planned_rows(plan, folder),
        "training": [folder / Path(path).relative_to(results) for path in plan.trainings],
        "search": [folder / Path(path).relative_to(results) for path in plan.searches],
    }
    trials = [*paths_of["trial"], *plan_file.repeated_rows(plan, folder)]
    rows = finished_rows(trials, plan.several_hosts, keys=plan.expected_keys)
    results_of = {
        "trial": rows.to_pandas(),
        "training": finished_rows(paths_of["training"], plan.several_hosts, Training).to_pandas(),
        "search": finished_searches(paths_of["search"], plan.several_hosts),
    }
    missing = list(missing_results(paths_of, results_of))
    roofs = read_roofs_of(folder)
    tried = (results_of["trial"], results_of["training"], results_of["search"])
    references = [read_reference(path) for path in plan_file.find_references(plan, folder)]
    tables = analyse(*tried, plan.studies, plan.config["prices"], roofs=roofs, references=references)
    done = {work: (len(results_of[work]), len(paths)) for work, paths in paths_of.items() if paths}
    progress = done if missing else None
    problems = list_problems(replace(tables, measurements=results_of["trial"]), missing)
    run = Run(tables, plan.studies, plan.config, note=plan.note, progress=progress, problems=problems)
    _write(run, rows, output, with_figures)


def report_merged(runs: Sequence[tuple[str | None, Path]], output: Path, with_figures: bool) -> None:
    """Report the trials and roofs of several runs side by side; other results are not merged."""
    rows, roofs = join_runs(runs)
    studies: dict[str, Study] = {}
    for _, folder in runs:
        studies = {**_studies_of(folder), **studies}
    measurements = rows.to_pandas()
    studies = {name: studies[name] for name in measurements["study"].unique()}
    trainings = arrow_schema(Training).empty_table().to_pandas()
    searches = table_of("cells")
    tables = analyse(measurements, trainings, searches, studies, None, grids_known=False, roofs=roofs)
    merged = read_provenances([(name or str(folder), folder) for name, folder in runs])
    problems = list_problems(replace(tables, measurements=measurements))
    _write(Run(tables, studies, merged=merged, problems=problems), rows, output, with_figures)


def _write(run: Run, rows: pa.Table, output: Path, with_figures: bool = False) -> None:
    output.mkdir(parents=True, exist_ok=True)
    write_rows(rows, output / "measurements.parquet")
    write_run(run.tables, output)
    if with_figures:
        write_figures(run.tables, run.studies, output / "figures", run.currency)
    write_report(run, output, TEMPLATES)
    print((output / "summary.txt").read_text(encoding="utf-8"), end="")


def _named(text: str) -> tuple[str | None, Path]:
    name, sign, folder = text.partition("=")
    return (name, Path(folder)) if sign else (None, Path(text))


def _studies_of(folder: Path) -> Mapping[str, Study]:
    for name in ("plan.json", "provenance.json"):
        if (folder / name).is_file():
            try:
                studies = read_json(folder / name, "run")["studies"]
                return {study: study_of(values) for study, values in studies.items()}
            except (KeyError, TypeError, AttributeError, ValueError):
                raise UnreadableError(folder / name, "not the record of a run") from None
    raise UserError(f"{folder}: contains neither plan.json nor provenance.json; allowed: the results folder of a run")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

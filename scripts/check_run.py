"""Checks a results folder, or a reference: that its files, rows and tables agree, and that none was edited.

python scripts/check_run.py results
python scripts/check_run.py config/reference/h200 --json=check.json

Status 0: nothing is wrong; 1: something is; 2: the folder cannot be checked.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.files import atomic_path
from crossover.plan import plan_file
from crossover.report.run_checks import Checked, Planned, check_reference, check_run, is_reference
from crossover.tables.columns import Training
from crossover.tables.references import read_reference
from crossover.tables.rows import collect_rows


def main(arguments: list[str]) -> int:
    """Check the folder, print what was found, and write it if asked to; returns the exit status."""
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="results folder of a finished run, or a reference")
    parser.add_argument("--json", type=Path, help="JSON file to write")
    options = parser.parse_args(arguments)
    checked = check_folder(options.folder)
    for finding in checked.findings:
        print(f"{options.folder / finding.file}: {finding.what}")
    for what in checked.not_checked:
        print(f"Not checked: {what}")
    count = len(checked.findings)
    print(f"{options.folder}: {f'{count} findings' if count else 'valid'}")
    if options.json:
        kind = "reference" if is_reference(options.folder) else "results"
        content = {"version": 1, "folder": str(options.folder), "kind": kind, "valid": not count} | asdict(checked)
        with atomic_path(options.json) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if count else 0


def check_folder(folder: Path) -> Checked:
    """Check a reference or the results of a run; raises UserError for any other folder."""
    if is_reference(folder):
        return check_reference(folder)
    if not (folder / "provenance.json").is_file():
        raise UserError(f"{folder}: no provenance.json; allowed: the results folder of a finished run, or a reference")
    return check_run(folder, planned(folder) if (folder / "plan.json").is_file() else None)


def planned(folder: Path) -> Planned:
    """What the plan of a run says, with paths in its folder, which may have moved."""
    plan = plan_file.read(folder / "plan.json")
    trainings = [folder / Path(path).relative_to(plan.config["results"]) for path in plan.trainings]
    return Planned(
        studies=plan.studies,
        prices=plan.config["prices"],
        rows=[*plan_file.asked_rows(plan, folder), *plan_file.repeated_rows(plan, folder)],
        trainings=training_rows(trainings) if all(path.is_file() for path in trainings) else None,
        references=[read_reference(path) for path in map(Path, plan.references) if path.is_dir()],
    )


def training_rows(paths: list[Path]) -> pd.DataFrame:
    """The rows of trainings, one a file."""
    rows: pd.DataFrame = collect_rows(paths, Training).to_pandas()
    return rows


if __name__ == "__main__":
    with one_line_errors():
        try:
            sys.exit(main(sys.argv[1:]))
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)

"""Check that the files, rows and tables of a results folder or a reference are consistent and unedited.

python scripts/check_run.py results
python scripts/check_run.py config/reference/h200 --json=check.json

The exit status is 0 if all checks pass, 1 if any fails, and 2 if the folder cannot be checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from crossover.config.options import new_parser
from crossover.config.words import REFERENCE_FILES
from crossover.errors import UserError, exit_with_status
from crossover.files import atomic_path
from crossover.machine.invocation import find_checkout
from crossover.plan import plan_file
from crossover.reading import read_json
from crossover.report.provenance import machine_facts, measured_by, read_provenances
from crossover.report.run_checks import (
    Finding,
    check_csv,
    check_files,
    check_numbers,
    check_reference,
    check_rows,
    check_table,
    check_version,
)
from crossover.report.thresholds import thresholds_of
from crossover.tables.columns import COLUMNS, Training
from crossover.tables.frames import read_run, read_table, write_run
from crossover.tables.reference_files import facts_of, read_reference
from crossover.tables.roof_files import read_roofs_of
from crossover.tables.rows import collect_rows, read_trials
from crossover.tables.run_tables import TABLES
from crossover.text import with_noun
from crossover.topics.analysis import analyse

MEASUREMENTS = "measurements.parquet"


def main(arguments: list[str]) -> int:
    """Check the folder, print the findings, and return the exit status."""
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="results folder of a finished run, or a reference")
    parser.add_argument("--json", type=Path, help="JSON file to write")
    options = parser.parse_args(arguments)
    findings = check_folder(options.folder)
    wrong = [finding for finding in findings if finding.is_wrong]
    for finding in findings:
        print(f"{'' if finding.is_wrong else 'Note: '}{options.folder / finding.file}: {finding.what}")
    print(f"{options.folder}: {with_noun(len(wrong), 'finding') if wrong else 'valid'}")
    if options.json:
        content = {"version": 1, "valid": not wrong, "findings": [asdict(finding) for finding in findings]}
        with atomic_path(options.json) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def check_folder(folder: Path) -> list[Finding]:
    """Check a reference or the results of a run; raises UserError for any other folder."""
    if (folder / REFERENCE_FILES[0]).is_file():
        return check_reference(folder)
    if not (folder / "provenance.json").is_file():
        raise UserError(f"{folder}: no provenance.json; allowed: the results folder of a finished run, or a reference")
    provenance = read_provenances([("", folder)])[0]["provenance"]
    if provenance is None:
        return [Finding("provenance.json", "is not the provenance of a report")]
    made_by, here = provenance["code"].get("code_version"), find_checkout().code_version
    if made_by != here:
        check_version(folder, provenance)
    findings = list(check_files(folder, provenance, is_of_this_version=made_by == here))
    if made_by != here:
        findings.append(Finding("report.html", f"was made by {made_by}; this is {here}", is_wrong=False))
    checks = (check_trials(folder), check_provenance(folder, provenance), check_tables(folder, provenance))
    for check in checks:
        try:
            findings += check
        except UserError as error:
            findings.append(Finding("", str(error)))
    return [*dict.fromkeys(findings)]


def check_trials(folder: Path) -> Iterator[Finding]:
    """Check the rows of all trials for consistency and against the files in `cells/`."""
    read_trials(folder / MEASUREMENTS, list(COLUMNS), "copy it again")
    measurements = read_table(folder / MEASUREMENTS)
    yield from (Finding(MEASUREMENTS, what) for what in check_rows(measurements))
    yield from check_numbers(MEASUREMENTS, measurements)
    plan = plan_file.read(folder / "plan.json") if (folder / "plan.json").is_file() else None
    # A run of trainings only has no cells/, and no trials.
    if plan is None or (plan.rows and not (folder / "cells").is_dir()):
        what = "not compared with the rows of trials, for which plan.json or cells/ is missing"
        yield Finding(MEASUREMENTS, what, is_wrong=False)
        return
    paths = [*plan_file.planned_rows(plan, folder), *plan_file.repeated_rows(plan, folder)]
    rows = collect_rows([path for path in paths if path.is_file()]).to_pandas()
    yield from check_table(MEASUREMENTS, measurements, rows, "the rows in cells/")


def check_provenance(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare the provenance with the rows, and the table `roofs` with the files in `roofs/`."""
    measured = [read_table(folder / f"{name}.parquet") for name in ("measurements", "quality")]
    is_finished = (folder / "plan.json").is_file()  # reports without a plan omit trials that only `candidates` added
    for name, facts in (("machines", machine_facts(measured)), ("measured_by", measured_by(measured))):
        if is_finished and provenance.get(name) != facts:
            yield Finding("provenance.json", f"{name}: differs from what the rows give")
    roofs = read_table(folder / "roofs.parquet")
    if (folder / "roofs").is_dir():
        axes = ["machine", "device"]
        probed = read_roofs_of(folder).merge(roofs[axes].drop_duplicates())  # without devices of an earlier config
        stored, probed = (table.sort_values(axes, kind="stable", ignore_index=True) for table in (roofs, probed))
        yield from check_table("roofs.parquet", stored, probed, "the files in roofs/")
    elif len(roofs):
        yield Finding("roofs.parquet", "not compared with the probes, since roofs/ is missing", is_wrong=False)


def check_tables(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Finding]:
    """Recompute the derived tables and compare them with the stored ones."""
    measurements, stored = read_table(folder / MEASUREMENTS), read_run(folder)
    for name in TABLES:
        yield from check_csv(folder / f"{name}.csv", read_table(folder / f"{name}.parquet"))
    if not (folder / "plan.json").is_file():
        yield Finding("plan.json", "is missing, so the tables were not recomputed", is_wrong=False)
        return
    plan = plan_file.read(folder / "plan.json")
    started_in = (provenance.get("run") or {}).get("folder")
    references = [read_reference(path) for path in plan_file.find_references(plan, folder, started_in)]
    trainings = [folder / Path(path).relative_to(plan.config["results"]) for path in plan.trainings]
    compared = {*facts_of(stored.reference_cells).values()} <= {reference.facts for reference in references}
    # A reference without cells in this run may still be needed, since its roofs limit the possible speed-up.
    if not compared or len(references) < len(plan.references) or not all(path.is_file() for path in trainings):
        what = "names missing references or trainings, so the tables were not recomputed"
        yield Finding("plan.json", what, is_wrong=False)
        return
    computed = analyse(
        measurements,
        collect_rows(trainings, Training).to_pandas(),
        stored.searched_cells,
        plan.studies,
        plan.config["prices"],
        roofs=stored.roofs,
        references=references,
    )
    with TemporaryDirectory() as temporary:
        write_run(computed, Path(temporary))
        for name in (f"{name}.parquet" for name in TABLES):
            yield from check_table(name, read_table(folder / name), read_table(Path(temporary) / name), "the rows")
    thresholds = (
        read_json(folder / "thresholds.json", "thresholds"),
        json.loads(json.dumps(thresholds_of(computed, ""))),
    )
    given, expected = (pd.DataFrame({"series": content.get("thresholds", [])}, dtype=object) for content in thresholds)
    yield from check_table("thresholds.json", given, expected, "the rows")


if __name__ == "__main__":
    exit_with_status(main)

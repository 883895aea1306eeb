"""`plan.json`: config, studies and expected rows of a run, for the steps that analyse, plot, report and check it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from crossover.config.study import Study, study_of
from crossover.files import atomic_path
from crossover.plan.stages import path_of_row, planned_repeats, trials_of_stages
from crossover.reading import UnreadableError, read_json


@dataclass(frozen=True)
class Plan:
    """The plan of a run."""

    config: Mapping[str, Any]
    """The config, completed with defaults."""
    studies: Mapping[str, Study]
    devices: Sequence[str]
    cells: Sequence[Mapping[str, Any]]
    """Cells of the first grid, without those that `candidates` adds; each maps axes to values."""
    trials: int
    rows: Sequence[str]
    """Paths of the rows of the first grid's trials."""
    trainings: Sequence[str]
    searches: Sequence[str]
    """Paths of the searches for the largest batch that studies ask for."""
    several_hosts: bool
    """Whether rows of one device may come from several hosts, as on a cluster."""
    references: Sequence[str]
    """Folders of the reference machines with which the run is compared."""
    note: str | None
    """Reason why a GPU of this machine cannot be used; None if there is no such GPU, or if the config names devices."""
    keys: Sequence[Mapping[str, Any]] = ()
    """The expected keys of all results, with their parts (see `plan.keys`); empty in the plan of an earlier version."""

    @property
    def expected_keys(self) -> set[str]:
        return {key["key"] for key in self.keys}


def write(plan: Plan, path: Path) -> None:
    """Write the plan atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(asdict(plan)) + "\n", encoding="utf-8")


def read(path: Path) -> Plan:
    """Read a plan; raises UserError if the file is not a plan."""
    values = read_json(path, "plan")
    try:
        studies = {name: study_of(study) for name, study in values["studies"].items()}
        known = {field.name: values[field.name] for field in fields(Plan) if field.name in values}
        return Plan(**{**known, "studies": studies})
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UnreadableError(path, "not the plan of a run") from None


def planned_rows(plan: Plan, results: Path) -> list[Path]:
    """Paths of the rows planned so far: those of the first grid and of each stage of refinement."""
    cells = Path(plan.config["results"]) / "cells"
    rows = [Path(row).relative_to(cells) for row in plan.rows]

    def plan_of(stage: int) -> Path | None:
        file = results / "refinement" / f"stage-{stage}.json"
        return file if file.is_file() else None

    rows += [path_of_row(cell, trial) for cell, trial in trials_of_stages(plan_of) if cell.study in plan.studies]
    return [results / "cells" / row for row in dict.fromkeys(rows)]


def find_references(plan: Plan, results: Path, started_in: str | None = None) -> list[Path]:
    """Existing folders of the plan's references.

    Results may be moved, so a relative path is tried from three folders: the run's working directory as derived from
    the path of the results, its recorded working directory `started_in`, and the current working directory.
    """
    bases = [Path(started_in)] if started_in else []
    parts, resolved = Path(plan.config["results"]).parts, results.resolve()
    if resolved.parts[-len(parts) :] == parts and len(parts) < len(resolved.parts):
        bases.insert(0, resolved.parents[len(parts) - 1])
    bases.append(Path())
    existing = [[base / path for base in bases if (base / path).is_dir()] for path in plan.references]
    return [folders[0] for folders in existing if folders]


def repeated_rows(plan: Plan, results: Path) -> list[Path]:
    """Paths of the rows of the repeats planned so far."""

    def plan_of(repeat: int, part: str) -> Path | None:
        file = results / "repeats" / f"repeat-{repeat}{part}.json"
        return file if file.is_file() else None

    rows = []
    for repeat, trials in planned_repeats(plan.config.get("repeat_disturbed", 0), plan_of):
        of_plan = [(cell, trial) for cell, trial in trials if cell.study in plan.studies]
        rows += [results / "cells" / path_of_row(cell, trial, repeat) for cell, trial in of_plan]
    return rows

"""Two runs to compare: read from their folders, and shown on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from crossover.errors import UserError, allowed_names
from crossover.statistics.intervals import FASTER, SLOWER
from crossover.statistics.run_comparison import CODE_COLUMNS, MISSING, NO_DATA, OTHER, VERDICTS, summary
from crossover.tables.frames import of_study
from crossover.tables.guards import ENVIRONMENT_COLUMNS, differing_environments
from crossover.tables.registry import CELL_AXES
from crossover.tables.rows import read_trials

NEEDED_COLUMNS = [*(axis for axis in CELL_AXES if axis != "machine"), "status", "step_time_s"]
FINISHED = "name the results folder of a finished run"
MOST_LINES = 40
"""Cells that the terminal shows; a CSV file has all."""


def read_pair(first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the trials of two runs, each named as a results folder or as folder:study.

    A study named for one run is taken from both; two studies with different names are compared under the first name.
    Raises UserError naming a table that cannot be read or lacks the study.
    """
    (first_folder, first_study), (second_folder, second_study) = map(_place, (first, second))
    if (first_folder, first_study) == (second_folder, second_study):
        raise UserError(f"{first} and {second} are one run; name two results folders, or two studies")
    one = _read_run(first_folder, first_study or second_study)
    other = _read_run(second_folder, second_study or first_study)
    return one, other.assign(study=first_study) if first_study else other


def _place(name: str) -> tuple[Path, str | None]:
    """Folder and study; a single study stands behind the last colon."""
    single = re.fullmatch(r"(.+):([A-Za-z0-9_-]+)", name)
    return (Path(single[1]), single[2]) if single else (Path(name), None)


def _read_run(folder: Path, study: str | None) -> pd.DataFrame:
    path = folder / "measurements.parquet"
    # Runs of older and newer versions are compared too, if they have the needed columns.
    others = ["machine", *ENVIRONMENT_COLUMNS, *CODE_COLUMNS]
    trials: pd.DataFrame = read_trials(path, NEEDED_COLUMNS, FINISHED, others).to_pandas()
    known = sorted(trials["study"].unique())
    if study is not None and study not in known:
        raise UserError(f"{path}: study '{study}' was not measured; {allowed_names(study, known)}")
    return trials if study is None else of_study(trials, study)


def comparison_text(comparison: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame) -> str:
    """A comparison as tables for a terminal: cells, verdicts, spread of the ratios, and what differs or is missing."""
    shown = cells_shown(comparison)
    varying = [axis for axis in CELL_AXES if comparison[axis].nunique() > 1] or ["size"]
    columns = [*varying, "ratio", "ratio_low", "ratio_high", "verdict", "missing_in"]
    counts = comparison["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    in_both = comparison[comparison["verdict"] != MISSING]
    nothing = "no difference" if len(in_both) else "not compared: no cell is in both runs"
    parts = {
        f"cells ({len(shown)} of {len(comparison)} shown)": _table(shown[columns].set_index(varying)),
        "verdicts on the second run": _table(counts.to_frame("cells")),
        "cells without a time in both runs": _without_time(comparison),
        "ratios first/second (above 1 the second is faster)": _table(summary(comparison).to_frame("value")),
        "environments": "\n".join(differing_environments(first, second)) or nothing,
        "code": "\n".join(_code_lines(in_both)) or nothing,
    }
    return "\n\n".join(f"{title}\n{text}" for title, text in parts.items())


def cells_shown(comparison: pd.DataFrame) -> pd.DataFrame:
    """All cells of a small comparison; of a large one those that differ or lack a time, up to MOST_LINES."""
    differing = comparison["verdict"].isin([FASTER, SLOWER, NO_DATA, MISSING])
    return (comparison if len(comparison) <= MOST_LINES else comparison[differing]).head(MOST_LINES)


def _without_time(comparison: pd.DataFrame) -> str:
    """How many cells of a device lack a time, by how their trials ended in each run."""
    lacking = comparison[comparison["verdict"].isin([NO_DATA, MISSING])]
    by = ["study", "machine", "device", "status_first", "status_second"]
    counts = lacking[by].fillna(MISSING).value_counts(sort=False)
    return _table(counts.to_frame("cells")) if len(lacking) else "none"


CODE_WORDS = {
    "model": "code of the model",
    "measurement": "code of the measurement",
    "packages": "packages",
    OTHER: "variables or files that the model reads, or code without a key",
}


def _code_lines(in_both: pd.DataFrame) -> list[str]:
    """One line for each part of the code that differs or is not recorded, with its cells and their studies."""
    lines = []
    for column, outcome in (("differing_code", "not the same"), ("unrecorded_code", "not recorded")):
        for part, words in CODE_WORDS.items():
            cells = in_both[[part in (text or "").split() for text in in_both[column].astype(object).fillna("")]]
            if len(cells):
                studies = ", ".join(sorted(cells["study"].unique()))
                lines.append(f"{words}: {outcome} in {len(cells)} of {len(in_both)} cells ({studies})")
    return lines + [f"  {text}" for text in in_both["differing_packages"].dropna().unique()]


def _table(frame: pd.DataFrame) -> str:
    table = frame.reset_index().astype(object)
    return table.where(table.notna(), "").to_string(index=False, float_format="{:.4g}".format)

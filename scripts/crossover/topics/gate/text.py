"""Read two runs, and format their comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.compare.intervals import FASTER, SINGLE_TRIAL, SLOWER
from crossover.config.statuses import DISTURBED
from crossover.errors import UserError, allowed_names
from crossover.tables.frames import of_study, records
from crossover.tables.guards import DEVICE_COLUMNS, differing_environments
from crossover.tables.registry import CELL_AXES
from crossover.tables.rows import read_trials
from crossover.text import percent_text
from crossover.topics.gate.gate import (
    EXIT_STATUSES,
    LEAST_IDENTICAL,
    NOT_COMPARABLE,
    PASSED,
    UNDECIDED,
    Gate,
    differences_of,
)
from crossover.topics.gate.table import CODE_COLUMNS, MISSING, NO_DATA, OTHER, VERDICTS, compare_runs, summary

NEEDED_COLUMNS = [*(axis for axis in CELL_AXES if axis != "machine"), "status", "step_time_s"]
FINISHED = "name the results folder of a finished run"
MOST_LINES = 40
RATIO = "{:.4g}"
"""Format of numbers, the same in the terminal and in Markdown."""


def read_pair(first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the trials of two runs, each given as a results folder or as folder:study.

    If only one names a study, this study is read from both. Two studies with different names are compared under the
    first name. Raises UserError if both arguments are the same, or if the trials of a run cannot be compared.
    """
    (first_folder, first_study), (second_folder, second_study) = map(_folder_and_study, (first, second))
    if (first_folder, first_study) == (second_folder, second_study):
        raise UserError(f"{first} and {second} are the same run; name two results folders, or two studies")
    first_trials = _read_run(first_folder, first_study or second_study)
    second_trials = _read_run(second_folder, second_study or first_study)
    return first_trials, second_trials.assign(study=first_study) if first_study else second_trials


def read_identical(names: Sequence[str], second: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Read the trials of identical runs for calibration, by name, in the studies of the new run `second`.

    Raises UserError for too few runs, and for a run that is named twice, has none of the studies or is not comparable.
    """
    if len({*names}) < max(len(names), LEAST_IDENTICAL):
        raise UserError(f"--calibrate: {', '.join(names)}; allowed: {LEAST_IDENTICAL} or more runs, each named once")
    runs = {}
    for name in names:
        trials = read_trials_of(name)
        trials = trials[trials["study"].isin(second["study"])]
        if trials.empty:
            raise UserError(f"--calibrate: {name} lacks the studies of the new run; use another run")
        for what, texts in differences_of(trials, second, compare_runs(trials, second)).items():
            raise UserError(f"--calibrate: {name} differs from the new run in {what} ({texts[0]}); use another run")
        runs[name] = trials
    return runs


def read_trials_of(name: str) -> pd.DataFrame:
    """Read the trials of a run, given as a results folder or as folder:study."""
    return _read_run(*_folder_and_study(name))


def _folder_and_study(name: str) -> tuple[Path, str | None]:
    match = re.fullmatch(r"(.+):([A-Za-z0-9_-]+)", name)
    return (Path(match[1]), match[2]) if match else (Path(name), None)


def _read_run(folder: Path, study: str | None) -> pd.DataFrame:
    path = folder / "measurements.parquet"
    # Runs of other versions can be compared if they have the needed columns.
    optional_columns = ["machine", "trial", "flag_names", "started_at", "code_version"]
    optional_columns += [*DEVICE_COLUMNS, *CODE_COLUMNS]
    trials: pd.DataFrame = read_trials(path, NEEDED_COLUMNS, FINISHED, optional_columns).to_pandas()
    if "trial" in trials and len(repeated := trials[trials.duplicated([*CELL_AXES, "trial"])]):
        first = repeated.iloc[0]
        where = f"trial {first['trial']} of study '{first['study']}', size {first['size']}, {first['device']}"
        raise UserError(f"{path}: {where} is in the table twice; allowed: once")
    studies = sorted(trials["study"].unique())
    if study is not None and study not in studies:
        raise UserError(f"{path}: study '{study}' was not measured; {allowed_names(study, studies)}")
    return trials if study is None else of_study(trials, study)


def comparison_text(comparison: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame) -> str:
    """Format the result of `compare_runs`, or the cells of a gate, for the terminal."""
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
    """All cells if there are at most MOST_LINES, otherwise the first MOST_LINES that differ or lack a time."""
    differing = comparison["verdict"].isin([FASTER, SLOWER, NO_DATA, MISSING])
    return (comparison if len(comparison) <= MOST_LINES else comparison[differing]).head(MOST_LINES)


def _without_time(comparison: pd.DataFrame) -> str:
    lacking = comparison[comparison["verdict"].isin([NO_DATA, MISSING])]
    by = ["study", "machine", "device", "status_first", "status_second"]
    counts = lacking[by].fillna(MISSING).value_counts(sort=False)
    return _table(counts.to_frame("cells"))


CODE_WORDS = {
    "model": "code of the model",
    "measurement": "code of the measurement",
    "packages": "packages",
    OTHER: "variables or files that the model reads, or code that was not recorded",
}


def _code_lines(in_both: pd.DataFrame) -> list[str]:
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
    if table.empty:
        return "none"
    return table.where(table.notna(), "").to_string(index=False, float_format=RATIO.format)


OUTCOME_WORDS = {
    PASSED: "No cell is significantly slower by more than {limit}",
    SLOWER: "Slower by more than {limit}",
    MISSING: "Not decided: {lost}",
    SINGLE_TRIAL: "Not decided: {single}",
    UNDECIDED: "Undecided: the trials of {undecided} vary too much to detect a slowdown of {most}",
    NOT_COMPARABLE: "The runs are not comparable",
}
INTERVAL = ["ratio", "ratio_low", "ratio_high"]


def gate_record(gate: Gate, notes: Sequence[str]) -> dict[str, Any]:
    """The result of a gate as plain values, for programs.

    A ratio above 1 means that the second run is faster. Without identical runs, `calibrated`, `identical_differ_by`
    and `outlier` are None.
    """
    counts = ["trials_first", "trials_second", "status_first", "status_second"]
    return {
        "version": 1,
        "outcome": gate.outcome,
        "exit_status": EXIT_STATUSES[gate.outcome],
        "limit": gate.limit,
        "most_detectable": gate.most_detectable,
        "calibrated": gate.calibration and gate.calibration.significant,
        "identical_differ_by": gate.calibration and gate.calibration.measured,
        "outlier": gate.calibration and gate.calibration.outlier,
        "differences": dict(gate.differences),
        "notes": list(notes),
        "cells": records(gate.cells[[*CELL_AXES, "verdict", *INTERVAL, "detectable", *counts]]),
    }


def gate_markdown(gate: Gate, notes: Sequence[str]) -> str:
    """Format the result of a gate as Markdown."""
    cells, judged = gate.cells, gate.cells[gate.cells["ratio_low"].notna()]
    shown = pd.concat([gate.slower, gate.missing, gate.single_trial, gate.undecided])
    limit, most = percent_text(gate.limit), percent_text(gate.most_detectable)
    words = {"limit": limit, "most": most, "undecided": _cells_text(len(gate.undecided))}
    outcome = OUTCOME_WORDS[gate.outcome].format(**words, lost=_lost_words(gate), single=_single_words(gate))
    lines = [f"**{outcome}** ({len(cells)} cells, {len(judged)} with an interval)", ""]
    if len(judged):
        typical, largest = (percent_text(float(judged["detectable"].quantile(share))) for share in (0.5, 1))
        slowdowns = f"{typical} (median of the cells; {largest} in the noisiest)"
        lines.append(f"- Minimum detectable slowdown (90 % power): {slowdowns}")

    lines += [f"- {name}: {text}" for name, texts in gate.differences.items() for text in texts]
    lines += [f"- {count} {verdict.replace('_', ' ')}" for verdict, count in Counter(shown["verdict"]).items()]
    if len(gate.undecided):
        lines.append("- Inconclusive cells need more `trials`, or a quieter machine")
    lines.append(f"- Limit: significantly slower by more than {limit}, corrected for multiple testing")
    if gate.calibration is not None:
        measured, significant = map(percent_text, (gate.calibration.measured, gate.calibration.significant))
        largest = f"the largest significant difference is at least {significant}"
        ending = largest if gate.calibration.significant else "no difference is significant"
        lines.append(f"- Identical runs: a cell differs by up to {measured}; {ending}")
        if gate.calibration.outlier is not None:
            lines.append(
                f"- Warning: without {gate.calibration.outlier}, identical runs differ much less; leave it out of "
                "--calibrate, or measure it again"
            )
    lines += [f"- Note: {note}" for note in notes]
    if len(shown):
        axes = ["study", "device", *(axis for axis in CELL_AXES[1:-1] if axis == "size" or cells[axis].nunique() > 1)]
        columns = [*axes, *INTERVAL, "verdict"]
        texts = shown[columns].astype(object).map(lambda cell: RATIO.format(cell) if isinstance(cell, float) else cell)
        rows = [columns, ["---"] * len(columns), *texts.fillna("").head(MOST_LINES).to_numpy().tolist()]
        lines += ["", *("| " + " | ".join(map(str, row)) + " |" for row in rows)]
    return "\n".join(lines) + "\n"


def _lost_words(gate: Gate) -> str:
    absent = int((gate.missing["verdict"] == MISSING).sum())
    counts = {"only in one of the runs": absent, "without a time in the second run": len(gate.missing) - absent}
    be = {where: "is" if count == 1 else "are" for where, count in counts.items()}
    words = [f"{_cells_text(count)} {be[where]} {where}" for where, count in counts.items() if count]
    return ", ".join(words) or "no cell has a time in both runs"


def _single_words(gate: Gate) -> str:
    cells, runs = gate.single_trial, ["first", "second"]
    single = {run for run in runs if (cells[f"trials_{run}"] == 1).any()}
    where = f"the {single.pop()} run" if len(single) == 1 else "a run"
    if (cells[[f"trials_{run}" for run in runs]] == 1).all(axis=None):
        where = "both runs"
    return f"{_cells_text(len(cells))} {'has' if len(cells) == 1 else 'have'} a single trial in {where}, so no interval"


def _cells_text(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def gate_notes(gate: Gate, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Notes that do not affect a gate's outcome."""
    stated = {text for texts in gate.differences.values() for text in texts}
    code = _code_lines(gate.cells[gate.cells["verdict"] != MISSING])
    disturbed = []
    for which, run in (("first", first), ("second", second)):
        flags_of_trials = run["flag_names"].dropna() if "flag_names" in run else ()
        flags = Counter(flag for trial_flags in flags_of_trials for flag in trial_flags if flag in DISTURBED)
        disturbed += [f"{count} of {len(run)} trials of the {which} run: {flag}" for flag, count in flags.items()]
    notes = [*differing_environments(first, second), *code, *disturbed]
    return [text for text in notes if text not in stated]

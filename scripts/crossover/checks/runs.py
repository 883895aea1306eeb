"""Runs to compare: read from their folders, and the comparison told on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from crossover.errors import UserError, allowed_names
from crossover.statistics.run_comparison import FASTER, MISSING, SLOWER, VERDICTS, Summary, summary
from crossover.tables.frames import CELL_AXES, of_study, read_trials
from crossover.tables.guards import ENVIRONMENT_COLUMNS, differing_environments

NEEDED_COLUMNS = [*(axis for axis in CELL_AXES if axis != "machine"), "status", "step_time_s"]
FINISHED = "name the results folder of a finished run"
MOST_LINES = 40
"""Cells that the terminal shows; the file holds all."""


def read_pair(paths: Sequence[Path], studies: Sequence[str | None]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the trials of two runs, ready for `compare_runs`.

    A study that is named for one run is taken of both; two studies with different names are compared as if they had
    the first one's. Raises UserError naming a table that cannot be read, or that lacks the study.
    """
    first_study, second_study = studies[0] or studies[1], studies[1] or studies[0]
    first, second = _read_run(paths[0], first_study), _read_run(paths[1], second_study)
    return first, second if first_study is None else second.assign(study=first_study)


def _read_run(path: Path, study: str | None) -> pd.DataFrame:
    # Runs of older and newer versions are compared too, as long as they hold what it takes.
    others = ["machine", *ENVIRONMENT_COLUMNS]
    trials: pd.DataFrame = read_trials(path, NEEDED_COLUMNS, FINISHED, others).to_pandas()
    known = sorted(trials["study"].unique())
    if study is not None and study not in known:
        raise UserError(f"{path}: study '{study}' was not measured; {allowed_names(study, known)}")
    return trials if study is None else of_study(trials, study)


def comparison_text(comparison: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame, names: Sequence[str]) -> str:
    """A comparison as lines for a terminal: the cells, their summary, and how the runs' environments differ."""
    told = [f"Time of {names[1]} over time of {names[0]} with its 95 % interval; below 1 the former is faster:", ""]
    told += _cell_lines(comparison)
    told += ["", *_summary_lines(comparison, summary(comparison)), ""]
    differing = differing_environments(first, second)
    told += ["The environments differ:", *(f"  {text}" for text in differing)] if differing else ["Like environments."]
    return "\n".join(told)


def _cell_lines(comparison: pd.DataFrame) -> list[str]:
    """The cells as a table; where they are many, those that the runs do not share or agree on."""
    if comparison.empty:
        return ["no cells"]
    telling = comparison["verdict"].isin([FASTER, SLOWER, MISSING])
    shown = (comparison if len(comparison) <= MOST_LINES else comparison[telling]).head(MOST_LINES)
    varying = [axis for axis in CELL_AXES if comparison[axis].nunique() > 1] or ["size"]
    table = shown[varying].astype(str)
    table["ratio"] = [_number(ratio) for ratio in shown["ratio"]]
    table["interval"] = [
        "" if pd.isna(low) else f"{_number(low)} to {_number(high)}"
        for low, high in zip(shown["ratio_low"], shown["ratio_high"], strict=True)
    ]
    table["verdict"] = [
        verdict if pd.isna(side) else f"{verdict} in the {side}"
        for verdict, side in zip(shown["verdict"], shown["missing_in"], strict=True)
    ]
    lines = table.to_string(index=False).splitlines() if len(table) else []
    hidden = len(comparison) - len(shown)
    return [*lines, f"({hidden} cells are not shown; comparison.csv holds all)"] if hidden else lines


def _summary_lines(comparison: pd.DataFrame, found: Summary) -> list[str]:
    counts = comparison["verdict"].value_counts()
    lines = [", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in (*VERDICTS, MISSING))]
    if found.cells:
        quartiles = ", ".join(map(_number, (found.lower_quartile, found.median, found.upper_quartile)))
        lines.append(
            f"{found.cells} ratios: geometric mean {_number(found.geometric_mean)}; smallest {_number(found.minimum)}, "
            f"quartiles {quartiles}, largest {_number(found.maximum)}"
        )
    if found.share_within is None:
        return [*lines, "No cell has an interval: that takes two trials in each run."]
    share = f"{100 * found.share_within:.0f} % of {found.intervals} intervals hold 1"
    return [*lines, f"{share}; about 95 % do where only chance differs."]


def _number(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.3f}" if value < 100 else f"{value:.4g}"

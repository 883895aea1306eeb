"""Cost models of every line of every study and device, as a table; a line without one says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.answers.sentences import line_words
from crossover.config.studies import steps_of_run
from crossover.figures.style import device_label, number_text, percent_text, seconds_text
from crossover.statistics.cost_model import CostModel, NoModelError, fit_cost_model, trial_spread
from crossover.tables.frames import DEVICE_LINE_AXES, LINE_AXES, device_name_of, records, rows_with, with_ok_times

COST_MODEL_COLUMNS = {
    "a_s": "constant part of the time of a step, a + b n^c at size n, in s; empty, as down to the sizes: no model",
    "b_s": "factor of the growing part, in s",
    "c": "exponent of the growing part",
    "rms_residual": "root mean square of the model's misses at the measured sizes, a share: 0.25 is a factor of 1.25",
    "largest_residual": "largest of these misses",
    "smallest_size": "smallest size that it was fitted to",
    "largest_size": "largest size that it was fitted to",
    "sizes": "number of sizes that it was fitted to",
    "trial_spread": "standard deviation of a trial about its cell, as such a share; empty with one trial a cell",
    "reason": "why there is no model",
    "run_steps": "steps of the published run; empty where the study has none",
    "size_name": "what the size axis counts",
    "device_name": "name of the device",
}
"""The columns of a cost model beside the axes of its line and its device."""

MODEL_FIELDS = list(CostModel.__dataclass_fields__)


def model_lines(measurements: pd.DataFrame, steps_per_run: Mapping[str, Any]) -> pd.DataFrame:
    """One row for each line and device; `steps_per_run` has a study's steps of a run, as its file gives them."""
    rows = []
    for key, line in with_ok_times(measurements).groupby(DEVICE_LINE_AXES, sort=False):
        axes = dict(zip(DEVICE_LINE_AXES, key, strict=True))
        rows.append(
            axes
            | _fitted(line.dropna(subset=["step_time_s"]))
            | {
                "run_steps": steps_of_run(steps_per_run[str(axes["study"])], int(axes["batch_size"])),  # type: ignore[call-overload]
                "size_name": line["size_name"].iloc[0],
                "device_name": device_name_of(line),
            }
        )
    return pd.DataFrame(rows, columns=[*DEVICE_LINE_AXES, *COST_MODEL_COLUMNS]).convert_dtypes()


def _fitted(timed: pd.DataFrame) -> dict[str, Any]:
    trials = {float(size): times.tolist() for size, times in timed.groupby("size")["step_time_s"]}  # type: ignore[arg-type]
    try:
        return vars(fit_cost_model(trials))
    except NoModelError as error:
        return {"reason": str(error), "trial_spread": trial_spread(trials)}


def cost_model_of(row: Mapping[str, Any]) -> CostModel | None:
    """The model of a row of the table whose missing values are None; None where it has none."""
    return None if row["a_s"] is None else CostModel(**{field: row[field] for field in MODEL_FIELDS})


def models_of(models: pd.DataFrame, line: Mapping[str, Any]) -> dict[str, CostModel]:
    """The models of a line, by device; `line` has the line's axes."""
    own = records(rows_with(models, LINE_AXES, line))
    return {row["device"]: model for row in own if (model := cost_model_of(row))}


def model_words(row: Mapping[str, Any], varying: list[str]) -> dict[str, str]:
    """A row of the table in words, for the report: its line, its device, and the model or why there is none."""
    words = {
        "line": line_words(dict(row), varying),
        "device": device_label(row["device"], row["device_name"]),
        "reason": row["reason"] or "",
    }
    model = cost_model_of(row)
    if model is None:
        return words
    return words | {
        "constant": seconds_text(model.a_s) if model.a_s >= 1e-9 else "0",
        "factor": f"{model.b_s:.3g}",
        "exponent": number_text(model.c),
        "sizes": f"{model.sizes}, {model.smallest_size:,.0f} to {model.largest_size:,.0f}",
        "rms": percent_text(model.rms_residual),
        "largest": percent_text(model.largest_residual),
    }

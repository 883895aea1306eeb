"""Whether a device or a precision changes the model: scikit-learn's report of each training, compared seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.config.words import BASELINE, PLAIN_SIDES
from crossover.errors import UserError
from crossover.statistics.intervals import mean_over_trials
from crossover.tables.registry import CELL_AXES, QUALITY, QUALITY_METRICS, table_of

MODEL_AXES = [axis for axis in CELL_AXES if axis not in ("device", "precision")]
"""The axes that compared trainings share."""


def quality_table(trainings: pd.DataFrame, class_names: Mapping[str, Sequence[str] | None]) -> pd.DataFrame:
    """One row a training, with scikit-learn's report as columns.

    `class_names` are those of each study, or None for the classes' numbers. Raises UserError where a study names fewer
    classes than there are.
    """
    baselines = {
        (*(row[axis] for axis in MODEL_AXES), row["seed"]): row["predictions"]
        for row in trainings[is_baseline(trainings) & (trainings["status"] == "ok")].to_dict("records")
    }
    rows: list[Mapping[Any, Any]] = []
    for study, own in trainings.groupby("study", sort=False):
        names = _names(str(study), own, class_names.get(str(study)))
        for row in own.to_dict("records"):
            baseline = baselines.get((*(row[axis] for axis in MODEL_AXES), row["seed"]))
            rows.append(row | (_report_columns(row, names, baseline) if row["status"] == "ok" else {}))
    return table_of("quality", pd.DataFrame(rows, columns=[*QUALITY]))


def quality_pairs_of(quality: pd.DataFrame) -> pd.DataFrame:
    """Each device and precision against the CPU in fp32 by seed: one row a cell and metric, of seeds ok on both."""
    ok = quality[quality["status"] == "ok"]
    baseline = is_baseline(ok)
    pairs = ok[~baseline].merge(ok[baseline], on=[*MODEL_AXES, "seed"], suffixes=("", "_baseline"))
    rows = []
    for key, own in pairs.groupby(CELL_AXES, sort=False):
        for metric in QUALITY_METRICS:
            differences = (own[metric] - own[f"{metric}_baseline"]).tolist()
            found = mean_over_trials(differences)
            rows.append(
                dict(zip(CELL_AXES, key, strict=True))
                | {
                    "metric": metric,
                    "difference": found.mean,
                    "difference_low": found.low,
                    "difference_high": found.high,
                    "largest": max(differences, key=abs),
                    "seeds": len(differences),
                }
            )
    return table_of("quality_pairs", rows)


def is_baseline(rows: pd.DataFrame) -> pd.Series:
    """Which trainings all others are compared with: those on the CPU in fp32."""
    return (rows["device"] == BASELINE) & (rows["precision"] == PLAIN_SIDES["precision"])


def _names(study: str, trainings: pd.DataFrame, named: Sequence[str] | None) -> list[str]:
    ok = trainings[trainings["status"] == "ok"]
    classes = 1 + max((int(max(values)) for name in ("labels", "predictions") for values in ok[name]), default=-1)
    if named is None:
        return [str(number) for number in range(classes)]
    if classes > len(named):
        raise UserError(
            f"config/studies/{study}.yaml: quality.classes: {len(named)} names, but the data have {classes} classes; "
            "name each one, or take null"
        )
    return list(named)


def _report_columns(row: Mapping[Any, Any], names: list[str], baseline: Any) -> dict[str, Any]:
    """scikit-learn's classification report as columns; a class that is never predicted has precision 0."""
    from sklearn.metrics import classification_report  # takes a moment, and few runs train

    report = classification_report(
        row["labels"],
        row["predictions"],
        labels=range(len(names)),
        target_names=names,
        output_dict=True,
        zero_division=0,
    )
    classes = [report[name] for name in names]
    return {
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
        "differing_share": None if baseline is None else 1 - float((baseline == row["predictions"]).mean()),
        "class_names": names,
        "class_precision": [found["precision"] for found in classes],
        "class_recall": [found["recall"] for found in classes],
        "class_f1": [found["f1-score"] for found in classes],
        "class_support": [int(found["support"]) for found in classes],
        "predicted_classes": len(set(row["predictions"])),
    }

"""Whether a device or a precision changes the model: scikit-learn's report of each training, compared seed by seed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd
from sklearn.metrics import classification_report

from crossover.config.words import BASELINE
from crossover.errors import UserError
from crossover.statistics.quality_pairs import (
    MODEL_AXES,
    Difference,
    difference_over_seeds,
    is_baseline,
    paired_by_seed,
)
from crossover.tables.columns import Training
from crossover.tables.frames import CELL_AXES

METRICS = {"accuracy": "accuracy", "macro_f1": "macro-averaged F1", "weighted_f1": "weighted F1"}
"""What is compared, with its words; all are shares, and more is better."""

_KEPT = {f.name: f.metadata["doc"] for f in fields(Training)}
QUALITY_COLUMNS = {
    **{name: _KEPT[name] for name in ("seed", "size_name", "parameters", "epochs", "test_share", "status", "reason")},
    "accuracy": "share of the rows held out whose class is predicted; empty unless the status is ok",
    "macro_f1": "mean of the classes' F1",
    "weighted_f1": "mean of the classes' F1, weighted by their rows",
    "loss": _KEPT["loss"],
    "differing_share": "share of the rows held out that the CPU's training in fp32 with this seed predicts otherwise",
    "class_names": "the classes; a list, as are the next four columns, one value a class",
    "class_precision": "of the rows predicted to be of a class, the share that is",
    "class_recall": "of a class's rows, the share that is predicted to be of it",
    "class_f1": "harmonic mean of the two",
    "class_support": "a class's rows among those held out",
    "predicted_classes": "number of classes that are predicted at all",
    **dict(list(_KEPT.items())[list(_KEPT).index("steps") :]),
}
"""The columns of a training's quality beside the axes of its cell."""


def quality_table(trainings: pd.DataFrame, class_names: Mapping[str, Sequence[str] | None]) -> pd.DataFrame:
    """One row a training, with scikit-learn's report as columns.

    `class_names` are those of each study, or None for the classes' numbers. Raises UserError where a study names fewer
    classes than there are.
    """
    baselines = {
        (*(row[axis] for axis in MODEL_AXES), row["seed"]): row["predictions"]
        for row in trainings[is_baseline(trainings) & (trainings["status"] == "ok")].to_dict("records")
    }
    rows = []
    for study, own in trainings.groupby("study", sort=False):
        names = _names(str(study), own, class_names.get(str(study)))
        for row in own.to_dict("records"):
            baseline = baselines.get((*(row[axis] for axis in MODEL_AXES), row["seed"]))
            rows.append(row | (_report_columns(row, names, baseline) if row["status"] == "ok" else {}))
    table = pd.DataFrame(rows).reindex(columns=[*CELL_AXES, *QUALITY_COLUMNS])
    return table.astype({"predicted_classes": "Int64", "steps": "Int64"})  # whole numbers, though some are missing


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


def _report_columns(row: Mapping[Hashable, Any], names: list[str], baseline: Any) -> dict[str, Any]:
    report = report_of(row["labels"], row["predictions"], names)
    classes = [report[name] for name in names]
    same = None if baseline is None else float((baseline == row["predictions"]).mean())
    return {
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
        "differing_share": None if same is None else 1 - same,
        "class_names": names,
        "class_precision": [found["precision"] for found in classes],
        "class_recall": [found["recall"] for found in classes],
        "class_f1": [found["f1-score"] for found in classes],
        "class_support": [int(found["support"]) for found in classes],
        "predicted_classes": len(set(row["predictions"])),
    }


def report_of(labels: Sequence[int], predictions: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """scikit-learn's classification report; a class that is never predicted has precision 0."""
    found: dict[str, Any] = classification_report(
        labels, predictions, labels=range(len(names)), target_names=names, output_dict=True, zero_division=0
    )
    return found


@dataclass(frozen=True)
class Comparison:
    """The quality of one cell's models against the CPU's in fp32."""

    axes: Mapping[str, Any]
    metrics: Mapping[str, Difference]

    @property
    def accelerated(self) -> bool:
        """Whether an accelerator trained them."""
        return bool(self.axes["device"] != BASELINE)


def compare_quality(table: pd.DataFrame) -> list[Comparison]:
    """Each device and precision against the CPU in fp32, over the seeds that ended ok on both; none without any."""
    ok = table[table["status"] == "ok"]
    baseline = is_baseline(ok)
    found = []
    for key, own in ok[~baseline].groupby(CELL_AXES, sort=False):
        pairs = paired_by_seed(own, ok[baseline])
        if len(pairs):
            metrics = {
                name: difference_over_seeds((pairs[name] - pairs[f"{name}_baseline"]).tolist()) for name in METRICS
            }
            found.append(Comparison(dict(zip(CELL_AXES, key, strict=True)), metrics))
    return found

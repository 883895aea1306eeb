"""Table `quality`: scikit-learn's report of each training, and differences between devices and precisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.compare.intervals import Interval, columns_of, t_quantile
from crossover.config.words import BASELINE, BASELINE_SETTINGS
from crossover.errors import UserError
from crossover.tables.registry import CELL_AXES, QUALITY, QUALITY_METRICS
from crossover.tables.run_tables import table_of

MODEL_AXES = [axis for axis in CELL_AXES if axis not in ("device", "precision")]
"""The axes on which compared trainings agree."""

MARGIN = 0.01
"""Equivalence margin of accuracy: one percentage point."""

ADDED_ROWS = 4
"""Number of differing rows that `mean_over_seeds_and_rows` adds, half of them in each direction."""


def quality_table(trainings: pd.DataFrame, class_names: Mapping[str, Sequence[str] | None]) -> pd.DataFrame:
    """One row per training: scikit-learn's report as columns, and the differences of its cell from the CPU in fp32.

    `class_names` is by study; None numbers the classes. Raises UserError for fewer names than classes in the data.
    """
    baselines = {
        (*(row[axis] for axis in MODEL_AXES), row["seed"]): row["predictions"]
        for row in trainings[is_baseline(trainings) & (trainings["status"] == "ok")].to_dict("records")
    }
    differences = _differences(trainings, class_names)
    rows: list[Mapping[Any, Any]] = []
    for study, of_study in trainings.groupby("study", sort=False):
        names = _names(str(study), of_study, class_names.get(str(study)))
        for row in of_study.to_dict("records"):
            baseline = baselines.get((*(row[axis] for axis in MODEL_AXES), row["seed"]))
            report = _report_columns(row, names, baseline) if row["status"] == "ok" else {}
            rows.append(row | report | differences.get(tuple(row[axis] for axis in CELL_AXES), {}))
    return table_of("quality", pd.DataFrame(rows, columns=[*QUALITY]))


def compared_cells(quality: pd.DataFrame) -> pd.DataFrame:
    """One row for each cell with differences from the CPU in fp32."""
    return quality.dropna(subset=["seeds_compared"]).drop_duplicates(CELL_AXES)


def _differences(
    trainings: pd.DataFrame, class_names: Mapping[str, Sequence[str] | None]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The intervals of a metric are simultaneous over the cells of a study and machine."""
    ok = trainings[trainings["status"] == "ok"]
    baseline = is_baseline(ok)
    pairs = ok[~baseline].merge(ok[baseline], on=[*MODEL_AXES, "seed"], suffixes=("", "_baseline"))
    differences = {}
    for (study, _), compared in pairs.groupby(["study", "machine"], sort=False):
        classes = len(_names(str(study), ok[ok["study"] == study], class_names.get(str(study))))
        cells = compared.groupby(CELL_AXES, sort=False)
        for cell, trained in cells:
            differences[cell] = _compared(trained, classes, cells.ngroups)
    return differences


def _compared(pairs: pd.DataFrame, classes: int, together: int) -> dict[str, Any]:
    labels = np.asarray(pairs["labels"].iloc[0])
    rarest = int(np.unique(labels, return_counts=True)[1].min())
    side, baseline = (
        [scores_of_rows(labels, np.asarray(predictions), classes) for predictions in pairs[column]]
        for column in ("predictions", "predictions_baseline")
    )
    columns: dict[str, Any] = {"seeds_compared": len(pairs)}
    for metric in QUALITY_METRICS:
        differences = np.stack([scores[metric] - base[metric] for scores, base in zip(side, baseline, strict=True)])
        # A row of the rarest class changes macro F1 most.
        one_row = len(labels) / (classes * rarest) if metric == "macro_f1" else 1.0
        columns |= columns_of(mean_over_seeds_and_rows(differences, one_row, together), metric + "_difference{}")
    return columns


def scores_of_rows(
    labels: NDArray[np.int64], predictions: NDArray[np.int64], classes: int
) -> dict[str, NDArray[np.float64]]:
    """Scores of each row, by metric. A metric is the mean of its scores; their variance gives its sampling error.

    For F1, a row's score is the metric plus the row's influence on it (infinitesimal jackknife: Efron, "Nonparametric
    estimates of standard error", 1981). The influence is the derivative of F1 = 2 TP / (rows of the class + rows
    predicted as the class).
    """
    right = labels == predictions
    support = np.bincount(labels, minlength=classes)
    total = np.maximum(support + np.bincount(predictions, minlength=classes), 1)
    f1 = 2 * np.bincount(labels[right], minlength=classes) / total

    def influence(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The influence of each row on the weighted sum of the F1 of the classes."""
        steps = len(labels) * weights / total
        return np.asarray(steps[labels] * (2 * right - f1[labels]) - steps[predictions] * f1[predictions])

    return {
        "accuracy": right.astype(float),
        "macro_f1": f1.mean() + influence(np.full(classes, 1 / classes)),
        "weighted_f1": f1[labels] + influence(support / len(labels)),
    }


def mean_over_seeds_and_rows(differences: NDArray[np.float64], one_row: float = 1.0, together: int = 1) -> Interval:
    """Mean of paired differences of shape (seeds, rows), with its 95 % interval over new seeds and new rows.

    A single seed gives no interval. `together` is as in `t_quantile`.

    The models of all seeds are evaluated on the same rows, so a mean over seeds still has the sampling error of the
    rows. The half width is the root of the sum of two squares: the half width for the means of the seeds, by Student's
    quantile, and that for the means of the rows, by the normal quantile (Howe, "Approximate confidence limits on the
    mean of X + Y", 1974). The interaction of seeds and rows counts in both, which is conservative.

    Since few rows or none may differ, ADDED_ROWS are added that differ by `one_row` (after Agresti and Min, "Simple
    improved confidence intervals for comparing matched proportions", 2005). If all predictions agree, an interval of
    accuracy then extends 3.9 rows to each side, compared with 3.7 for the exact binomial interval.
    """
    seeds, rows = differences.shape
    mean = float(differences.mean())
    if seeds < 2:
        return Interval(mean)
    seeds_variance = float(differences.mean(axis=1).var(ddof=1)) / seeds
    deviations = differences.mean(axis=0) - mean
    rows_variance = (float(np.square(deviations).sum()) + ADDED_ROWS * one_row**2) / rows**2
    half_width = math.hypot(
        t_quantile(seeds - 1, together) * math.sqrt(seeds_variance),
        t_quantile(math.inf, together) * math.sqrt(rows_variance),
    )
    return Interval(mean, mean - half_width, mean + half_width)


def is_baseline(rows: pd.DataFrame) -> pd.Series:
    """Mask of the baseline trainings: those on the CPU in fp32."""
    return (rows["device"] == BASELINE) & (rows["precision"] == BASELINE_SETTINGS["precision"])


def _names(study: str, trainings: pd.DataFrame, named: Sequence[str] | None) -> list[str]:
    ok = trainings[trainings["status"] == "ok"]
    classes = 1 + max((int(max(values)) for name in ("labels", "predictions") for values in ok[name]), default=-1)
    if named is None:
        return [str(number) for number in range(classes)]
    if classes > len(named):
        raise UserError(
            f"config/studies/{study}.yaml: quality.classes: {len(named)} names, but the data have {classes} classes; "
            "name each one, or use null"
        )
    return list(named)


def _report_columns(row: Mapping[Any, Any], names: list[str], baseline: Any) -> dict[str, Any]:
    from sklearn.metrics import classification_report  # slow to import, and few runs train models

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
        "class_precision": [scores["precision"] for scores in classes],
        "class_recall": [scores["recall"] for scores in classes],
        "class_f1": [scores["f1-score"] for scores in classes],
        "class_support": [int(scores["support"]) for scores in classes],
        "predicted_classes": len(set(row["predictions"])),
    }

"""The answer on whether a model trained on an accelerator is as good as one trained on the CPU in fp32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.compare.intervals import columns_of, decided, interval_of
from crossover.config.words import BASELINE
from crossover.config.workloads import workload_traits
from crossover.tables.frames import first_row, records
from crossover.tables.labels import machine_words, side_word
from crossover.text import listed
from crossover.topics.answer import Answer
from crossover.topics.quality.table import MARGIN, compared_cells, is_baseline
from crossover.topics.wording import confidence_text, signed_text

BY_PRIORITY = ("single_trial", "better", "worse", "inconclusive", "equivalent")
"""Conclusions on cells; the first that occurs is the study's, unless some cells are better and others worse."""


@dataclass(frozen=True, kw_only=True)
class Quality(Answer):
    """Whether models trained on an accelerator are as good as those trained on the CPU in fp32."""

    kind = "quality"
    statuses = (
        *("better", "worse", "both", "equivalent", "inconclusive", "single_trial"),
        *("only_cpu", "no_baseline", "nothing_learnt"),
    )
    differences = ("better", "worse", "both")

    metric: str | None = None
    data: str = ""
    """The held-out rows, and whether these are generated."""
    difference: float | None = None
    """The largest difference from the CPU in fp32."""
    difference_low: float | None = None
    difference_high: float | None = None
    place: str = ""
    """The devices and precisions with that difference, and those with each conclusion."""
    better: str = ""
    worse: str = ""
    undecided: str = ""

    @property
    def quantity(self) -> str | None:
        return self.metric

    def sentence(self) -> str:
        tested = f"; tested on {self.data}" if self.data else ""
        return self._conclusion() + tested

    def _conclusion(self) -> str:
        within = f"±{MARGIN}"
        return {
            "no_baseline": "No baseline for the quality of trained models: no training on the CPU in fp32 succeeded",
            "nothing_learnt": "No comparison of trained models: no model predicts more than one class; "
            "raise quality.epochs",
            "only_cpu": "No comparison with a GPU: only trainings on the CPU succeeded",
            "single_trial": "At least two seeds are needed to tell whether a GPU changes the trained model",
            "better": f"A GPU trains a better model ({self.better})",
            "worse": f"A GPU trains a worse model ({self.worse})",
            "both": f"A GPU trains a better model ({self.better}) and a worse one ({self.worse})",
            "inconclusive": f"Inconclusive whether a GPU changes the trained model ({self.undecided}): "
            f"the 95 % interval reaches beyond {within}",
            "equivalent": f"A GPU trains an equivalent model: {self.metric} within {within} of the CPU's in fp32",
        }[self.status]

    def details(self) -> list[str]:
        if self.difference is None:
            return []
        largest = f"{signed_text(self.difference)} in {self.metric} ({self.place})"
        interval = confidence_text(self.difference_low, self.difference_high, "difference")
        return [f"largest difference from the CPU in fp32: {largest}", *interval]


def quality_answer(trained: pd.DataFrame) -> Quality:
    """A study's conclusion on accuracy, from intervals over seeds and rows; `trained` has one row per training."""
    baseline = trained[is_baseline(trained) & (trained["status"] == "ok")]
    about: dict[str, Any] = {"machine": first_row(trained)["machine"], "main": True}
    if baseline.empty:
        return Quality(**about, status="no_baseline")
    about |= {"metric": "accuracy", "data": _data(first_row(baseline))}
    if not (baseline["predicted_classes"] > 1).any():
        return Quality(**about, status="nothing_learnt")
    if not trained["status"].isin(["ok", "unsupported"]).all():
        about["caveats"] = ["lost_cells"]
    cells_compared = compared_cells(trained)
    accelerated = cells_compared[cells_compared["device"] != BASELINE]
    compared = accelerated if len(accelerated) else cells_compared
    if len(compared):
        largest = first_row(compared.loc[[compared["accuracy_difference"].abs().idxmax()]])
        about |= columns_of(interval_of(largest, "accuracy_difference{}"), "difference{}")
        about |= {"trials": largest["seeds_compared"], "place": _names([largest], compared)}
    if accelerated.empty:
        return Quality(**about, status="only_cpu")
    conclusions: dict[str, list[dict[str, object]]] = {}
    for row in records(accelerated):
        interval = row["accuracy_difference_low"], row["accuracy_difference_high"]
        conclusion = decided(*interval, MARGIN, "better", "worse")
        conclusions.setdefault(conclusion, []).append(row)
    better, worse, undecided = (
        _names(conclusions.get(name, ()), compared) for name in ("better", "worse", "inconclusive")
    )
    status = "both" if better and worse else next(name for name in BY_PRIORITY if name in conclusions)
    return Quality(**about, status=status, better=better, worse=worse, undecided=undecided)


def _data(training: Mapping[str, Any]) -> str:
    rows = f"{sum(training['class_support']):,}"
    if training["generated_data"]:
        return f"{rows} generated rows"
    return f"{rows} rows of {workload_traits(training['workload']).dataset}"


def _names(rows: Iterable[dict[str, object]], compared: pd.DataFrame) -> str:
    several = compared["size"].nunique() > 1
    return listed(
        [
            f"{side_word(str(row['device']))} in {row['precision']}"
            + machine_words("on", str(row["machine"]))
            + (f" at size {row['size']:,}" if several else "")
            for row in rows
        ]
    )

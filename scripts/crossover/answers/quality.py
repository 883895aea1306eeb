"""The answer on whether a model trained on an accelerator is as good as one trained on the CPU in fp32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row, estimate
from crossover.config.words import BASELINE
from crossover.config.workloads import workload_traits
from crossover.statistics.quality import MARGIN, compared_cells, decision, is_baseline
from crossover.tables.frames import first_row, records
from crossover.tables.labels import machine_words, side_word
from crossover.text import listed

BY_PRIORITY = ("single_trial", "better", "worse", "inconclusive", "equivalent")
"""Conclusions on cells; the first that occurs is the study's, unless some cells are better and others worse."""


def quality_answer(trained: pd.DataFrame) -> Row:
    """A study's conclusion on accuracy, from intervals over seeds and rows; `trained` has one row per training."""
    baseline = trained[is_baseline(trained) & (trained["status"] == "ok")]
    answer: Row = {"kind": "quality", "machine": first_row(trained)["machine"], "main": True}
    if baseline.empty:
        return answer | {"status": "no_baseline"}
    answer |= {"quantity": "accuracy", "data": _data(first_row(baseline))}
    if not (baseline["predicted_classes"] > 1).any():
        return answer | {"status": "nothing_learnt"}
    if not trained["status"].isin(["ok", "unsupported"]).all():
        answer["caveats"] = ["lost_cells"]
    cells_compared = compared_cells(trained)
    accelerated = cells_compared[cells_compared["device"] != BASELINE]
    compared = accelerated if len(accelerated) else cells_compared
    if len(compared):
        largest = first_row(compared.loc[[compared["accuracy_difference"].abs().idxmax()]])
        answer |= estimate(largest, "accuracy_difference", "difference")
        answer |= {"trials": largest["seeds_compared"], "place": _names([largest], compared), "capacity": MARGIN}
    if accelerated.empty:
        return answer | {"status": "only_cpu"}
    conclusions: dict[str, list[dict[str, object]]] = {}
    for row in records(accelerated):
        conclusion = decision(row["accuracy_difference_low"], row["accuracy_difference_high"])
        conclusions.setdefault(conclusion, []).append(row)
    better, worse, undecided = (
        _names(conclusions.get(name, ()), compared) for name in ("better", "worse", "inconclusive")
    )
    status = "both" if better and worse else next(name for name in BY_PRIORITY if name in conclusions)
    return answer | {"status": status, "winner": better or undecided, "loser": worse}


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

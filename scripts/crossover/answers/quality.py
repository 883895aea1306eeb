"""Answers on trained models: whether an accelerator, or a precision, makes them better or worse."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from crossover.answers.vocabulary import Row, estimate
from crossover.config.words import BASELINE
from crossover.tables.frames import first_row, records
from crossover.tables.labels import machine_words, side_word
from crossover.tables.registry import CELL_AXES, QUALITY_METRICS
from crossover.text import listed

NEGLIGIBLE = 0.005
"""Half a percentage point: a model that is better or worse by less is the same for whoever uses it."""


def quality_answer(trained: pd.DataFrame, pairs: pd.DataFrame) -> Row:
    """A study's verdict, never beyond what the intervals over seeds hold.

    `trained` has one row a training, `pairs` one a cell and metric: its mean difference from the CPU in fp32.
    """
    baseline = trained[(trained["device"] == BASELINE) & (trained["precision"] == "fp32") & (trained["status"] == "ok")]
    answer: Row = {"kind": "quality", "machine": first_row(trained)["machine"], "main": True, "doubts": []}
    if baseline.empty:
        return answer | {"status": "no_baseline"}
    if not (baseline["predicted_classes"] > 1).any():
        answer["doubts"] = ["too_little_learnt"]
    accelerated = pairs[pairs["device"] != BASELINE]
    compared = accelerated if len(accelerated) else pairs
    if len(compared):
        largest = first_row(compared.loc[[compared["difference"].abs().idxmax()]])
        answer |= estimate(largest, "difference", "difference")
        answer |= {"quantity": QUALITY_METRICS[largest["metric"]], "trials": largest["seeds"]}
        answer |= {"place": _names([largest], compared)}
    if accelerated.empty:
        return answer | {"status": "only_cpu"}
    if accelerated["difference_low"].isna().any():
        return answer | {"status": "one_seed"}
    better, worse, open_ended = (
        _names(records(accelerated[chosen].drop_duplicates(CELL_AXES)), accelerated)
        for chosen in (
            accelerated["difference_low"] > NEGLIGIBLE,
            accelerated["difference_high"] < -NEGLIGIBLE,
            accelerated["difference_high"] > NEGLIGIBLE,
        )
    )
    if better:
        status = "both" if worse else "better"
    elif open_ended:
        status = "undecided"
    else:
        status = "worse" if worse else "same"
    return answer | {"status": status, "winner": better or open_ended, "loser": worse}


def _names(rows: Iterable[dict[str, object]], compared: pd.DataFrame) -> str:
    """'GPU in tf32 and GPU in bf16'; sizes where there are several."""
    several = compared["size"].nunique() > 1
    return listed(
        [
            f"{side_word(str(row['device']))} in {row['precision']}"
            + machine_words("on", str(row["machine"]))
            + (f" at size {row['size']:,}" if several else "")
            for row in rows
        ]
    )

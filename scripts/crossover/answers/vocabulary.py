"""The closed sets of words in an answer's row, and its columns."""

from __future__ import annotations

from typing import Any

from crossover.config.words import FLAGS

Row = dict[str, Any]
"""An answer: values of ANSWER_COLUMNS; a column that is left out is empty."""

KINDS = {
    "crossover": "from which size on one side beats the other; a status of `crossovers`",
    "transfers": "how much larger the crossover is with transfers in each step: apart, overlap, indicative, unknown",
    "loading": "share of a step that loading its data takes: bounds, slows, uncertain, no_slowdown",
    "ratio": "how many times as fast one device is at a single size: apart, tie, indicative",
    "latency": "the worst mistake in measuring a latency, as a ratio of means: error, none_found",
    "throughput": "the most samples per second: best",
    "setting": "the fastest setting over the plain one, per sample: apart, tie, indicative",
    "step_time": "time of a step where nothing can be compared: measured",
    "cores": "how many CPU cores an accelerator is worth; a status of `cores_worth`",
    "memory": "peak over capacity: limit, nearly_full, no_limit, unknown_capacity",
    "memory_setting": "which settings take least memory and which most: differ, alike",
    "largest_batch": "the largest batch that fits: fits, all_fit, none_fits, stopped, not_found",
    "quality": "whether an accelerator changes the trained model: better, worse, better_and_worse, undecided, same, "
    "one_seed, only_cpu, no_baseline",
    "claim": "a published statement held against the measurements; its status is the verdict",
    "missing": "a study without an answer: other_devices, not_measured, no_result, see_figures",
}
"""What an answer can be, and its statuses."""

DOUBTS = {
    "one_trial": "a cell behind it has one trial only: indicative",
    "no_interval": "no 95 % interval can be given",
    "lost_cells": "cells of its line have no result",
    "unsure_sizes": "at the sizes in `near` the trials do not tell which side is ahead",
    "may_cross_again": "near the place in `near` the sides may cross again",
    "too_little_learnt": "no model predicts more than one class",
    **dict.fromkeys(FLAGS, "a cell behind it carries this flag"),
}
"""Why an answer deserves less trust."""

ANSWER_COLUMNS = {
    "study": "the study",
    "machine": "machine that it was measured on",
    "line": "which lines of the study it is about, by what sets them apart; empty: all",
    "kind": "one of: " + ", ".join(KINDS),
    "main": "whether it answers the study's question; the others stand beside it",
    "status": "how the search for it ended",
    "value": "the answer",
    "low": "lower end of its 95 % interval; empty: open, or none is given",
    "high": "upper end of its 95 % interval; empty: open, or none is given",
    "unit": "unit of the value",
    "winner": "the side that is ahead",
    "loser": "the side that is behind",
    "device": "the device that it is about",
    "pair": "what a crossover or a ratio compares",
    "cost": "in what a crossover compares: time, energy, money",
    "place": "the cell that it was measured on, by what sets it apart",
    "bracket_low": "largest measured size before a crossover; fewest cores measured",
    "bracket_high": "smallest measured size after it; most cores measured",
    "reach": "size up to which, or from which on, a side that wins everywhere does so",
    "ratio_low": "least of the ratios of time where one side wins everywhere",
    "ratio_high": "largest of them",
    "near": "places that the status or a doubt names",
    "winner_s": "time of a step on the side ahead, in seconds",
    "loser_s": "time of a step on the side behind, in seconds",
    "capacity": "what the value is a part of, or was limited to",
    "lost": "cells that ran out of memory",
    "lost_place": "the smallest of them",
    "quantity": "which mistake, metric or published quantity",
    "reason": "why there is no value",
    "trials": "fewest ok trials (or seeds) behind it",
    "published": "the published value",
    "verdict": "whether it holds here",
    "doubts": "words of: " + ", ".join(DOUBTS),
}
"""The columns of an answer."""

LISTS = ("near", "doubts")
NUMBERS = (
    *("value", "low", "high", "bracket_low", "bracket_high", "reach", "ratio_low", "ratio_high"),
    *("winner_s", "loser_s", "capacity"),
)
COUNTS = ("lost", "trials")

"""The answer in a few words, for who has ten seconds; `sentences` says the same at length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.naming import name_by, varying
from crossover.answers.sentences import (
    axis_words,
    bound_words,
    crossover_text,
    doubt_words,
    known_place,
    merged,
    place,
)
from crossover.answers.wording import INDICATIVE, Answer
from crossover.config.words import BASELINE
from crossover.figures.style import device_label, number_text, seconds_text, side_word
from crossover.statistics.comparisons import headline_rows
from crossover.tables.frames import LINE_AXES, records, rows_with

MOST_LINES = 4
"""Answers that a card has room for; more of them are summed up."""

_SUMMED = {
    "below_range": "{ahead} at every size measured",
    "above_range": "{behind} at every size measured",
    "edge_tie": "undecided at an end of the sizes measured",
    "multiple": "several crossings",
    "undecided": "undecided",
    "incomplete": "no answer, a cell is missing",
    "no_accelerator": "no GPU measured",
}


def crossover_answers(crossovers: pd.DataFrame, cells: pd.DataFrame) -> list[tuple[str, Answer]]:
    """A study's answers, each after the lines that it is of; no line is named where it is of all of them.

    `crossovers` are the study's rows of all pairs and costs, `cells` its cells. Devices are compared where both sides
    ran, else what ran on the one; energy and money stand beside the time where they were measured on both.
    """
    table = _of_interest(crossovers, cells)
    several = [axis for axis in varying(headline_rows(crossovers), LINE_AXES) if axis not in set(table["pair"])]
    labelled = headline_rows(table)["contender"].nunique() > 1
    costly = bool((crossovers["cost"] != "time").any())
    rows = records(table)
    answers = merged(
        (
            _named(f"in {row['cost']}" if costly else "", _compared(row), name_by(row, several)),
            short_answer(row, cells, labelled),
        )
        for row in rows
    )
    if len(answers) == 1 and costly and table["cost"].nunique() == 1:
        return [(f"in {table['cost'].iloc[0]}", answers[0][1])]
    return answers if len(answers) <= MOST_LINES else _summed_up(rows)


def _of_interest(crossovers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The rows that answer: of the devices in all costs, or of precisions and executions where the CPU did not run."""
    headlines = headline_rows(crossovers)
    timed = set(cells.dropna(subset=["step_time_s"])["device"])
    pairs = crossovers[(crossovers["pair"] != "device") & (crossovers["cost"] == "time")]
    if BASELINE not in timed and len(pairs):
        return pairs
    others = crossovers[(crossovers["pair"] == "device") & (crossovers["baseline"] == BASELINE)]
    others = others[others["baseline_machine"] == others["machine"]]
    others = others[(others["cost"] != "time") & (others["status"] != "incomplete")]
    return pd.concat([headlines, others]) if len(others) else headlines


def _compared(row: Mapping[str, Any]) -> str:
    """What a row compares, where that is no device."""
    return "" if row["pair"] == "device" else f"{row['contender']} against {row['baseline']}"


def _named(*words: str) -> str:
    return ", ".join(word for word in words if word)


def short_answer(row: dict[str, Any], cells: pd.DataFrame, labelled: bool = False) -> Answer:
    """A few words for one row of the crossovers' table; `labelled` tells several accelerators apart by their names."""
    if row["status"] == "no_accelerator":
        return _without_accelerator(row, cells)
    ahead, behind = _sides(row, labelled)
    unit = axis_words(row)
    notes = [INDICATIVE] if row["trials"] == 1 else []
    if row["status"] in ("bracketed", "reversed"):
        where, interval = _place(row)
        only = "from {} on" if row["status"] == "bracketed" else "only below {}"
        text = f"{ahead} {only.format(f'{where} {unit}')}"
        notes = [interval or _bracket(row), *notes] if interval or notes else [_bracket(row), "no interval"]
    elif row["status"] == "below_range":
        text = f"{ahead} at every size measured{_reach(row, cells, 'from')}"
    elif row["status"] == "above_range":
        text = f"{behind} at every size measured{_reach(row, cells, 'up to')}"
    elif row["status"] == "edge_tie":
        bound = bound_words(row)
        edge = "smallest or largest" if not bound else "largest" if row["crossover_low"] is not None else "smallest"
        text = f"Undecided at the {edge} size measured" + (f": they cross {bound}, if at all" if bound else "")
    elif row["status"] == "multiple":
        text = f"No single answer: they cross near {', '.join(map(crossover_text, row['roots']))} {unit}"
    elif row["status"] == "undecided":
        text = f"Undecided: {row['message']}; more trials, or a quieter machine, may"
    else:
        return Answer(f"No answer: {row['message']}")
    doubt = doubt_words(row) if row["status"] != "undecided" else ""
    return Answer(f"{text}{f'; {doubt}' if doubt else ''}", notes)


def _sides(row: Mapping[str, Any], labelled: bool = False) -> tuple[str, str]:
    """What is compared, the contender first: 'GPU' and 'CPU', 'amp-bf16 on the GPU' and 'fp32 on the GPU'."""
    if row["pair"] != "device":
        device = side_word(row["device"])
        return f"{row['contender']} on the {device}", f"{row['baseline']} on the {device}"
    name = device_label(row["contender"], row["contender_name"]) if labelled else side_word(row["contender"])
    return name, side_word(row["baseline"])


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    """The crossover and, in the words of a note, its interval: '681 k' and '95 %: 612 k to 763 k'."""
    point, _, interval = place(dict(row)).partition(" (")
    return (point, f"95 %: {interval.removesuffix(')')}") if interval else (f"about {point}", "")


def _bracket(row: Mapping[str, Any]) -> str:
    """Between which measured sizes it lies, in the unit of the answer: 'between 703 k and 2.8 million'."""
    low, high = (known_place(row["x_axis"], row[f"bracket_{end}"]) for end in ("low", "high"))
    return f"between {low} and {high}"


def _reach(row: dict[str, Any], cells: pd.DataFrame, end: str) -> str:
    """', from 96 parameters: 2.10 to 5.00 times as fast': as far as the answer holds; empty without a size of both."""
    axes = [axis for axis in (*LINE_AXES, "device") if axis != row["pair"]]
    line = rows_with(cells, axes, row).dropna(subset=["step_time_s"])
    seconds = [
        line[line[row["pair"]] == row[side]].astype({"step_time_s": float}).groupby(row["x_axis"])["step_time_s"].mean()
        for side in ("baseline", "contender")
    ]
    ratios = (seconds[0] / seconds[1]).dropna()
    if ratios.empty:
        return ""
    value = ratios.index.min() if end == "from" else ratios.index.max()
    times = sorted(ratios if end == "from" else 1 / ratios)
    span = " to ".join(dict.fromkeys(number_text(time) for time in (times[0], times[-1])))
    return f", {end} {known_place(row['x_axis'], float(value))} {axis_words(row)}: {span} times as fast"


def _without_accelerator(row: dict[str, Any], cells: pd.DataFrame) -> Answer:
    """What the half that was measured says."""
    line = rows_with(cells, LINE_AXES, row)
    line = line[line["device"] == row["baseline"]].dropna(subset=["step_time_s"])
    if line.empty:
        return Answer(f"No GPU measured, and no time on the {side_word(row['baseline'])}")
    line = line.sort_values(row["x_axis"])
    said = [
        f"{seconds_text(cell['step_time_s'])} a step at {known_place(row['x_axis'], float(cell[row['x_axis']]))}"
        for _, cell in line.iloc[[0, -1]].iterrows()
    ]
    notes = [f"{side_word(row['baseline'])}: {', '.join(dict.fromkeys(said))} {axis_words(row)}"]
    return Answer("No GPU measured", [*notes, *([INDICATIVE] if (line["trials"] == 1).any() else [])])


def _summed_up(rows: Sequence[dict[str, Any]]) -> list[tuple[str, Answer]]:
    """How many of the lines end in which way, and from where to where their crossovers lie."""
    ends: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        ends.setdefault((row["cost"], row["status"]), []).append(row)
    costly = len({row["cost"] for row in rows}) > 1
    notes = [INDICATIVE] if any(row["trials"] == 1 for row in rows) else []
    return [
        (
            _named(f"in {cost}" if costly else "", f"{len(own)} of {len(rows)} lines"),
            Answer(_summed(status, own), notes),
        )
        for (cost, status), own in ends.items()
    ]


def _summed(status: str, rows: Sequence[dict[str, Any]]) -> str:
    if status not in ("bracketed", "reversed"):
        sides = _sides(rows[0]) if rows[0]["contender"] else ("GPU", "CPU")
        return _SUMMED[status].format(ahead=sides[0], behind=sides[1])
    places = sorted(row["crossover"] for row in rows)
    span = " to ".join(dict.fromkeys(map(crossover_text, (places[0], places[-1]))))
    which = "from {} on" if status == "bracketed" else "only below {}"
    return f"{_sides(rows[0])[0]} {which.format(f'{span} {axis_words(rows[0])}')}, by line"

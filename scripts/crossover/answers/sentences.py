"""The answer in a sentence, never beyond what the data hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, TypeVar

from crossover.answers.wording import CAUTION, capitalised, count_text, known_count_text, machine_words
from crossover.config.words import HERE, is_cpu
from crossover.figures.style import device_label, number_text, seconds_text
from crossover.tables.labels import axis_label as axis_words
from crossover.tables.labels import line_label as line_words  # noqa: F401

Text = TypeVar("Text", bound=str)


def missing_half(devices: Iterable[str]) -> str | None:
    """What the report's head says of a run that used no accelerator, whatever its studies ask; None for another."""
    used = list(devices)
    if not used or not all(map(is_cpu, used)):
        return None
    return (
        "This run used the CPU only, no GPU: the GPU's half of every answer is missing. To get it, run the same "
        "command on a machine that has a GPU, with devices set to auto in the config."
    )


def answer(row: dict[str, Any]) -> str:
    """One sentence for one row of the crossovers' table."""
    if row["status"] == "no_accelerator":
        cpu = f"the CPU ({row['baseline_name']})"
        if row["trials"] == 0:
            return f"No cell of {cpu} gave a time{_of_several(row)}, and no GPU was measured: there is no answer."
        return f"Only {cpu} was measured{_of_several(row)}, no GPU: half of the answer is missing."
    gpu, cpu = _sides(row)
    unit = axis_words(row)
    if row["status"] == "bracketed":
        text = f"{on_machine(row)} {gpu} beats {cpu} from about {place(row)} {unit} on ({_how(row, unit)})."
    elif row["status"] == "reversed":
        where = f"{place(row)} {unit} ({_how(row, unit)})"
        text = f"{on_machine(row)} {gpu} is ahead only below about {where}; above, {cpu} wins."
    elif bound := bound_words(row):
        edge = "largest" if row["crossover_low"] else "smallest"
        text = (
            f"{on_machine(row)} {gpu} and {cpu} cannot be told apart at the {edge} size measured on both: they cross "
            f"{bound}, if at all."
        )
    elif row["status"] == "below_range":
        text = (
            f"{on_machine(row)} {gpu} beats {cpu} at every size measured on both; if they cross at all, it is at "
            "smaller sizes."
        )
    elif row["status"] == "above_range":
        text = f"{on_machine(row)} {cpu} beats {gpu} at every size measured on both; no crossover up to the largest."
    elif row["status"] == "multiple":
        places = ", ".join(map(crossover_text, row["roots"]))
        text = f"No single crossover of {gpu} over {cpu} can be given: they cross near {places} {unit}."
    else:
        text = f"No crossover of {gpu} over {cpu} can be given: {row['message']}."
    decided = row["status"] in ("bracketed", "reversed", "below_range", "above_range", "edge_tie", "multiple")
    return _with_caution(f"{text}{_doubt_sentence(row)}", row) if decided else text


def on_machine(row: Mapping[str, Any]) -> str:
    """Where something was measured: 'On this machine', or 'On h200' where machines are named."""
    machine = row.get("machine", HERE)
    return "On this machine" if machine == HERE else f"On {machine}"


def _of_several(row: Mapping[str, Any]) -> str:
    return machine_words("on", row.get("machine", HERE))


def known_place(x_axis: str, value: float) -> str:
    """A place on the x axis that was measured or given: a size to its last digit, parameters from 10 k on to three."""
    return known_count_text(value) if x_axis == "parameters" else f"{value:,.0f}"


def place(row: dict[str, Any], column: str = "crossover") -> str:
    """A crossover with its 95 % interval, where it has one: '1,110', '1,110 (1,000 to 1,240)'.

    An end that is open is not named: '1,110 (at most 1,240)'.
    """
    axis = row["x_axis"] if column == "crossover" else column.removeprefix("crossover_")
    point = crossover_text(row[column])
    low, high = (None if end is None else end_text(axis, end) for end in (row[f"{column}_low"], row[f"{column}_high"]))
    if low is None and high is None:
        return point
    interval = f"at most {high}" if low is None else f"at least {low}" if high is None else f"{low} to {high}"
    return f"{point} ({interval})"


def crossover_text(value: float) -> str:
    """An estimated place on the x axis, to three digits: '680', '681 k'."""
    return count_text(value, 3)


def end_text(x_axis: str, value: float) -> str:
    """An end of an interval; where it is a whole number, it is a place that was measured."""
    return known_place(x_axis, value) if math.isclose(value, round(value)) else crossover_text(value)


def doubt_words(row: dict[str, Any]) -> str:
    """What the trials leave in doubt, which a message says after a semicolon; empty where it is nothing."""
    return str(row["message"]).partition("; ")[2]


def _doubt_sentence(row: dict[str, Any]) -> str:
    doubt = doubt_words(row)
    return f" {capitalised(doubt)}." if doubt else ""


def bound_words(row: dict[str, Any]) -> str | None:
    """The one known end of a crossover at the edge of what was measured, in words; None where there is none."""
    if row["status"] != "edge_tie":
        return None
    low, high, unit = row["crossover_low"], row["crossover_high"], axis_words(row)
    if low is not None:
        return f"not before {end_text(row['x_axis'], low)} {unit}"
    return None if high is None else f"at the latest by {end_text(row['x_axis'], high)} {unit}"


def answer_at_one_size(row: dict[str, Any], seconds: Mapping[str, float]) -> str | None:
    """One sentence for a line that was measured at one size only, where no crossover is asked for; None for one side.

    `row` is one of the crossovers' table, `seconds` the time of a step on each device that has one.
    """
    if not {row["baseline"], row["contender"]} <= seconds.keys():
        return None
    gpu, cpu = _sides(row)
    cpu_s, gpu_s = seconds[row["baseline"]], seconds[row["contender"]]
    ahead, behind, ratio = (gpu, cpu, cpu_s / gpu_s) if gpu_s <= cpu_s else (cpu, gpu, gpu_s / cpu_s)
    text = (
        f"{on_machine(row)} {ahead} is {number_text(ratio)} times as fast as {behind} "
        f"(a step takes {seconds_text(min(cpu_s, gpu_s))}, not {seconds_text(max(cpu_s, gpu_s))})."
    )
    return _with_caution(text, row)


def _sides(row: dict[str, Any]) -> tuple[str, str]:
    """What is compared, the contender first."""
    return (
        f"the {device_label(row['contender'], row['contender_name'])}",
        f"the {device_label(row['baseline'], row['baseline_name'])}",
    )


def _with_caution(text: str, row: dict[str, Any]) -> str:
    return f"{text}{CAUTION}" if row["trials"] == 1 else text


def merged(answers: Iterable[tuple[str, Text]]) -> list[tuple[str, Text]]:
    """Each answer once, before it the lines that it is of: 'batch 512, fp32 / tf32'; nothing where it is of all."""
    lines: dict[Text, list[list[str]]] = {}
    for words, text in answers:
        lines.setdefault(text, []).append(words.split(", "))
    if len(lines) == 1:
        return [("", text) for text in lines]
    return [(_joined(words), text) for text, words in lines.items()]


def _joined(words: list[list[str]]) -> str:
    if len(words) == 1:
        return ", ".join(words[0])
    shared = [own[0] for own in takewhile(lambda own: len(set(own)) == 1, zip(*words, strict=False))]
    return ", ".join([*shared, " / ".join(", ".join(own[len(shared) :]) for own in words)])


def _how(row: dict[str, Any], unit: str) -> str:
    low, high = row["bracket_low"], row["bracket_high"]
    text = f"measured on either side: {low:,.0f} and {high:,.0f} {unit}"
    if row["x_axis"] == "parameters":
        text += f", {row['bracket_low_size']:,.0f} and {row['bracket_high_size']:,.0f} {row['size_name']}"
    given = (row["crossover_low"], row["crossover_high"]) != (None, None)
    return f"{text}; interpolated, {'with the 95 % interval over trials' if given else 'without an interval'}"

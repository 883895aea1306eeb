"""Crossovers beside the headline's in words: of other pairs and costs, and with and without transfers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from crossover.answers.naming import varying
from crossover.answers.sentences import axis_words, bound_words, doubt_words, line_words, place
from crossover.answers.wording import capitalised
from crossover.config.words import BASELINE, is_cpu
from crossover.figures.style import device_label, number_text
from crossover.plan.stages import PLAIN_SIDES
from crossover.statistics.comparisons import headline_rows
from crossover.statistics.machine_pairings import MACHINES
from crossover.tables.frames import LINE_AXES, records

TRANSFERS, RESIDENT = "as_published", "resident"
"""The protocols whose data come from the host in each step, and wait on the device."""

VERBS = {"time": ("takes", " time"), "energy": ("takes", " energy"), "money": ("costs", "")}
"""What a side does at a cost: it takes less time, or more."""


def other_crossovers(crossovers: pd.DataFrame) -> list[dict[str, Any]]:
    """The table of a study's other crossovers, in words.

    Money is left out but between devices: on one device it is the time at one price.
    """
    others = crossovers.drop(headline_rows(crossovers).index)
    others = others[(others["pair"] == "device") | (others["cost"] != "money")]
    several = varying(headline_rows(crossovers), LINE_AXES)
    return [
        {
            "line": _line(row, [axis for axis in several if axis != row["pair"]]),
            "compared": _compared(row),
            "cost": row["cost"],
            "status": row["status"].replace("_", " "),
            "sentence": found_sentence(row),
            "size_name": row["size_name"],
            "size": _place_or_bound(row, "crossover_size"),
            "parameters": _place_or_bound(row, "crossover_parameters"),
        }
        for row in records(others)
    ]


def found_sentence(row: dict[str, Any]) -> str:
    """What was found of one pair in one cost, never beyond what the data hold."""
    contender, baseline = _sides(row)
    unit = axis_words(row)
    verb, what = VERBS[row["cost"]]
    ahead = f"{contender} {verb} less{what} than {baseline}"
    if row["status"] == "bracketed":
        text = f"{ahead} from about {place(row)} {unit} on"
    elif row["status"] == "reversed":
        text = f"{ahead} only below about {place(row)} {unit}"
    elif row["status"] == "below_range":
        text = f"{ahead} at every size measured on both"
    elif row["status"] == "above_range":
        text = f"{contender} {verb} more{what} than {baseline} at every size measured on both"
    elif bound := bound_words(row):
        text = f"{contender} and {baseline} cross {bound}, if at all"
    else:
        return f"No crossover can be given: {row['message']}."
    if row["pair"] == "device" and row["baseline_machine"] != row["machine"]:
        text = f"across machines, {text}"
    if row["pair"] != "device":
        text = f"on the {_device_words(row['device'])} {text}"
    cautions = [doubt_words(row), "one trial a cell, indicative only" if row["trials"] == 1 else ""]
    return "; ".join([capitalised(text), *filter(None, cautions)]) + "."


def transfers(crossovers: pd.DataFrame) -> list[dict[str, str]]:
    """Of each line that was measured both ways, its crossover with transfers, without, and the difference.

    Under `as_published` the data come from the host in each step; under `resident` they wait on the device.
    """
    headlines = headline_rows(crossovers).dropna(subset=["contender"])
    axes = [axis for axis in LINE_AXES if axis != "protocol"]
    several = varying(headlines, axes)
    found = []
    for _, rows in headlines.groupby([*axes, "device"], sort=False):
        by_protocol = {row["protocol"]: row for row in records(rows)}
        if {TRANSFERS, RESIDENT} <= by_protocol.keys():
            moved, resident = by_protocol[TRANSFERS], by_protocol[RESIDENT]
            found.append(
                {
                    "line": _line(moved, several).partition(", ")[2],
                    "moved": _beside(moved),
                    "resident": _beside(resident),
                    "difference": _difference(moved, resident),
                }
            )
    return found


def price_words(price_per_hour: Mapping[str, float] | None, currency: str | None) -> str | None:
    """'0.8 USD an hour without an accelerator, 4 USD an hour with one (cuda)'; None without prices."""
    if not price_per_hour:
        return None
    unit = f" {currency}" if currency else ""
    return ", ".join(
        f"{price:,g}{unit} an hour {'without an accelerator' if device == BASELINE else f'with one ({device})'}"
        for device, price in price_per_hour.items()
    )


def _line(row: dict[str, Any], several: Collection[str]) -> str:
    """A row's line; what is compared, it does not name."""
    plain = {axis: side for axis, side in PLAIN_SIDES.items() if axis == row["pair"]}
    return line_words(row | plain, several)


def _sides(row: dict[str, Any]) -> tuple[str, str]:
    """What is compared, the contender first."""
    if row["pair"] != "device":
        return row["contender"], row["baseline"]
    sides = f"the {_device_words(row['contender'])}", f"the {_device_words(row['baseline'])}"
    if row["baseline_machine"] == row["machine"]:
        return sides
    return f"{sides[0]} of {row['machine']}", f"{sides[1]} of {row['baseline_machine']}"


def _compared(row: dict[str, Any]) -> str:
    contender = _device_words(row["device"], row["contender_name"])
    if row["pair"] == "device" and row["baseline_machine"] == row["machine"]:
        return f"{contender} against {_device_words(row['baseline'])}"
    if row["pair"] in ("device", MACHINES):
        device = row["baseline"] if row["pair"] == "device" else row["device"]
        baseline = _device_words(device, row["baseline_name"])
        return f"{contender} of {row['machine']} against {baseline} of {row['baseline_machine']}"
    return f"{row['contender']} against {row['baseline']}, on the {contender}"


def _device_words(device: str, name: str | None = None) -> str:
    """'GPU (NVIDIA H200)', 'CPU on half of its cores'."""
    if not is_cpu(device):
        return device_label(device, name)
    cores = device.partition("-")[2]
    where = {"": "", "half": " on half of its cores", "1": " on 1 core"}.get(cores, f" on {cores} cores")
    return f"{device_label(BASELINE, name)}{where}"


def _place_or_bound(row: dict[str, Any], column: str) -> str:
    return place(row, column) if row["status"] in ("bracketed", "reversed") and row[column] is not None else "–"


def _beside(row: dict[str, Any]) -> str:
    """A headline's crossover in size and in parameters, or why there is none."""
    if row["status"] != "bracketed":
        return found_sentence(row)
    parameters = "" if row["crossover_parameters"] is None else f", {place(row, 'crossover_parameters')} parameters"
    return f"{place(row, 'crossover_size')} {row['size_name']}{parameters}"


def _difference(moved: dict[str, Any], resident: dict[str, Any]) -> str:
    """How many times as high the crossover is with transfers, and whether the data tell the two apart."""
    if {moved["status"], resident["status"]} != {"bracketed"}:
        return "Not given: not both have a crossover."
    ratio = moved["crossover"] / resident["crossover"]
    text = f"{number_text(ratio)} times as many {axis_words(moved)} with transfers"
    ends = [row[f"crossover_{end}"] for row in (moved, resident) for end in ("low", "high")]
    if None in ends:
        return f"{text}; without both intervals, so indicative only."
    apart = ends[1] < ends[2] or ends[3] < ends[0]
    return f"{text}; the 95 % intervals {'do not overlap' if apart else 'overlap, so this may be chance'}."

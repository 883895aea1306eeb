"""Answers on crossovers: where one side begins to beat another, and what transfers change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row
from crossover.config.words import BASELINE
from crossover.statistics.comparisons import headline_rows
from crossover.tables.frames import DEVICE_LINE_AXES, LINE_AXES, records, rows_with
from crossover.tables.labels import axis_label, device_label, machine_words, name_by, side_word, varying
from crossover.tables.run_tables import RunTables

TRANSFERS, RESIDENT = "as_published", "resident"
"""The protocols whose data come from the host in each step, and lie on the device."""

SIGNED = ("bracketed", "reversed", "below_range", "above_range")
"""Statuses that name a side that is ahead."""


def crossover_answers(own: RunTables) -> list[Row]:
    """One answer for each crossover of a study's tables, those to its question first.

    Money is left out where both sides ran on one device: there it is the time at one price.
    """
    asked = own.crossovers
    asked = asked[(asked["pair"] == "device") | (asked["cost"] != "money")]
    main = set(_main_rows(asked, own.cells).index)
    several = varying(own.cells, LINE_AXES)
    labelled = headline_rows(asked)["contender"].nunique() > 1
    order = sorted(asked.index, key=lambda place: place not in main)
    return [
        _answer(row, own, several, labelled) | {"main": place in main}
        for place, row in zip(order, records(asked.loc[order]), strict=True)
    ]


def _main_rows(crossovers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Devices in all costs; precisions and executions where the CPU has no time."""
    headlines = headline_rows(crossovers)
    timed = set(cells.dropna(subset=["step_time_s"])["device"])
    pairs = crossovers[(crossovers["pair"] != "device") & (crossovers["cost"] == "time")]
    if BASELINE not in timed and len(pairs):
        return pairs
    costly = crossovers[
        (crossovers["pair"] == "device")
        & (crossovers["baseline"] == BASELINE)
        & (crossovers["baseline_machine"] == crossovers["machine"])
        & (crossovers["cost"] != "time")
        & (crossovers["status"] != "incomplete")
    ]
    return pd.concat([headlines, costly])


def _answer(row: dict[str, Any], own: RunTables, several: Sequence[str], labelled: bool) -> Row:
    contender, baseline = _sides(row, labelled)
    winner, loser = (baseline, contender) if row["status"] == "above_range" else (contender, baseline)
    line = rows_with(own.cells, [axis for axis in LINE_AXES if axis != row["pair"]], row)
    answer: Row = {
        "kind": "crossover",
        "machine": row["machine"],
        "line": name_by(row, [axis for axis in several if axis != row["pair"]]),
        "status": row["status"],
        "value": row["crossover"],
        "low": row["crossover_low"],
        "high": row["crossover_high"],
        "unit": axis_label(row),
        "winner": winner,
        "loser": loser,
        "pair": row["pair"],
        "cost": row["cost"],
        "bracket_low": row["bracket_low"],
        "bracket_high": row["bracket_high"],
        "trials": row["trials"],
    }
    if row["status"] in ("below_range", "above_range") and row["cost"] == "time":
        answer |= _reach(row, own.ratios)
    return answer | _doubts(row, line)


def _sides(row: Mapping[str, Any], labelled: bool) -> tuple[str, str]:
    """The contender and the baseline by their shortest names that tell them apart."""
    if row["contender"] is None:
        return "GPU", side_word(row["baseline"])
    device = side_word(row["device"])
    if row["pair"] == "machine":
        return f"{device} of {row['machine']}", f"{device} of {row['baseline_machine']}"
    if row["pair"] != "device":
        return f"{row['contender']} on the {device}", f"{row['baseline']} on the {device}"
    name = device_label(row["contender"], row["contender_name"]) if labelled else device
    if row["baseline_machine"] == row["machine"]:
        return name, side_word(row["baseline"])
    whose = machine_words("of", row["machine"]), machine_words("of", row["baseline_machine"])
    return name + whose[0], side_word(row["baseline"]) + whose[1]


def _reach(row: dict[str, Any], ratios: pd.DataFrame) -> Row:
    """How far the side ahead is ahead at the sizes measured on both, and to which of these it holds."""
    axes = [*LINE_AXES, "pair", "baseline", "baseline_machine", "contender"]
    own = rows_with(ratios, axes, row).dropna(subset=["ratio", row["x_axis"]])
    if own.empty:
        return {}
    ahead = own["ratio"] if row["status"] == "below_range" else 1 / own["ratio"]
    sizes = own[row["x_axis"]]
    return {
        "reach": sizes.min() if row["status"] == "below_range" else sizes.max(),
        "ratio_low": ahead.min(),
        "ratio_high": ahead.max(),
    }


def _doubts(row: dict[str, Any], line: pd.DataFrame) -> Row:
    """What the trials, the flags at the sizes next to the crossover and lost cells leave in doubt."""
    doubts = []
    if row["trials"] == 1:
        doubts.append("one_trial")
    if row["status"] in ("bracketed", "reversed") and row["crossover_low"] is None and row["crossover_high"] is None:
        doubts.append("no_interval")
    devices = {row["device"], row["baseline"], row["contender"]}
    sides = line[line["device"].isin(devices)]
    if (sides["status"] != "ok").any():
        doubts.append("lost_cells")
    beside = sides[sides[row["x_axis"]].isin([row["bracket_low"], row["bracket_high"]])]
    flags = {flag for own in beside["flags"] for flag in own}
    return {"doubts": [*doubts, *sorted(flags)], "near": row["roots"]}


def transfers(own: RunTables) -> list[Row]:
    """How many times as large the crossover is with transfers in each step as on resident data, line by line."""
    headlines = headline_rows(own.crossovers)
    axes = [axis for axis in DEVICE_LINE_AXES if axis != "protocol"]
    several = [axis for axis in varying(own.cells, LINE_AXES) if axis != "protocol"]
    found = []
    for _, rows in headlines[headlines["status"] == "bracketed"].groupby(axes, sort=False):
        by_protocol = {row["protocol"]: row for row in records(rows)}
        if {TRANSFERS, RESIDENT} <= by_protocol.keys():
            found.append(_transfer(by_protocol[TRANSFERS], by_protocol[RESIDENT], several))
    return found


def _transfer(moved: dict[str, Any], resident: dict[str, Any], several: Collection[str]) -> Row:
    ends = [row[f"crossover_{end}"] for row in (moved, resident) for end in ("low", "high")]
    if None in ends:
        status = "indicative"
    else:
        status = "apart" if ends[1] < ends[2] or ends[3] < ends[0] else "overlap"
    trials = min(moved["trials"], resident["trials"])
    return {
        "kind": "transfers",
        "machine": moved["machine"],
        "line": name_by(moved, several),
        "status": status,
        "value": moved["crossover"] / resident["crossover"],
        "unit": "times",
        "winner": side_word(moved["contender"]),
        "loser": side_word(moved["baseline"]),
        "trials": trials,
        "doubts": ["one_trial"] if trials == 1 else [],
    }

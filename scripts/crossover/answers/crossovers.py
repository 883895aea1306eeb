"""Answers on crossovers: where one side begins to beat another, and what transfers change."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.vocabulary import Row, estimate, ratio_columns
from crossover.config.words import BASELINE, FROM_HOST, PLAIN, PLAIN_SIDES, PROTOCOLS, threads_of_side
from crossover.statistics.best import BEST, BEST_AXES, WAY_AXES
from crossover.statistics.choices import choose
from crossover.statistics.intervals import Interval, SampleMean, compared, ratio_of_intervals
from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import DEVICE_LINE_AXES, headline_rows, records, rows_with
from crossover.tables.labels import axis_label, device_label, machine_words, name_by, side_word, varying
from crossover.tables.registry import LINE_AXES
from crossover.tables.run_tables import RunTables

RESIDENT = PROTOCOLS[0]
"""The protocol whose data lie on the device."""


def crossover_answers(own: RunTables) -> list[Row]:
    """One answer for each crossover of a study's tables, those to its question first.

    These compare devices in all costs, or precisions and executions where the CPU has no time. Money is left out where
    both sides ran on one device: there it is the time at one price.
    """
    pair = own.crossovers["pair"]
    settings = ~pair.isin([BEST, REFERENCE]) & (own.crossovers["cost"] != "money")
    asked = own.crossovers[(pair == "device") | settings]
    pairs = asked[(asked["pair"] != "device") & (asked["cost"] == "time")]
    if BASELINE not in set(own.cells.dropna(subset=["step_time_s"])["device"]) and len(pairs):
        asked = asked.drop(headline_rows(asked).index)
        main = set(pairs.index)
    else:
        main = _devices_in_all_costs(asked)
    several = varying(own.cells, LINE_AXES)
    labelled = headline_rows(asked)["contender"].nunique() > 1
    order = sorted(asked.index, key=lambda place: place not in main)
    return [
        _answer(row, own, several, labelled) | {"main": place in main}
        for place, row in zip(order, records(asked.loc[order]), strict=True)
    ]


def _devices_in_all_costs(crossovers: pd.DataFrame) -> set[Any]:
    costly = crossovers[(crossovers["cost"] != "time") & (crossovers["status"] != "incomplete")]
    return {*headline_rows(crossovers).index, *headline_rows(costly.assign(cost="time")).index}


def _answer(row: dict[str, Any], own: RunTables, several: Sequence[str], labelled: bool) -> Row:
    contender, baseline = _sides(row, labelled)
    known = answer_of(row, contender, baseline)
    return {
        **known,
        "kind": "crossover",
        "line": name_by(row, [axis for axis in several if axis != row["pair"]]),
        "doubts": known["doubts"] + doubts_of_series(row, own.cells),
        **reach_of(row, own.ratios, contender, baseline),
    }


ONE_SIDED = ("below_range", "above_range", "edge_tie")
"""Statuses of crossovers where one side is ahead at every size that leaves no doubt."""


def answer_of(row: Mapping[str, Any], contender: str, baseline: str) -> Row:
    """What every answer says of a crossover: where it is, what it compares, and what is in doubt about it."""
    decided = row["status"] not in ("incomplete", "undecided")
    without_interval = row["crossover_low"] is None and row["crossover_high"] is None
    doubts = ["one_trial"] if row["trials"] == 1 and without_interval else []
    if row["crossover"] is not None and without_interval:
        doubts.append("no_interval")
    if row["doubt"] and decided and row["status"] != "edge_tie":  # whose sizes are part of the answer
        doubts.append(row["doubt"])
    behind = row["status"] == "above_range"
    return {
        "machine": row["machine"],
        "status": row["status"],
        **estimate(row, "crossover", axis_label(row)),
        "winner": baseline if behind else contender,
        "loser": contender if behind else baseline,
        "cost": row["cost"],
        "bracket_low": row["bracket_low"],
        "bracket_high": row["bracket_high"],
        "near": row["doubt_at"] if row["doubt"] else row["roots"],
        "reason": None if decided else row["doubt"],
        "trials": row["trials"],
        "doubts": doubts,
    }


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


def reach_of(row: dict[str, Any], ratios: pd.DataFrame, contender: str, baseline: str) -> Row:
    """The sizes measured on both sides; of a side that is ahead in time how far, and at which end it is least sure."""
    own = rows_with(ratios, [*LINE_AXES, "pair", "device", "baseline", "baseline_machine", "contender"], row)
    own = own.dropna(subset=[row["x_axis"]])
    return _ends_and_reach(row, own.set_index(row["x_axis"])["ratio"].astype(float), contender, baseline)


def _ends_and_reach(row: Mapping[str, Any], speedups: pd.Series, contender: str, baseline: str) -> Row:
    """The same from the contender's speed-ups by size."""
    ends = {"smallest": speedups.index.min(), "largest": speedups.index.max()} if len(speedups) else {}
    if row["status"] not in ONE_SIDED or row["cost"] != "time":
        return ends
    return ends | _reach(row, speedups, contender, baseline)


def _reach(row: Mapping[str, Any], speedups: pd.Series, contender: str, baseline: str) -> Row:
    """How far a side is ahead; with a tie at one end, of the sizes from the other end up to the first unsure one."""
    if speedups.empty:
        return {}
    wins, to_the_end = row["status"] == "below_range", row["status"] == "above_range"
    if row["status"] == "edge_tie":
        low, high = (row[f"crossover_{end}"] or row[f"bracket_{end}"] for end in ("low", "high"))
        to_the_end = high is None
        bound = low if to_the_end else high
        if bound not in speedups.index:  # ties at both ends have no bound
            return {}
        wins = bool(speedups[bound] > 1)
        unsure = row["doubt_at"]
        speedups = speedups[speedups.index < min(unsure) if to_the_end else speedups.index > max(unsure)]
        if speedups.empty:
            return {}
    ahead = speedups if wins else 1 / speedups
    return {
        "winner": contender if wins else baseline,
        "loser": baseline if wins else contender,
        "reach": speedups.index.max() if to_the_end else speedups.index.min(),
        "ratio_low": ahead.min(),
        "ratio_high": ahead.max(),
    }


def doubts_of_series(row: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    """What lost cells of a crossover's series, and flags at the sizes of its bracket leave in doubt."""
    line = rows_with(cells, [axis for axis in LINE_AXES if axis != row["pair"]], row)
    sides = line[line["device"].isin([row["device"], row["baseline"], row["contender"]])]
    lost = ["lost_cells"] if (sides["status"] != "ok").any() else []
    beside = sides[_in_bracket(sides[row["x_axis"]], row)]
    return lost + sorted({flag for own in beside["flags"] for flag in own})


def _in_bracket(places: pd.Series, row: Mapping[str, Any]) -> pd.Series:
    """Which places on the x axis lie between the ends of a crossover's bracket; none where it lacks an end."""
    low, high = row["bracket_low"], row["bracket_high"]
    return places.between(math.nan if low is None else low, math.nan if high is None else high)


def transfers(own: RunTables) -> list[Row]:
    """How many times as large the crossover is with transfers in each step as on resident data, line by line."""
    headlines = headline_rows(own.crossovers)
    axes = [axis for axis in DEVICE_LINE_AXES if axis != "protocol"]
    several = [axis for axis in varying(own.cells, LINE_AXES) if axis != "protocol"]
    found = []
    for _, rows in headlines[headlines["status"] == "bracketed"].groupby(axes, sort=False):
        by_protocol = {row["protocol"]: row for row in records(rows)}
        for moved in by_protocol.keys() & {*FROM_HOST} if RESIDENT in by_protocol else ():
            found.append(_transfer(by_protocol[moved], by_protocol[RESIDENT], several))
    return found


def _transfer(moved: dict[str, Any], resident: dict[str, Any], several: Collection[str]) -> Row:
    sizes = [Interval(*(row[f"crossover{end}"] for end in ("", "_low", "_high"))) for row in (resident, moved)]
    ratio = ratio_of_intervals(*sizes)
    trials = min(moved["trials"], resident["trials"])
    return {
        "kind": "transfers",
        "machine": moved["machine"],
        "line": name_by(moved, several),
        "status": compared(ratio, more="differ", less="differ"),
        "value": ratio.mean,
        "low": ratio.low,
        "high": ratio.high,
        "unit": "times",
        "winner": side_word(moved["contender"]),
        "loser": side_word(moved["baseline"]),
        "trials": trials,
        "doubts": ["one_trial"] if trials == 1 else [],
    }


def best_answers(own: RunTables) -> list[Row]:
    """Where each accelerator begins to beat the CPU with both at their best, in which ways, and what that moved."""
    several = [axis for axis in varying(own.cells, LINE_AXES) if axis in BEST_AXES]
    headlines = headline_rows(own.crossovers)
    at_best = own.crossovers[own.crossovers["pair"] == BEST]
    if at_best.empty:
        return _fastest_ways(own.best_ways, several)
    return [
        _best(row, own.best_ways, rows_with(headlines, [*BEST_AXES, "contender"], row), several)
        for row in records(at_best)
    ]


def _fastest_ways(best_ways: pd.DataFrame, several: Sequence[str]) -> list[Row]:
    """The fastest way of each device at the largest size at which several were measured, against the plain one."""
    found = []
    for _, own in best_ways[best_ways["trials"] > 0].groupby([*BEST_AXES, "device"], sort=False):
        counted = own[own["counts"] & own.duplicated("size", keep=False)]
        at_largest = counted[counted["size"] == counted["size"].max()].sort_values("step_time_s")
        if at_largest.empty:
            continue
        is_plain = (at_largest["execution"] == PLAIN_SIDES["execution"]) & (at_largest["side"] == at_largest["device"])
        rows = records(at_largest)
        times = [
            SampleMean.of_interval(
                Interval(row["step_time_s"], row["step_time_low_s"], row["step_time_high_s"]), row["trials"]
            )
            for row in rows
        ]
        choice = choose(times, next(iter(np.flatnonzero(is_plain).tolist()), None))
        best, other = rows[choice.chosen], rows[choice.other]
        trials = min(best["trials"], other["trials"])
        found.append(
            {
                "kind": "setting",
                "machine": best["machine"],
                "line": name_by(best, several),
                **ratio_columns(choice.ratio),
                "device": side_word(best["device"]),
                "place": name_by(best, ["size"]),
                "winner": _way_words(best, own),
                "loser": _way_words(other, own),
                "winner_s": best["step_time_s"],
                "loser_s": other["step_time_s"],
                "trials": trials,
                "doubts": ["one_trial"] if trials == 1 else [],
            }
        )
    return found


def _best(row: dict[str, Any], best_ways: pd.DataFrame, headlines: pd.DataFrame, several: Sequence[str]) -> Row:
    ways = rows_with(best_ways, BEST_AXES, row)
    chosen = ways[ways["chosen"] & ways["counts"]].sort_values("size")
    sides = {
        side: _ways_that_won(chosen[chosen["device"] == row[side]], ways, row) for side in ("baseline", "contender")
    }
    contender, baseline = side_word(row["contender"]), side_word(row["baseline"])
    known = answer_of(row, contender, baseline)
    times = chosen.pivot_table(index=row["x_axis"], columns="device", values="step_time_s")
    if {row["baseline"], row["contender"]} <= set(times):
        speedups = (times[row["baseline"]] / times[row["contender"]]).dropna()
        known |= _ends_and_reach(row, speedups, contender, baseline)
    winner, loser = ("baseline", "contender") if known["winner"] == baseline else ("contender", "baseline")
    plain = _plainest(headlines, row["precision"].partition("+")[0])
    found = plain["status"] == row["status"] == "bracketed"
    return {
        **known,
        "kind": "best",
        "main": True,
        "line": name_by(row, several),
        "winner_ways": sides[winner],
        "loser_ways": sides[loser],
        "moved_status": plain["status"],
        "moved_from": plain["crossover"],
        "factor": row["crossover"] / plain["crossover"] if found else None,
    }


def _plainest(headlines: pd.DataFrame, precision: str) -> dict[str, Any]:
    """The crossover of the devices that is nearest to plain, in the class's first precision."""
    wanted = {**PLAIN_SIDES, "precision": precision, "variant": PLAIN}
    rows = records(headlines)
    nearest = max(rows, key=lambda row: sum(row[axis] == value for axis, value in wanted.items()), default=None)
    return nearest or {"status": None, "crossover": None}


def _ways_that_won(chosen: pd.DataFrame, ways: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """A device's fastest ways at the sizes beside the crossover, or at both ends of the sizes measured."""
    x = row["x_axis"]
    beside = chosen[_in_bracket(chosen[x], row)]
    ends = beside if len(beside) else chosen.iloc[[0, -1]] if len(chosen) else chosen
    return list(dict.fromkeys(_way_words(way, ways) for way in records(ends)))


def _way_words(way: dict[str, Any], ways: pd.DataFrame) -> str:
    """A way by its execution and what else differs among the ways."""
    named = [axis for axis in WAY_AXES if axis != "device" and (axis == "execution" or ways[axis].nunique() > 1)]
    cores = [side_word(way["side"]).partition(" ")[2]] if threads_of_side(way["side"]) else []
    return ", ".join([name_by(way, named), *cores])

"""Answers at a single place: loading, two devices, latency, throughput, settings, and cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.vocabulary import Row, doubts_of, estimate, ratio_columns
from crossover.config.words import BASELINE, DEVICES, PLAIN, PLAIN_SIDES, is_cpu
from crossover.statistics.choices import choose
from crossover.statistics.fastest import fastest
from crossover.statistics.intervals import (
    INCONCLUSIVE,
    SINGLE_TRIAL,
    Interval,
    SampleMean,
    decided,
    time_over_trials,
)
from crossover.tables.frames import first_row, on_all_cores, records, rows_with
from crossover.tables.labels import NAMED_AXES, name_by, side_word, varying
from crossover.tables.registry import CELL_AXES, LINE_AXES, WAYS
from crossover.tables.run_tables import RunTables

BOUND = 0.5
"""Share of a step above which what takes it bounds the run."""

PLAIN_SETTING = {**PLAIN_SIDES, "variant": PLAIN}
"""The settings with nothing switched on."""


def comparison_answers(own: RunTables, spec: Mapping[str, Any]) -> list[Row]:
    """Answers of a study that does not ask where two sides cross, by what its figures show."""
    loading, ratios = _loading(own), _ratios(own)
    if "latency" in spec["figures"]:
        asked = _latencies(own)
    elif "throughput" in spec["figures"]:
        asked = _of_devices(own.cells, lambda cells: _best_rate(cells, own.measurements))
    elif loading or _one_cell_a_device(own.cells):
        asked = []
    else:
        asked = _of_devices(own.cells, lambda cells: _setting(cells, own.measurements))
    general = loading or ratios
    return [row | {"main": True} for row in asked] + [row | {"main": not asked} for row in general]


def _one_cell_a_device(cells: pd.DataFrame) -> bool:
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    counts = timed.groupby(["machine", "device"]).size()
    return BASELINE in set(timed["device"]) and timed["device"].nunique() > 1 and bool((counts == 1).all())


def _of_devices(cells: pd.DataFrame, answer: Any) -> list[Row]:
    """An answer for each device of each machine that has a time."""
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    found = []
    for machine in timed["machine"].unique():
        for device in DEVICES:
            own = timed[(timed["machine"] == machine) & (timed["device"] == device)]
            if len(own):
                line = machine if timed["machine"].nunique() > 1 else ""
                found.append({"machine": machine, "line": line, "device": side_word(device)} | answer(own))
    return found


def _best_rate(cells: pd.DataFrame, measurements: pd.DataFrame) -> Row:
    """The most samples per second, without what the largest of several noisy rates owes to the choice."""
    rows = records(cells)
    times_s = [[time / _samples(cell) for time in _times(rows_with(measurements, CELL_AXES, cell))] for cell in rows]
    best = fastest([np.log(times) for times in times_s])
    cell = rows[best.place]
    rate = time_over_trials(np.exp(best.logs).tolist()).inverted()
    if rate.low is None:
        status = SINGLE_TRIAL
    else:
        leads = len(rows) == 1 or choose([SampleMean.of_times(times) for times in times_s]).leads
        status = "best" if leads else INCONCLUSIVE
    named = [axis for axis in varying(cells, NAMED_AXES) if axis not in ("batch_size", "machine")]
    return {
        "kind": "throughput",
        "status": status,
        "value": rate.mean,
        "low": rate.low,
        "high": rate.high,
        "unit": "samples/s",
        "place": name_by(cell, ["batch_size", *named]),
        "trials": cell["trials"],
        "doubts": doubts_of(pd.DataFrame([cell])),
    }


def _samples(cell: Mapping[str, Any]) -> float:
    """Samples in a step of a cell."""
    return float(cell["samples_per_s"] * cell["step_time_s"])


def _setting(cells: pd.DataFrame, measurements: pd.DataFrame) -> Row:
    """At the largest size the cell of least time per sample over the plain one, or over the next if it is plain."""
    own = cells[cells["size"] == cells["size"].max()]
    rows = records(own)
    place = name_by(rows[0], ["size"] if cells["size"].nunique() > 1 else [])
    if len(rows) == 1:
        return step_time(rows[0]) | {"place": place}
    plain = [
        index for index, cell in enumerate(rows) if all(cell[axis] == PLAIN_SETTING[axis] for axis in PLAIN_SETTING)
    ]
    times = [
        SampleMean.of_times([time / _samples(cell) for time in _times(rows_with(measurements, CELL_AXES, cell))])
        for cell in rows
    ]
    choice = choose(times, plain[-1] if plain else None)
    best, other = rows[choice.chosen], rows[choice.other]
    named = [axis for axis in varying(own, NAMED_AXES) if axis != "machine"]
    return {
        "kind": "setting",
        **ratio_columns(choice.ratio),
        "winner": name_by(best, named),
        "loser": name_by(other, named),
        "place": place,
        "trials": min(best["trials"], other["trials"]),
        "doubts": doubts_of(pd.DataFrame([best, other])),
    }


def _times(trials: pd.DataFrame) -> list[float]:
    ok = trials[trials["status"] == "ok"]
    return [float(time) for time in ok["step_time_s"].dropna()]


def step_time(cell: Mapping[str, Any]) -> Row:
    """The time of a step of one cell, where nothing can be compared with it."""
    return {
        "kind": "step_time",
        "status": "measured",
        "machine": cell["machine"],
        "device": side_word(cell["device"]),
        "value": cell["step_time_s"],
        "low": cell["step_time_low_s"],
        "high": cell["step_time_high_s"],
        "unit": "s",
        "trials": cell["trials"],
        "doubts": doubts_of(pd.DataFrame([cell])),
    }


def without_accelerator(own: RunTables, x_axis: str) -> list[Row]:
    """The CPU's time at both ends of each series: the half that was measured. The one nearest to plain comes first."""
    cells = on_all_cores(own.cells).dropna(subset=["step_time_s"])
    several = varying(cells, LINE_AXES)
    found = []
    lines = [line for _, line in cells.groupby(LINE_AXES, sort=False)]
    for line in sorted(
        lines, key=lambda line: sum(line[axis].iloc[0] != plain for axis, plain in PLAIN_SETTING.items())
    ):
        for cell in records(line.sort_values(x_axis).iloc[[0, -1]].drop_duplicates(CELL_AXES)):
            place = name_by(cell, ["size"])
            found.append(step_time(cell) | {"place": place, "line": name_by(cell, several), "main": True})
    return found


def _ratios(own: RunTables) -> list[Row]:
    """How many times as fast one device is as the other, on lines that were measured at one size."""
    table = own.ratios
    of_devices = table[(table["pair"] == "device") & (table["baseline"] == BASELINE)]
    of_devices = of_devices[of_devices["baseline_machine"] == of_devices["machine"]]
    several = varying(own.cells, LINE_AXES)
    found = []
    for _, line in of_devices.groupby([*LINE_AXES, "contender"], sort=False):
        if len(line) == 1:
            found.append(_ratio(first_row(line), own.cells, several))
    return found


def _ratio(row: dict[str, Any], cells: pd.DataFrame, several: Iterable[str]) -> Row:
    ahead = row["ratio"] >= 1
    ratio = Interval(row["ratio"], row["ratio_low"], row["ratio_high"])
    names = side_word(row["contender"]), side_word(row["baseline"])
    seconds = row["contender_s"], row["baseline_s"]
    both = rows_with(cells, [*LINE_AXES, "size"], row)
    return {
        "kind": "ratio",
        "machine": row["machine"],
        "line": name_by(row, several),
        **ratio_columns(ratio if ahead else ratio.inverted()),
        "winner": names[0] if ahead else names[1],
        "loser": names[1] if ahead else names[0],
        "winner_s": min(seconds),
        "loser_s": max(seconds),
        "trials": row["trials"],
        "doubts": doubts_of(both[both["device"].isin([row["contender"], row["baseline"]])]),
    }


def _loading(own: RunTables) -> list[Row]:
    """What loading its data takes of a step: all that the published protocol does beside the arithmetic."""
    pairs = own.ratios[own.ratios["pair"] == "protocol"]
    pairs = pairs[pairs["device"].isin(DEVICES)]
    several = [axis for axis in varying(own.cells, [*LINE_AXES, "size"]) if axis != "protocol"]
    return [_share(row, own.cells, several) for row in records(pairs)]


def _share(row: dict[str, Any], cells: pd.DataFrame, several: Iterable[str]) -> Row:
    value, low, high = (None if row[end] is None else 1 - 1 / row[end] for end in ("ratio", "ratio_low", "ratio_high"))
    status = decided(low, high, 0.0, "slows", "no_slowdown")
    if low is not None and low > BOUND:
        status = "bounds"
    both = rows_with(cells, [axis for axis in CELL_AXES if axis != "protocol"], row)
    return {
        "kind": "loading",
        "machine": row["machine"],
        "line": name_by(row, several),
        "status": status,
        "value": value,
        "low": low,
        "high": high,
        "unit": "share",
        "device": side_word(row["device"]),
        "winner_s": row["contender_s"],
        "loser_s": row["baseline_s"],
        "trials": row["trials"],
        "doubts": doubts_of(both),
    }


def _latencies(own: RunTables) -> list[Row]:
    """The mistake that is surely off by the largest factor; of the CPU only where no accelerator was measured."""
    table = own.latencies
    accelerated = table[~table["device"].map(is_cpu)]
    table = accelerated if len(accelerated) else table[table["device"] == BASELINE]
    found = []
    for (machine, device), ways in table.groupby(["machine", "device"], sort=False):
        mistakes = ways[ways["kind"] == "mistake"].dropna(subset=["ratio"])
        # Of several cells no single mistake is the worst.
        if len(ways.drop_duplicates(CELL_AXES)) > 1 or mistakes.empty:
            continue
        cell = rows_with(own.cells, CELL_AXES, first_row(ways))
        trials = int(cell["trials"].min())
        row: Row = {
            "kind": "latency",
            "machine": machine,
            "line": machine if table["machine"].nunique() > 1 else "",
            "device": side_word(str(device)),
            "status": "none_found",
            "trials": trials,
            "doubts": doubts_of(cell),
        }
        sure = mistakes[mistakes["is_error"].astype(bool)]
        if len(sure):
            factors = sure["ratio"].map(lambda ratio: max(ratio, 1 / ratio))
            worst = first_row(sure.loc[[factors.idxmax()]])
            row |= {"status": "error", "quantity": WAYS[worst["way"]], **estimate(worst, "ratio", "times")}
        found.append(row)
    return found


def cores_answers(table: pd.DataFrame, cells: pd.DataFrame) -> list[Row]:
    """How many CPU cores each accelerator is worth, on every line and size; at the largest size it is the answer."""
    several = varying(cells, LINE_AXES)
    largest = table.groupby([*LINE_AXES, "contender"])["size"].transform("max")
    return [
        {
            "kind": "cores",
            "machine": row["machine"],
            "line": name_by(row, several),
            "main": row["size"] == most,
            "status": row["status"],
            **estimate(row, "cores", "cores"),
            "winner": side_word(row["contender"]),
            "place": name_by(row, ["size"]),
            "bracket_low": min(row["measured_cores"], default=None),
            "bracket_high": max(row["measured_cores"], default=None),
            "near": row["measured_cores"],
            "trials": row["trials"],
            "doubts": ["one_trial"] if row["trials"] == 1 else [],
        }
        for row, most in zip(records(table), largest, strict=True)
    ]

"""Answers on times, speed-ups, data loading, latency and throughput, and on the sides named in `asks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.vocabulary import (
    BASELINE_AXES,
    Row,
    caveats_of,
    detectable,
    estimate,
    interval_columns,
    ratio_columns,
)
from crossover.claims.cell_claims import interval_of_ratio, ratio_of_sides
from crossover.claims.findings import NoFindingError
from crossover.config.claim_forms import Side
from crossover.config.study import Asks, Study
from crossover.config.words import (
    BASELINE,
    COPYING,
    CPU_THREADS,
    DEVICES,
    is_cpu,
    series_axes,
)
from crossover.statistics.choices import choose, fastest
from crossover.statistics.intervals import (
    FASTER,
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SLOWER,
    Interval,
    SampleMean,
    compared,
    decided,
    interval_of,
    time_over_trials,
)
from crossover.statistics.latencies import LOWERS
from crossover.tables.frames import first_row, on_all_cores, records, rows_with, with_x
from crossover.tables.labels import NAMED_AXES, name_by, place_on, side_word, varying
from crossover.tables.registry import CELL_AXES, DETERMINISTIC, METHODS, SERIES_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import cores_text

BOUND = 0.5
"""Share of a step above which loading or copying data counts as the bottleneck of the step."""


def comparison_answers(tables: RunTables, spec: Study, together: int) -> list[Row]:
    """The answers of a study without crossovers; `together` is its number of comparisons."""
    loading, ratios = _loading(tables, together), _ratios(tables, together)
    if "latency" in spec.figures:
        main = _latencies(tables)
    elif "throughput" in spec.figures:
        main = _for_each_device(tables.cells, lambda cells: _highest_throughput(cells, tables.measurements, together))
    elif loading or _has_one_cell_per_device(tables.cells):
        main = []
    else:
        main = _for_each_device(tables.cells, lambda cells: _fastest_setting(cells, tables.measurements, together))
    answers = [row | {"main": True} for row in main] + [row | {"main": not main} for row in loading]
    return answers + [row | {"main": not answers} for row in ratios]


def _has_one_cell_per_device(cells: pd.DataFrame) -> bool:
    """Whether the CPU and an accelerator have a time, and no device of a machine has several timed cells."""
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    counts = timed.groupby(["machine", "device"]).size()
    return BASELINE in set(timed["device"]) and timed["device"].nunique() > 1 and bool((counts == 1).all())


def _for_each_device(cells: pd.DataFrame, answer: Callable[[pd.DataFrame], Row]) -> list[Row]:
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    answers = []
    for machine, machine_cells in timed.groupby("machine", sort=False):
        series = machine if timed["machine"].nunique() > 1 else ""
        for device in DEVICES:
            device_cells = machine_cells[machine_cells["device"] == device]
            if len(device_cells):
                row = {"machine": machine, "series": series, "device": side_word(device)}
                answers.append(row | answer(device_cells))
    return answers


def _highest_throughput(cells: pd.DataFrame, measurements: pd.DataFrame, together: int) -> Row:
    rows = records(cells)
    times_s = [_times_per_sample(cell, measurements) for cell in rows]
    best = fastest([np.log(times) for times in times_s])
    cell = rows[best.index]
    rate = time_over_trials(np.exp(best.logs).tolist()).inverted()
    if rate.low is None:
        status = SINGLE_TRIAL
    else:
        leads = len(rows) == 1 or choose([SampleMean.of_times(times) for times in times_s], together=together).leads
        status = "best" if leads else INCONCLUSIVE
    named = [axis for axis in varying(cells, NAMED_AXES) if axis not in ("batch_size", "machine")]
    return {
        "kind": "throughput",
        "status": status,
        **interval_columns(rate, "samples/s"),
        "place": name_by(cell, ["batch_size", *named]),
        "trials": cell["trials"],
        "caveats": caveats_of(pd.DataFrame([cell])),
    }


def _times_per_sample(cell: dict[str, Any], measurements: pd.DataFrame) -> list[float]:
    samples = float(cell["samples_per_s"] * cell["step_time_s"])
    trials = rows_with(measurements, CELL_AXES, cell)
    ok = trials[trials["status"] == "ok"]
    return [float(time) / samples for time in ok["step_time_s"].dropna()]


def _fastest_setting(cells: pd.DataFrame, measurements: pd.DataFrame, together: int) -> Row:
    """The speed-up per sample of the fastest setting over the baseline setting, at the largest size."""
    at_largest = cells[cells["size"] == cells["size"].max()]
    rows = records(at_largest)
    at_size = name_by(rows[0], ["size"] if cells["size"].nunique() > 1 else [])
    if len(rows) == 1:
        return _step_time(rows[0]) | {"place": at_size}
    plain = [index for index, cell in enumerate(rows) if BASELINE_AXES.items() <= cell.items()]
    times = [SampleMean.of_times(_times_per_sample(cell, measurements)) for cell in rows]
    choice = choose(times, plain[-1] if plain else None, together)
    best, baseline = rows[choice.chosen], rows[choice.baseline]
    named = [axis for axis in varying(at_largest, NAMED_AXES) if axis != "machine"]
    return {
        "kind": "setting",
        **ratio_columns(choice.ratio),
        "winner": name_by(best, named),
        "loser": name_by(baseline, named),
        "place": at_size,
        "trials": min(best["trials"], baseline["trials"]),
        "caveats": caveats_of(pd.DataFrame([best, baseline])),
    }


def _step_time(cell: Mapping[str, Any]) -> Row:
    return {
        "kind": "step_time",
        "status": "measured",
        "machine": cell["machine"],
        "device": side_word(cell["device"]),
        **interval_columns(interval_of(cell, "step_time{}_s"), "s"),
        "trials": cell["trials"],
        "caveats": caveats_of(pd.DataFrame([cell])),
    }


def without_accelerator(tables: RunTables, x_axis: str) -> list[Row]:
    """The CPU's step time at both ends of each series; series closest to the baseline setting come first."""
    cells = (tables.cells if x_axis == CPU_THREADS else on_all_cores(tables.cells)).dropna(subset=["step_time_s"])
    axes = series_axes(x_axis)
    varied_axes = varying(cells, axes)
    changed = sum((cells[axis] != plain).astype(int) for axis, plain in BASELINE_AXES.items())
    lines = cells.assign(changed=changed).sort_values("changed", kind="stable").groupby(axes, sort=False)
    return [
        _step_time(cell) | _place(cell, x_axis) | {"series": name_by(cell, varied_axes), "main": True}
        for _, line in lines
        for cell in records(with_x(line, x_axis).sort_values("x").iloc[[0, -1]].drop_duplicates(CELL_AXES))
    ]


def _place(cell: Mapping[str, Any], x_axis: str) -> Row:
    if x_axis == CPU_THREADS:
        return {"device": side_word(BASELINE), "place": cores_text(cell["threads"], "CPU core")}
    return {"place": place_on(cell, x_axis)}


def _ratios(tables: RunTables, together: int) -> list[Row]:
    """The speed-up of an accelerator over its host's CPU, or of the CPU over it, for series with a single size."""
    ratios = tables.ratios[(tables.ratios["pair"] == "device") & (tables.ratios["baseline"] == BASELINE)]
    ratios = ratios[ratios["baseline_machine"] == ratios["machine"]]
    varied_axes = varying(tables.cells, SERIES_AXES)
    lines = (line for _, line in ratios.groupby([*SERIES_AXES, "contender"], sort=False))
    return [_ratio(first_row(line), tables, varied_axes, together) for line in lines if len(line) == 1]


def _ratio(row: dict[str, Any], tables: RunTables, varied_axes: Iterable[str], together: int) -> Row:
    ahead = row["ratio"] >= 1
    baseline, contender = (
        {axis: row[axis] for axis in CELL_AXES} | {"device": row[side]} for side in ("baseline", "contender")
    )
    ratio = _speedup(baseline, contender, tables.measurements, together)
    names = side_word(row["contender"]), side_word(row["baseline"])
    seconds = row["contender_s"], row["baseline_s"]
    both = tables.rows_with("cells", [*SERIES_AXES, "size"], row)
    return {
        "kind": "ratio",
        "machine": row["machine"],
        "series": name_by(row, varied_axes),
        **ratio_columns(ratio if ahead else ratio.inverted()),
        "winner": names[0] if ahead else names[1],
        "loser": names[1] if ahead else names[0],
        "winner_s": min(seconds),
        "loser_s": max(seconds),
        "trials": row["trials"],
        "caveats": caveats_of(both[both["device"].isin([row["contender"], row["baseline"]])]),
    }


def _speedup(baseline: Mapping[str, Any], contender: Mapping[str, Any], rows: pd.DataFrame, together: int) -> Interval:
    """Time of a baseline's cell over that of a contender's, given by their axes."""
    of, over = (Side(axes, "step_time_s") for axes in (baseline, contender))
    ratio, _ = ratio_of_sides(of, over, baseline["study"], rows)
    return interval_of_ratio(ratio, together)


def _loading(tables: RunTables, together: int) -> list[Row]:
    """The share of data loading in a step and, on an accelerator, the share of transfers from the host."""
    pairs = tables.ratios[tables.ratios["pair"] == "protocol"]
    pairs = pairs[pairs["device"].isin(DEVICES)]
    pairs = pairs[(pairs["device"] != BASELINE) | ~pairs["baseline"].isin(COPYING)]
    varied_axes = [axis for axis in varying(tables.cells, [*SERIES_AXES, "size"]) if axis != "protocol"]
    return [_loading_share(row, tables, varied_axes, together) for row in records(pairs)]


def _loading_share(row: dict[str, Any], tables: RunTables, varied_axes: Iterable[str], together: int) -> Row:
    resident = {axis: row[axis] for axis in CELL_AXES}
    ratio = _speedup(resident | {"protocol": row["baseline"]}, resident, tables.measurements, together)
    value, low, high = (None if end is None else 1 - 1 / end for end in (ratio.mean, ratio.low, ratio.high))
    is_bound = low is not None and low > BOUND
    both = tables.rows_with("cells", [axis for axis in CELL_AXES if axis != "protocol"], row)
    return {
        "kind": "copying" if row["baseline"] in COPYING else "loading",
        "machine": row["machine"],
        "series": name_by(row, varied_axes),
        "status": "bounds" if is_bound else decided(low, high, 0.0, SLOWER, FASTER),
        "value": value,
        "low": low,
        "high": high,
        "unit": "share",
        "quantity": row["baseline"] if row["baseline"] in COPYING else None,
        "device": side_word(row["device"]),
        "winner_s": row["contender_s"],
        "loser_s": row["baseline_s"],
        "trials": row["trials"],
        "caveats": caveats_of(both),
    }


def _latencies(tables: RunTables) -> list[Row]:
    """The effect of each mistake on accelerators or, without one, on the CPU; the largest significant one first."""
    latencies = tables.latencies
    accelerated = latencies[~latencies["device"].map(is_cpu)]
    latencies = accelerated if len(accelerated) else latencies[latencies["device"] == BASELINE]
    answers = []
    for (machine, device), methods in latencies.groupby(["machine", "device"], sort=False):
        mistakes = methods[methods["kind"] == "mistake"].dropna(subset=["ratio"])
        if len(methods.drop_duplicates(CELL_AXES)) > 1 or mistakes.empty:
            continue
        cell = tables.rows_with("cells", CELL_AXES, first_row(methods))
        shared: Row = {
            "kind": "latency",
            "machine": machine,
            "series": machine if latencies["machine"].nunique() > 1 else "",
            "device": side_word(str(device)),
            "trials": int(cell["trials"].min()),
            "caveats": caveats_of(cell),
        }
        if mistakes["ratio_low"].isna().all():
            answers.append(shared | {"status": SINGLE_TRIAL})
        else:
            answers += sorted((shared | _mistake(row) for row in records(mistakes)), key=_by_size, reverse=True)
    return answers


def _mistake(row: Mapping[str, Any]) -> Row:
    found = {"quantity": METHODS[row["method"]], **estimate(row, "ratio", "times")}
    if row["is_error"]:
        return found | {"status": "error"}
    largest = 1 - row["ratio_low"] if row["method"] == LOWERS else row["ratio_high"] - 1
    return found | {"status": "none_found", "detectable": max(largest, 0.0)}


def _by_size(answer: Row) -> tuple[bool, float]:
    return answer["status"] == "error", max(answer["value"], 1 / answer["value"])


def asked_answers(tables: RunTables, asks: Asks, together: int) -> list[Row]:
    """One answer per metric, series and device, at the largest size that has both sides; accelerators first.

    The study chose the sides before the measurement, so the intervals need no correction for selection. `together` is
    the study's number of comparisons.
    """
    cells = on_all_cores(tables.cells).dropna(subset=["step_time_s"])
    of, over = (rows_with(cells, list(side), side) for side in (asks.of, asks.over))
    shared = [axis for axis in CELL_AXES if axis not in {*asks.of, *asks.over}]
    both = of.merge(over[shared], on=shared)
    if both.empty:
        return []
    series = [axis for axis in shared if axis != "size"]
    largest = both[both["size"] == both.groupby(series)["size"].transform("max")]
    varied_axes = [axis for axis in varying(both, SERIES_AXES) if axis in shared]
    ordered = largest.sort_values("device", key=lambda devices: devices.map(is_cpu), kind="stable")
    answers = (
        _asked_answer(metric, {axis: cell[axis] for axis in shared}, tables, asks, together)
        | {"series": name_by(cell, varied_axes)}
        for cell in records(ordered)
        for metric in asks.metrics
    )
    return [row for row in answers if "value" in row]


def _asked_answer(metric: str, shared: Mapping[str, Any], tables: RunTables, asks: Asks, together: int) -> Row:
    """The ratio of both sides in one metric; for times, of the slower over the faster."""
    of, over = (Side({**shared, **side}, metric) for side in (asks.of, asks.over))
    try:
        log_ratio, trials = ratio_of_sides(of, over, shared["study"], tables.measurements)
    except NoFindingError:
        return {}
    ratio = interval_of_ratio(log_ratio, together)
    differing = [axis for axis in asks.of if asks.of[axis] != asks.over[axis]]
    alike = [axis for axis in asks.of if axis not in differing]
    names = [name_by(side, differing) for side in (asks.of, asks.over)]
    statuses = ("worse", "better")
    if metric == "step_time_s":
        statuses = (FASTER, SLOWER)
        if ratio.mean < 1:
            ratio = ratio.inverted()
        else:
            names.reverse()
    cells = pd.concat([rows_with(tables.cells, list(side.axes), side.axes) for side in (of, over)])
    is_deterministic = metric in DETERMINISTIC
    return {
        "kind": "asked",
        "main": True,
        "machine": shared["machine"],
        "status": (status := compared(ratio, 0.0, *statuses)),
        "detectable": None if is_deterministic else detectable(ratio, status),
        "quantity": metric,
        **interval_columns(Interval(ratio.mean) if is_deterministic else ratio, "times"),
        "winner": names[0],
        "loser": names[1],
        "device": side_word(shared["device"]),
        "place": name_by(first_row(cells), [*varying(tables.cells, ["size"]), *alike]),
        "trials": trials,
        "caveats": [] if is_deterministic else caveats_of(cells),
    }

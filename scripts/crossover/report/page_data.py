"""Make the JSON data for the page's chart and its table of cells."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.intervals import ENDS, ONE_TRIAL_LEAD, t_quantile
from crossover.compare.pairings import REFERENCE
from crossover.compare.payback import run_costs
from crossover.compare.ratios import sign_of
from crossover.config.published_rows import PLACES
from crossover.config.statuses import STATUSES
from crossover.config.study import Study, steps_of_run
from crossover.config.words import BASELINE, CPU_THREADS, GPUS, HERE, X_AXES, is_cpu, ranks_of_side, series_axes
from crossover.drawing.style import PALETTE, PUBLISHED_COLOURS, SPLIT_COLOURS, published_look, side_look
from crossover.drawing.view import published_series, published_table, with_places
from crossover.tables.frames import headline_rows, of_study, records, rows_with
from crossover.tables.labels import axis_label, device_label, product_family, side_word, size_titles
from crossover.tables.registry import CELL_AXES, SPLIT, SUMMARIES, Column
from crossover.tables.run_tables import RunTables
from crossover.text import SINGULAR
from crossover.topics.bottlenecks.table import is_hidden_by_load
from crossover.topics.wording import amount_text, interval_text

DIGITS = 8
"""Significant digits of floats."""

COMMAND_PARTS = re.compile(r"[^ /=]*[ /=]?")
"""Splits a command into parts, so that those common to all cells are stored once."""


def page_data(studies: Mapping[str, Study], tables: RunTables) -> str:
    """The data as JSON that is safe inside a script element: ASCII without `<`."""
    cells, ratios = tables.cells, tables.ratios
    over_host = ratios[(ratios["pair"] == "device") & (ratios["baseline_machine"] == ratios["machine"])]
    bases = _bases(cells, ratios)
    over_this_cpu = ratios[(ratios["pair"] == REFERENCE) & (ratios["contender"] == ratios["device"])]
    has_named_machines = bool((cells["machine"] != HERE).any())
    elsewhere = tables.cells_elsewhere
    devices = pd.concat([cells["device"], elsewhere["device"]]).unique()
    titles = size_titles(cells)
    data = {
        "count": len(cells),
        # A link to a cell consists of these axes.
        "axes": [axis for axis in CELL_AXES if axis != "machine" or has_named_machines],
        "cells": _cells(cells, pd.concat([over_host, _of_gpus(ratios, bases)])),
        "repeats": _repeats(tables) if len(tables.measurements) <= MOST_REPEATS else None,
        "jobs": _jobs(tables),
        "over_cores": _over_cores(cells, over_host),
        "one_trial_lead": ONE_TRIAL_LEAD,
        "t_quantiles": plain(t_quantile(np.array([*range(1, MOST_FREEDOM + 1), np.inf]))),
        "elsewhere": {
            "count": len(elsewhere),
            "estimated": len(tables.predicted_cells) > 0,
            "cells": _cells(elsewhere, over_this_cpu),
        },
        "published": {name: _published(study, of_study(cells, name)) for name, study in studies.items()},
        "splits": _splits(cells),
        "commands": _commands(tables),
        "columns": [
            {
                "key": name,
                "title": titles.get(name, column.title_of(name)),
                "unit": column.shown_unit,
                "factor": column.factor,
                "doc": column.doc,
                "always": column.always,
            }
            for name, column in sorted(SUMMARIES.items(), key=_rank)
        ],
        "metrics": [*_metrics(cells), SPEEDUP],
        "studies": {
            name: {"title": study.title, "x_axis": study.x_axis, "base": bases.get(name, BASELINE)}
            for name, study in studies.items()
        },
        "crossovers": _crossovers(tables, bases),
        "statuses": {name: word.count for name, word in STATUSES.items()},
        "singular": SINGULAR,
        "colours": {"devices": {side: side_look(side)[0] for side in devices}, "palette": PALETTE},
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _bases(cells: pd.DataFrame, ratios: pd.DataFrame) -> dict[str, str]:
    """The one GPU with which the cells of each study on several GPUs and no CPU are compared."""
    of_gpus = ratios[(ratios["pair"] == GPUS) & ~ratios["study"].isin(cells.loc[cells["device"].map(is_cpu), "study"])]
    alone = of_gpus[of_gpus["baseline"].map(ranks_of_side) == 1]
    return dict(zip(alone["study"], alone["baseline"], strict=True))


def _of_gpus(comparisons: pd.DataFrame, bases: Mapping[str, str]) -> pd.DataFrame:
    """The rows that compare with the `_bases`."""
    return comparisons[(comparisons["pair"] == GPUS) & (comparisons["baseline"] == comparisons["study"].map(bases))]


def _rank(item: tuple[str, Column]) -> int:
    name, column = item
    return 0 if name in CELL_AXES else 1 if column.always else 2


def encoded(values: Sequence[Any]) -> list[Any] | dict[str, Any]:
    """Encode a column as {"all": value} or {"values": distinct values, "at": indices} if values repeat."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return {"all": distinct[0]}
    if len(distinct) > len(values) / 2:
        return list(values)
    indices = {value: index for index, value in enumerate(distinct)}
    return {"values": distinct, "at": [indices[value] for value in values]}


def plain(values: Iterable[Any]) -> list[Any]:
    """Values for JSON: None if missing or infinite, floats rounded to DIGITS digits, lists as strings."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return " ".join(map(str, value))
    if isinstance(value, np.generic):
        value = value.item()
    if pd.isna(value) or value in (math.inf, -math.inf):
        return None
    if isinstance(value, float):
        rounded = float(f"{value:.{DIGITS}g}")
        return int(rounded) if rounded.is_integer() else rounded
    return value if isinstance(value, int) else str(value)


def _commands(tables: RunTables) -> list[Any]:
    """Commands of the cells' first trials, as encoded columns of their parts."""
    first = tables.measurements.sort_values("trial", kind="stable").drop_duplicates(CELL_AXES)
    merged = tables.cells[CELL_AXES].merge(first[[*CELL_AXES, "command"]], on=CELL_AXES, how="left")
    parts = [[] if command is None else COMMAND_PARTS.findall(command)[:-1] for command in plain(merged["command"])]
    longest = max(map(len, parts), default=0)
    return [encoded([words[index] if index < len(words) else "" for words in parts]) for index in range(longest)]


MOST_REPEATS = 3000
"""Maximum number of trials of a run for the chart to have dots."""

SPEEDUP = {
    "key": "speedup",
    "title": "speed-up",
    "unit": "times",
    "factor": 1,
    "kind": "number",
    "interval": ["speedup_low", "speedup_high"],
}


def _metrics(cells: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "key": name,
            "title": column.title_of(name),
            "unit": column.shown_unit if column.chart == "number" else "",
            "factor": column.factor if column.chart == "number" else 1,
            "kind": column.chart,
            "interval": column.interval,
        }
        for name, column in SUMMARIES.items()
        if column.chart and cells[name].notna().any()
    ]


def _cells(cells: pd.DataFrame, ratios: pd.DataFrame) -> dict[str, Any]:
    """The encoded columns of cells, with the speed-up over the CPU on all cores, or over one of several GPUs."""
    labels = [device_label(row["device"], row["device_name"]) for row in records(cells[["device", "device_name"]])]
    over_base = ratios[(ratios["baseline"] == BASELINE) | (ratios["pair"] == GPUS)].drop_duplicates(CELL_AXES)
    over_base = over_base.assign(ahead=np.array([sign_of(row) for row in records(over_base)], dtype=float))
    over_base = over_base.rename(columns=lambda name: name.replace("ratio", "speedup"))
    merged = cells[CELL_AXES].merge(over_base[[*CELL_AXES, *OVER_BASE]], on=CELL_AXES, how="left").fillna({"ahead": 0})
    columns = {name: cells[name] for name in SUMMARIES} | {name: merged[name] for name in OVER_BASE}
    return {name: encoded(plain(values)) for name, values in columns.items()} | {"device_label": encoded(labels)}


OVER_BASE = ["speedup", "speedup_low", "speedup_high", "ahead"]
"""Columns that compare cells with their base; `ahead` is 1 if a cell is significantly faster, -1 if slower, else 0."""


def _repeats(tables: RunTables) -> list[list[float]]:
    """For each cell, the step times in seconds of its ok trials."""

    timed = tables.measurements.dropna(subset=["step_time_s"])
    timed = timed[timed["status"] == "ok"].astype({"step_time_s": float})
    times = timed.groupby(CELL_AXES, dropna=False)["step_time_s"].agg(list).rename("repeats").reset_index()
    merged = tables.cells[CELL_AXES].merge(times, on=CELL_AXES, how="left")["repeats"]
    return [plain(times_s) if isinstance(times_s, list) else [] for times_s in merged]


def _over_cores(cells: pd.DataFrame, ratios: pd.DataFrame) -> dict[int, dict[int, list[Any]]]:
    """The values of OVER_BASE by index of cell and number of CPU cores, for cells compared with several numbers."""
    ratios = ratios.dropna(subset=["baseline_threads"])
    by_cell = {key: rows for key, rows in ratios.groupby(CELL_AXES) if rows["baseline"].nunique() > 1}
    return {
        index: {
            int(row["baseline_threads"]): plain([*(row[f"ratio{end}"] for end in ENDS), sign_of(row)])
            for row in records(by_cell[key])
        }
        for index, key in enumerate(cells[CELL_AXES].itertuples(index=False, name=None))
        if key in by_cell
    }


MOST_FREEDOM = 30


def _jobs(tables: RunTables) -> list[list[Any] | None]:
    """For each cell, mean start-up and step time in seconds, their covariances, and the number of trials.

    The covariances are those of `RunCosts.covariances`; they are None with one trial. A cell without a known start-up
    has None.
    """
    ok = tables.measurements[tables.measurements["status"] == "ok"]
    jobs = {}
    for key, rows in ok.groupby(CELL_AXES, dropna=False):
        job = run_costs(rows)
        if trials := len(job.steps_s):
            covariances = job.covariances() if trials > 1 else [None] * 3
            jobs[key] = plain([job.startup_s, job.step_s, *covariances, trials])
    return [jobs.get(key) for key in tables.cells[CELL_AXES].itertuples(index=False, name=None)]


def _published(study: Study, cells: pd.DataFrame) -> dict[str, Any]:
    crossover = study.published and study.published.crossover
    runs = records(with_places(published_table(study), cells).dropna(subset=["device"]))
    marks: list[dict[str, Any]] = []
    for series in published_series(runs, ["size", "batch_size"]):
        device, hardware = series.runs[0]["device"], series.runs[0]["hardware"]
        colour, shape = published_look(PUBLISHED_COLOURS[device], series.rank)
        marks += [
            {
                "metric": metric,
                "value": value,
                "colour": colour,
                "shape": shape,
                "words": ", ".join(filter(None, [side_word(device), hardware, series.words])),
                "on": {axis: run[axis] for axis in PLACES if axis != "device" and run[axis] is not None},
            }
            for run in series.runs
            for metric, value in _published_values(run, study)
        ]
    return {"crossover": crossover, "marks": marks}


PUBLISHED_AS = {
    "step_time_s": "step_time_s",
    "samples_per_s": "samples_per_s",
    "peak_allocated_bytes": "peak_bytes",
    "device_used_bytes": "device_used_bytes",
}
"""The chart's metric of each published metric."""


def _published_values(run: Mapping[str, Any], study: Study) -> Iterable[tuple[str, float]]:
    """A published run's values by metric of the chart."""
    yield from ((column, run[name]) for name, column in PUBLISHED_AS.items() if run[name] is not None)
    sizes = [run["batch_size"]] if run["batch_size"] else study.batch_sizes
    if run["run_time_s"] is not None and len(sizes) == 1 and (steps := steps_of_run(study.steps_per_run, sizes[0])):
        yield "step_time_s", run["run_time_s"] / steps


def _splits(cells: pd.DataFrame) -> dict[str, Any]:
    shares = [f"{part}_share" for part in SPLIT]
    rows = zip(records(cells[shares]), is_analysed(cells), strict=True)
    shares_of = {
        index: plain(share or 0 for share in row.values()) for index, (row, analysed) in enumerate(rows) if analysed
    }
    return {"words": list(SPLIT.values()), "colours": [SPLIT_COLOURS[part] for part in SPLIT], "cells": shares_of}


def is_analysed(cells: pd.DataFrame) -> pd.Series:
    """Whether each cell's step is split into parts, of which load hides none, and more than 1 % of it is explained."""
    hidden = np.array([is_hidden_by_load(cell) for cell in records(cells[["remedy_flags", "gain"]])], dtype=bool)
    return cells["bottleneck"].notna() & (cells["unexplained_share"].fillna(0) < 0.99) & ~hidden


def _crossovers(tables: RunTables, bases: Mapping[str, str]) -> list[dict[str, Any]]:
    """For each crossover in time, the index of a cell of its series, and the result of `_on_axis` for each x axis.

    `machine` and `product` are of the GPU measured elsewhere, for a crossover with a reference.
    """
    crossovers = tables.crossovers[tables.crossovers["crossover"].notna()]
    in_time = crossovers[crossovers["cost"] == "time"]
    in_time_of_gpus = _of_gpus(in_time, bases)
    elsewhere = in_time[in_time["pair"] == REFERENCE]
    # A crossover with a reference is marked on this machine's CPU.
    elsewhere = elsewhere.assign(
        reference=elsewhere["machine"], machine=elsewhere["baseline_machine"], device=elsewhere["baseline"]
    )
    cells = tables.cells.reset_index(drop=True)
    return [
        {
            "cell": int(rows_with(cells, [*series_axes(row["x_axis"]), "device"], row).index[0]),
            "on": {axis: crossover for axis in SHOWN_OVER[row["x_axis"]] if (crossover := _on_axis(row, axis))},
            **(_of_reference(row) if row["reference"] else {}),
        }
        for row in records(pd.concat([headline_rows(crossovers), in_time_of_gpus, elsewhere]))
    ]


def _of_reference(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"machine": row["reference"], "product": product_family(row["contender_name"])}


SHOWN_OVER: Mapping[str, tuple[str, ...]] = {
    "size": ("size", "parameters"),
    "parameters": ("size", "parameters"),
    "batch_size": ("batch_size",),
    CPU_THREADS: (CPU_THREADS,),
}
"""The axes of the chart on which a crossover can be marked, by the axis along which it was computed."""


def _on_axis(row: Mapping[str, Any], axis: str) -> list[Any] | None:
    """A crossover on an axis: its value, the ends of its interval or bracket, and a text; None if these are unknown.

    A crossover with a reference has no value here, since the chart shows it as a range.
    """
    column = f"crossover_{axis}" if X_AXES[axis] == "size" else "crossover"
    value, low, high = (row[f"{column}{end}"] for end in ENDS)
    if low is None and high is None:
        low, high = (row[f"bracket_{end}"] if row["x_axis"] == axis else None for end in ("low", "high"))
    unit = axis_label({**row, "x_axis": axis})
    if row["pair"] == REFERENCE:
        is_range = low is not None and high is not None
        return [None, *plain([low, high]), interval_text([low, high], unit)] if is_range else None
    if value is None:
        return None
    words = amount_text(value, unit)
    if low is not None and high is not None:
        words += f" ({interval_text([low, high], unit)})"
    return [*plain([value, low, high]), words]

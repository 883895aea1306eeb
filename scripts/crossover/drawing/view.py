"""A study's data prepared for its figures (`StudyView`), and the description of a kind of figure (`Kind`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from crossover.config.published_rows import AXES_OF_RESULTS, COUNTS, METRICS, PLACES, TEXTS
from crossover.config.study import Epochs, Study, steps_of_run
from crossover.config.words import (
    BASELINE,
    CPU_THREADS,
    DEVICES,
    HALF,
    X_AXES,
    is_cpu,
    ranks_of_side,
    series_axes,
    threads_of_side,
)
from crossover.drawing.style import wrapped
from crossover.tables.frames import (
    LISTED,
    first_row,
    headline_rows,
    on_all_cores,
    records,
    rows_with,
    with_ok_times,
    with_x,
    with_x_axes,
)
from crossover.tables.labels import axis_label, device_label, name_by, short_name, side_word, varying
from crossover.tables.run_tables import RunTables
from crossover.text import with_noun

NOTE_LETTERS = 70

MOST_SERIES = 8
"""Maximum number of series in a figure."""
MOST_NAMED = 40
"""Maximum number of names of series that a figure leaves out."""
FOOT_LETTERS, FOOT_POINTS, FOOT_ROW_IN = 130, 8, 0.14

ALL_TOGETHER = "all comparisons of the study"
"""In captions, for which the page gives their number."""
EACH_ALONE = f"Each interval is 95 % on its own; sentences are corrected for {ALL_TOGETHER}."

SAME_PLACE = ("size", "parameters")
"""Columns of which one determines the other, within a workload and variant."""

PUBLISHED_COLUMNS = (*PLACES, *TEXTS, *METRICS)


@dataclass(frozen=True)
class StudyView:
    """A study's file and tables. Column `x` of trials, cells and ratios is their position on the x axis."""

    study: Study
    tables: RunTables
    published: pd.DataFrame
    """The published runs, from `published_table`. Column `x` is their position on the x axis, NaN if not known."""
    sides: RunTables
    """The tables in which each number of cores is a device, also if the x axis is the number of cores."""
    currency: str | None = None

    @property
    def x_axis(self) -> str:
        return self.study.x_axis

    @property
    def cells(self) -> pd.DataFrame:
        return self.tables.cells

    @property
    def has_several_machines(self) -> bool:
        return self.cells["machine"].nunique() > 1

    @property
    def has_fewer_cores(self) -> bool:
        """Whether the CPU was also timed on fewer than all cores."""
        return len(on_all_cores(self.cells)) < len(self.cells)

    @property
    def epochs(self) -> int:
        run = self.study.steps_per_run
        return run.epochs if isinstance(run, Epochs) else 1

    def run_steps(self, batch_size: int) -> int | None:
        """Steps of the study's run at a batch size. None without a run; figures then show the time of a step."""
        return steps_of_run(self.study.steps_per_run, batch_size)

    def time_label(self) -> str:
        run = self.study.steps_per_run
        if run is None:
            return "time per step"
        count, unit = (run.epochs, "epoch") if isinstance(run, Epochs) else (run, "step")
        return f"time for {with_noun(count, unit)} in s\n(measured step time × steps)"

    def x_label(self) -> str:
        return axis_label({**first_row(self.cells), "x_axis": self.x_axis})

    @property
    def has_short_names(self) -> bool:
        """Whether the names of lines omit the device's product name, since they also contain other axes."""
        return self.has_fewer_cores or bool(varying(self.cells, ["machine", "variant", "precision"]))

    def x_label_with_devices(self) -> str:
        """The label of the x axis, with the devices' product names below it if the names of lines omit them."""
        if not self.has_short_names:
            return self.x_label()
        devices = on_all_cores(self.cells).dropna(subset=["device_name"]).drop_duplicates(["machine", "device"])
        names = [f"{side_word(row['device'])}: {short_name(row['device_name'])}" for row in records(devices)]
        if self.has_several_machines:
            names = [f"{machine}, {name}" for machine, name in zip(devices["machine"], names, strict=True)]
        return f"{self.x_label()}\n{wrapped('; '.join(names), NOTE_LETTERS)}"

    def on_all_cores(self) -> StudyView:
        """This view without trials and cells of the CPU on fewer than all cores, for figures with a mark per cell."""
        tables = {name: on_all_cores(getattr(self.sides, name)) for name in ("measurements", "cells", "latencies")}
        return replace(self, tables=replace(self.tables, **tables))

    def along_x(self) -> StudyView:
        """This view for figures over the x axis: on all cores, unless the x axis is the number of cores."""
        return self if self.x_axis == CPU_THREADS else self.on_all_cores()

    def memory_column(self, device: str) -> str:
        """The column drawn as a device's memory; for a GPU, all memory in use if published runs give only that."""
        if device == BASELINE:
            return "rss_growth_bytes"
        has_values = self.published.notna().any()
        only_all_in_use = has_values["device_used_bytes"] and not has_values["peak_allocated_bytes"]
        return "device_used_bytes" if only_all_in_use else "peak_allocated_bytes"

    def device_title(self, device: str) -> str:
        """A device, with its product name if that is the same on all machines."""
        names = self.cells.loc[self.cells["device"] == device, "device_name"].dropna().unique()
        return device_label(device, str(names[0]) if len(names) == 1 else None)

    def published_on(self, line: Mapping[str, Any], *needed: str) -> list[dict[str, Any]]:
        """The published runs that match a line as in `on_line` and have the needed values."""
        return records(on_line(self.published, line, self.x_axis).dropna(subset=list(needed)))

    def published_time_s(self, run: Mapping[str, Any], cell: Mapping[str, Any]) -> float | None:
        """The published time of the study's run or, if it has none, of a step; from a step's time or rate if needed."""
        batch_size = run["batch_size"] or cell["batch_size"]
        steps = None if batch_size is None else self.run_steps(int(batch_size))
        if steps is not None and run["run_time_s"] is not None:
            return float(run["run_time_s"])
        step_time_s = run["step_time_s"]
        if step_time_s is None and batch_size is not None and run["samples_per_s"]:
            step_time_s = batch_size / run["samples_per_s"]
        return None if step_time_s is None else float(step_time_s) * (steps or 1)


@dataclass(frozen=True)
class Kind:
    """A kind of figure."""

    caption: str
    draw_view: Callable[[StudyView], Figure]
    applies: Callable[[RunTables], bool] = lambda _: True
    """Whether a study's tables have data for this kind."""
    series: Callable[[str], list[str]] = series_axes
    """The axes that identify a series of the figure, by the study's x axis."""
    is_in_chart: bool = False
    """Whether the page's chart shows the same, so that the page needs no picture."""

    def draw(self, view: StudyView) -> Figure:
        """The figure with the study's first MOST_SERIES series, and the names of the others below it."""
        shown, left_out = first_series(view, self.series(view.x_axis))
        figure = self.draw_view(shown)
        if left_out and figure.axes:
            _name_left_out(figure, left_out)
        return figure


def first_series(view: StudyView, axes: Sequence[str]) -> tuple[StudyView, list[str]]:
    """The view with the first MOST_SERIES series, which `axes` identify, and the names of the others.

    Rows about other machines, which have no cells here, belong to the series with the same other axes.
    """
    series = view.cells[list(axes)].drop_duplicates()
    if len(series) <= MOST_SERIES:
        return view, []
    shown, others = series.head(MOST_SERIES), series.iloc[MOST_SERIES:]
    here = set(view.cells["machine"])

    def kept(table: pd.DataFrame) -> pd.DataFrame:
        given = [axis for axis in axes if axis in table]
        on_axes = [axis for axis in given if axis != "machine"]
        is_shown = _among(table, given, shown)
        if "machine" in given:
            is_shown |= ~table["machine"].isin(here).to_numpy(bool) & _among(table, on_axes, shown)
        return table[is_shown]

    def reduced(tables: RunTables) -> RunTables:
        return replace(tables, **{name: kept(getattr(tables, name)) for name in _TABLES_OF_SERIES})

    named = varying(series, axes)
    cells = view.cells.loc[others.index]
    names = [name_by(row, named) for row in records(cells)]
    return replace(view, tables=reduced(view.tables), sides=reduced(view.sides)), names


_TABLES_OF_SERIES = (
    *("measurements", "cells", "reference_cells", "predicted_cells", "searched_cells"),
    *("ratios", "crossovers", "machines", "latencies"),
)


def _among(table: pd.DataFrame, axes: Sequence[str], series: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row of a table belongs to one of these series."""
    known = set(series[list(axes)].itertuples(index=False, name=None))
    return np.array([key in known for key in table[list(axes)].itertuples(index=False, name=None)], dtype=bool)


def _name_left_out(figure: Figure, names: Sequence[str]) -> None:
    more = [f"{len(names) - MOST_NAMED:,} more in the table of cells"] if len(names) > MOST_NAMED else []
    words = wrapped(f"Not shown: {'; '.join([*names[:MOST_NAMED], *more])}", FOOT_LETTERS)
    figure.supxlabel(words, x=0.01, ha="left", fontsize=FOOT_POINTS)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + FOOT_ROW_IN * (1 + words.count("\n")))


def study_view(tables: RunTables, study: Study, name: str, currency: str | None = None) -> StudyView:
    """The view of one study."""
    tables = tables.of_study(name)
    study = with_x_axes({name: study}, tables.cells)[name]
    headlines = pd.concat([headline_rows(tables.crossovers), _over_second_axis(tables)])

    sides = replace(
        tables,
        measurements=with_x(with_ok_times(tables.measurements), study.x_axis),
        cells=with_x(_in_grid_order(tables.cells, study), study.x_axis),
        reference_cells=with_x(tables.reference_cells, study.x_axis),
        predicted_cells=with_x(tables.predicted_cells, study.x_axis),
        ratios=with_x(_in_grid_order(tables.ratios, study), study.x_axis),
        crossovers=headlines[headlines["status"].isin(["bracketed", "reversed"])],
    )
    tables = sides
    if study.x_axis == CPU_THREADS:
        names = ("measurements", "cells", "reference_cells", "predicted_cells", "ratios")
        tables = replace(sides, **{name: _over_threads(getattr(sides, name)) for name in names})
    published = with_places(published_table(study), tables.cells)
    x = published[study.x_axis] if study.x_axis in PLACES else math.nan
    return StudyView(study, tables, published.assign(x=x).astype({"x": float}), sides, currency)


def _over_second_axis(tables: RunTables) -> pd.DataFrame:
    """The crossovers over the second axis, with the CPU's number of threads in column `baseline_threads`."""
    threads_of = dict(zip(tables.ratios["baseline"], tables.ratios["baseline_threads"], strict=True))
    second = tables.crossovers[tables.crossovers["second_axis"].astype(bool)]
    return second.assign(baseline_threads=second["baseline"].map(threads_of), baseline=BASELINE)


def _over_threads(rows: pd.DataFrame) -> pd.DataFrame:
    """Name the CPU `cpu` on any number of cores; repeat an accelerator's rows at each number of threads."""
    if "baseline" in rows:
        return rows.assign(baseline=[BASELINE if is_cpu(str(side)) else side for side in rows["baseline"]])
    accelerated = ~rows["device"].map(is_cpu).astype(bool)
    cpu = rows[~accelerated].assign(device=BASELINE)
    constant = rows[accelerated].drop(columns="x").merge(cpu[["x"]].dropna().drop_duplicates(), how="cross")
    return pd.concat([cpu, constant]).sort_values("x", kind="stable")


def published_table(study: Study) -> pd.DataFrame:
    """The rows of a study's published results, with metrics in SI units.

    A missing value is None in texts, NA in counts and NaN in metrics.
    """
    rows = study.published.rows if study.published else ()
    table = pd.DataFrame(
        [{**dict.fromkeys(PUBLISHED_COLUMNS), **row} for row in rows], columns=list(PUBLISHED_COLUMNS), dtype=object
    )
    return table.astype({**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(METRICS, "float64")})


def with_places(published: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Published runs with the number of parameters of the size that they state, or the other way round, as in cells."""
    published, counted = published.copy(), cells.dropna(subset=["parameters"])
    for index, run in zip(published.index, records(published), strict=True):
        stated = [axis for axis in SAME_PLACE if run[axis] is not None]
        if len(stated) == 1:
            same = rows_with(counted, [axis for axis in (*stated, "variant") if run[axis] is not None], run)
            (missing,) = set(SAME_PLACE) - {*stated}
            if same[missing].nunique() == 1:
                published.loc[index, missing] = int(same[missing].iloc[0])
    return published


def on_line(published: pd.DataFrame, line: Mapping[str, Any], x_axis: str) -> pd.DataFrame:
    """The published runs that match a line on every axis they state, other than the x axis and the device."""
    fits = pd.Series(True, published.index)
    along_x = SAME_PLACE if X_AXES[x_axis] == "size" else (x_axis,)
    for axis in PLACES:
        if axis in line and axis not in (*along_x, "device"):
            fits &= (published[axis].isna() | (published[axis] == line[axis])).fillna(False).astype(bool)
    return published[fits]


@dataclass(frozen=True)
class PublishedSeries:
    """Published runs that share a marker and a legend entry."""

    runs: Sequence[Mapping[str, Any]]
    words: str
    """What else distinguishes the series, for the legend."""
    rank: int
    """Index among the series of the same device, from 0."""


def published_series(
    runs: Sequence[Mapping[str, Any]], x: Sequence[str], named: Sequence[str] = ("device", "hardware")
) -> list[PublishedSeries]:
    """Group published runs into series.

    The runs of a series agree in the axes `named`, and in each further axis (or the label) that distinguishes runs with
    the same `x`. Otherwise labels may differ within a series, since a source may label each size.
    """
    if not runs:
        return []
    table, keys = pd.DataFrame(runs, dtype=object), list(named)
    for axis in (*AXES_OF_RESULTS, "label"):
        if axis not in (*keys, *x):
            values = table.groupby([*keys, *x], dropna=False)[axis].nunique(dropna=False)
            keys += [axis] * bool((values > 1).any())
    series, ranks = [], Counter[str | None]()
    for _, group in table.groupby(keys, dropna=False, sort=False):
        rows = records(group)
        device, further = rows[0]["device"], keys[len(named) :]
        words = [name_by(rows[0], [key for key in further if key != "label"])]
        words += [rows[0]["label"]] if "label" in further else []
        series.append(PublishedSeries(rows, ", ".join(filter(None, words)), ranks[device]))
        ranks[device] += 1
    return series


def _in_grid_order(rows: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Sort rows by size, then by the other axes in the order of the study's file, the CPU first."""
    listed = {axis: list(getattr(study, f"{axis}s")) for axis in LISTED}
    listed["device"] = sorted(rows["device"].dropna().unique(), key=_device_rank)
    ranks = {axis: {value: rank for rank, value in enumerate(values)} for axis, values in listed.items()}
    return rows.sort_values(
        ["size", *ranks],
        key=lambda column: column.map(ranks[str(column.name)]).astype(float) if column.name in ranks else column,
    )


def _device_rank(device: str) -> tuple[int, int, float]:
    threads = threads_of_side(device)
    number = threads if isinstance(threads, int) else 0.5 * (threads == HALF)
    return DEVICES.index(device.partition("-")[0]), ranks_of_side(device), number

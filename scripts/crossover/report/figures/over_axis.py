"""Figures of a metric over size or another axis, with one line per device and setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, StrMethodFormatter

from crossover.compare.intervals import ENDS
from crossover.compare.pairings import REFERENCE
from crossover.config.words import BASELINE, series_axes
from crossover.drawing.panels import (
    BY_DEVICE,
    BY_EXECUTION,
    Line,
    Look,
    Panel,
    arrange,
    column,
    draw_level,
    draw_panels,
    include_y,
    line_of,
    looks_of,
    mark_published_crossover,
    plot_published,
    ratio_line,
    with_ringed_maximum,
)
from crossover.drawing.style import (
    INK,
    PUBLISHED_COLOURS,
    SECONDS,
    log_ticks,
    published_look,
    side_look,
    worded,
)
from crossover.drawing.view import EACH_ALONE, Kind, StudyView, published_series
from crossover.tables.frames import first_row, records, rows_with
from crossover.tables.labels import device_label, name_by, short_name, side_word, varying
from crossover.tables.reference_files import facts_of
from crossover.tables.registry import SEARCH_AXES
from crossover.text import money_text, number_text, place_text, rate_text, shortened, with_unit

PLAIN, TIMES_AS_FAST = StrMethodFormatter("{x:,g}"), StrMethodFormatter("{x:,g}×")


MOST_DOTTED = 3
"""Maximum number of lines in a panel for trials to be drawn as dots."""


BY_BATCH = (["device", "workload", "protocol", "size"], ["precision", "execution", "variant", "machine"])


def _draw_times(view: StudyView) -> Figure:
    axes = [*series_axes(view.x_axis), "device"]
    fixed_axis = "size" if view.x_axis == "batch_size" else "batch_size"
    lines = view.cells.groupby(["protocol", fixed_axis, "execution"])[["precision", "device"]].nunique()
    dotted = bool((lines.prod(axis=1) <= MOST_DOTTED).all()) and not view.has_several_machines

    def make_line(cells: pd.DataFrame, name: str, look: Look) -> Line | None:
        first = first_row(cells)
        scale = view.run_steps(first["batch_size"]) or 1
        trials = rows_with(view.tables.measurements, axes, first).dropna(subset=["step_time_s"])
        dots = (column(trials, "x"), column(trials, "step_time_s") * scale) if dotted else None
        return line_of("step_time_s", cells, name, look, scale, dots)

    def decorate(cells: pd.DataFrame, axes: Axes) -> None:
        _mark_crossovers(axes, view, cells)
        mark_published_crossover(axes, view)
        _draw_published_times(axes, view, cells)
        _draw_reference_times(axes, view, cells)

    panels = arrange(view, view.cells, make_line, decorate=decorate)
    ticks = SECONDS if view.study.steps_per_run is None else PLAIN
    return draw_panels(view, panels, view.time_label(), ticks, x_label=view.x_label_with_devices())


def _mark_crossovers(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    looks = looks_of(view.cells, ["precision", "variant", "machine"])
    varied = [axis for axis in ("machine", "variant", "precision") if view.cells[axis].nunique() > 1]
    series = cells[series_axes(view.x_axis)].drop_duplicates()
    for row in records(view.tables.crossovers.merge(series)):
        colour = looks(row).colour if varied else INK
        low, high = row["crossover_low"], row["crossover_high"]
        words = f"crossover {place_text(row['crossover'], view.x_label())}"
        if low is not None and high is not None:
            words += f" ({' to '.join(place_text(end, view.x_label()) for end in (low, high))})"
            axes.axvspan(low, high, color=colour, alpha=0.1, linewidth=0, zorder=0)
        if varied:
            words = f"{words}, {name_by(row, varied)}"
        axes.axvline(row["crossover"], color=colour, linewidth=1.2, zorder=2, label=words)


def _draw_published_times(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    first = first_row(cells)
    runs = [run | {"time_s": view.published_time_s(run, first)} for run in view.published_on(first, "device")]
    timed = [run for run in runs if run["time_s"] is not None]
    for series in published_series([run for run in timed if run["x"] is not None], ["x"]):
        device, hardware = series.runs[0]["device"], series.runs[0]["hardware"]
        colour, marker = published_look(PUBLISHED_COLOURS[device], series.rank)
        include_y(axes, [run["time_s"] for run in series.runs])
        axes.plot(
            [run["x"] for run in series.runs],
            [run["time_s"] for run in series.runs],
            color=colour,
            linestyle=":",
            linewidth=1,
            marker=marker,
            markersize=6,
            fillstyle="none",
            zorder=2,
            label=f"published: {', '.join(filter(None, [device_label(device, hardware), series.words]))}",
        )
    if lost := [run for run in timed if run["x"] is None]:
        axes.plot([], [], linestyle="", label=f"not drawn: published {_why_without_place(view, lost)}")


def _why_without_place(view: StudyView, runs: Sequence[Mapping[str, Any]]) -> str:
    sizes = sorted({run["size"] for run in runs if run["size"] is not None})
    if view.x_axis == "parameters" and sizes:
        places = with_unit(shortened([f"{size:,}" for size in sizes]), view.cells["size_name"].iloc[0])
        return f"at {places}, whose parameters are not known without a measurement"
    return f"without a number of {view.x_label()}"


ELSEWHERE, ESTIMATED = "measured elsewhere", "estimated beside this CPU"


def _draw_reference_times(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    shared = [axis for axis in series_axes(view.x_axis) if axis != "machine"]
    rows = view.tables.cells_elsewhere.merge(cells[shared].drop_duplicates(), on=shared).dropna(subset=["step_time_s"])
    named = [axis for axis in varying(view.cells, shared) if axis in ("precision", "variant")]
    source = ESTIMATED if len(view.tables.predicted_cells) else ELSEWHERE
    for _, line in rows.sort_values("x").groupby([*shared, "machine", "device"], sort=False):
        first = first_row(line)
        colour, scale = side_look(first["device"])[0], view.run_steps(first["batch_size"]) or 1
        times_s, low_s, high_s = (column(line, f"step_time{end}_s") * scale for end in ENDS)
        include_y(axes, times_s.tolist())
        axes.fill_between(line["x"], low_s, high_s, color=colour, alpha=0.12, linewidth=0, zorder=1)
        words = filter(None, [device_label(first["device"], first["device_name"]), name_by(first, named)])
        axes.plot(
            line["x"],
            times_s,
            color=colour,
            linestyle="--",
            linewidth=1,
            zorder=2,
            label=f"{source} ({first['machine']}): {', '.join(words)}",
        )


def _compared_with_cpu(ratios: pd.DataFrame) -> pd.DataFrame:
    """Speed-ups of accelerators over their host's CPU, and of references' over this machine's CPU."""
    over_host = (ratios["pair"] == "device") & (ratios["baseline_machine"] == ratios["machine"])
    over_this_cpu = (ratios["pair"] == REFERENCE) & (ratios["contender"] == ratios["device"])
    return pd.concat([ratios[over_host], ratios[over_this_cpu]])


def _draw_speedups(view: StudyView) -> Figure:
    ratios = _compared_with_cpu(view.tables.ratios)
    references = facts_of(view.tables.reference_cells)
    has_several_baselines = ratios["baseline"].nunique() > 1
    looks = looks_of(view.cells, BY_EXECUTION[1])

    def make_line(rows: pd.DataFrame, name: str, look: Look) -> Line:
        first = first_row(rows)
        baseline, host = first["baseline"], ""
        if first["pair"] == REFERENCE:
            gpu = f"{ESTIMATED} ({first['machine']}): {short_name(references[first['machine']].device_name)}"
            side_names = 2 if view.has_several_machines else 1
            name = ", ".join([gpu, *name.split(", ")[side_names:]])
            host = f" of {first['baseline_machine']}" if view.has_several_machines else ""
            look = replace(looks({**first, "machine": first["baseline_machine"]}), dashes="--")
        if has_several_baselines or host:
            name = f"{name} over the {side_word(baseline)}{host}"
        dashes = look.dashes if baseline == BASELINE else side_look(baseline)[1]
        return ratio_line(view, rows, name, replace(look, dashes=dashes))

    def decorate(_: pd.DataFrame, axes: Axes) -> None:
        draw_level(axes, "equally fast")
        mark_published_crossover(axes, view)

    per_panel, per_line = BY_EXECUTION
    panels = arrange(view, ratios, make_line, (per_panel, [*per_line, "baseline", "baseline_machine"]), decorate)
    return draw_panels(view, panels, "speed-up over the CPU", TIMES_AS_FAST, x_label=view.x_label_with_devices())


def _draw_precisions(view: StudyView) -> Figure:
    view = view.along_x()
    ratios = view.tables.ratios[view.tables.ratios["pair"] == "settings"]
    baseline = ratios["baseline"].iloc[0] if len(ratios) else ""

    def decorate(_: pd.DataFrame, axes: Axes) -> None:
        draw_level(axes, f"as fast as {baseline}")

    panels = arrange(view, ratios, partial(ratio_line, view), BY_DEVICE, decorate)
    return draw_panels(view, panels, f"speed-up over {baseline}", TIMES_AS_FAST)


def _draw_utilisation(view: StudyView) -> Figure:
    view = view.along_x()

    def make_line(cells: pd.DataFrame, name: str, look: Look) -> Line | None:
        counted = cells.dropna(subset=["achieved_tflops", "x"])

        def words(highest: int) -> str:
            rate, share = counted["achieved_tflops"].iloc[highest], counted["peak_share"].iloc[highest]
            return f"{number_text(rate)} TFLOP/s" + ("" if pd.isna(share) else f", {100 * share:.0f} % of matmul")

        return with_ringed_maximum(line_of("achieved_tflops", cells, name, look), words)

    panels = arrange(view, view.cells, make_line)
    return draw_panels(view, panels, "achieved TFLOP/s", PLAIN, x_label=view.x_label_with_devices())


def _draw_energy(view: StudyView) -> Figure:
    view = view.along_x()

    def panels_of(title: str, column: str) -> list[Panel]:
        panels = arrange(view, view.cells, partial(line_of, column)) if view.cells[column].notna().any() else []
        return [replace(panel, title=", ".join(filter(None, [title, panel.title]))) for panel in panels]

    def as_money(axes: Axes) -> None:
        axes.set_ylabel(f"{view.currency or 'money'} for\na million steps")
        log_ticks(axes.yaxis, worded(money_text))

    money = [replace(panel, finish=as_money) for panel in panels_of("money", "price_per_million_steps")]
    panels = [*panels_of("energy", "energy_per_step_j"), *money]
    nothing = "No energy was measured (it needs effort.timed_min_s of at least 10), and the config has no prices."
    x_label = view.x_label_with_devices()
    return draw_panels(view, panels, "energy of a step", EngFormatter("J"), nothing=nothing, x_label=x_label)


def _draw_throughput(view: StudyView) -> Figure:
    cells = view.on_all_cores().cells
    cells = cells.assign(x=cells["batch_size"].astype(float)).sort_values("x", kind="stable")
    batches = {float(batch): f"{batch:,}" for batch in cells["batch_size"].unique()}

    def make_line(line: pd.DataFrame, name: str, look: Look) -> Line | None:
        timed = line.dropna(subset=["samples_per_s"])

        def words(highest: int) -> str:
            cell = first_row(timed.iloc[[highest]])
            largest = [f"largest batch: {row['largest_batch']:,}" for row in _timed_searches(view, line)]
            return "\n".join([f"best: {rate_text(cell['samples_per_s'])} at batch {cell['batch_size']:,}", *largest])

        return with_ringed_maximum(line_of("samples_per_s", line.assign(size=line["batch_size"]), name, look), words)

    def decorate(panel: pd.DataFrame, axes: Axes) -> None:
        _draw_largest_batches(axes, view, panel)
        first = first_row(panel)
        runs = view.published_on({}, "batch_size", "samples_per_s")
        matching = [run for run in runs if all(run[axis] in (None, first[axis]) for axis in ("device", "size"))]
        plot_published(axes, matching, "batch_size", "samples_per_s")

    panels = arrange(view, cells, make_line, BY_BATCH, decorate)
    rate = EngFormatter(sep="")
    names = cells["sample_name"].dropna().unique()
    label = f"{names[0] if len(names) == 1 else 'samples'} per second"
    return draw_panels(view, panels, label, rate, x_label="batch size", x_words=batches)


def _timed_searches(view: StudyView, cells: pd.DataFrame) -> list[dict[str, Any]]:
    """The searches for the largest batch, in the series of these cells, that timed the batch they found."""
    searches = view.tables.searched_cells.dropna(subset=["largest_batch", "throughput_samples_per_s"])
    return records(searches.merge(cells[SEARCH_AXES].drop_duplicates()))


def _draw_largest_batches(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    looks = looks_of(view.cells, BY_BATCH[1])
    searches = _timed_searches(view, cells)
    include_y(axes, [row["throughput_samples_per_s"] for row in searches])
    for row in searches:
        point = ([row["largest_batch"]], [row["throughput_samples_per_s"]])
        axes.plot(*point, "s", color=looks(row).colour, markerfacecolor="none", markersize=9, markeredgewidth=1.6)


TIMES = Kind(
    "Time, both axes logarithmic. Points: cells, with their 95 % interval over trials. Dots: trials. Hollow: sizes "
    "that refinement added. Vertical line: the crossover, with its 95 % interval. Grey, or dotted and hollow: "
    "published. Dashed: a GPU measured elsewhere; without a GPU here, as estimated beside this CPU, with its 95 % "
    "interval. Cross: a cell without a result.",
    _draw_times,
    is_in_chart=True,
)


SPEEDUPS = Kind(
    "Speed-up over the host's CPU, with the 95 % interval over trials; above 1 the accelerator is faster. Hollow: "
    "sizes that refinement added. Grey: published crossover. Dashed: GPUs measured elsewhere, as estimated beside this "
    f"CPU. {EACH_ALONE}",
    _draw_speedups,
    lambda tables: not _compared_with_cpu(tables.ratios).empty,
    is_in_chart=True,
)


PRECISIONS = Kind(
    "Speed-up over the baseline precision and execution on the same device, with the 95 % interval over trials. "
    f"Hollow: sizes that refinement added. {EACH_ALONE}",
    _draw_precisions,
    lambda tables: bool((tables.ratios["pair"] == "settings").any()),
)


UTILISATION = Kind(
    "Floating-point operations that a step achieves per second, with the 95 % interval over trials. Hollow: sizes "
    "that refinement added. Ring: the maximum of a line, also as a share of the measured rate of matrix products on "
    "the device in the same precision.",
    _draw_utilisation,
    is_in_chart=True,
)


ENERGY = Kind(
    "Energy of a step by the device's counter, and price of a million steps at the config's prices. Both have the 95 "
    "% interval over trials.",
    _draw_energy,
    lambda tables: bool(tables.cells[["energy_per_step_j", "price_per_million_steps"]].notna().any(axis=None)),
)


THROUGHPUT = Kind(
    "Samples per second over batch size, both axes logarithmic, with the 95 % interval over trials. Ring: the maximum "
    "of a line. Hollow square: the largest batch that fits, if searched for, timed in one process. Grey: published, "
    "on the hardware named. Cross: a batch size without a result.",
    _draw_throughput,
    series=lambda _: series_axes("batch_size"),
    is_in_chart=True,
)

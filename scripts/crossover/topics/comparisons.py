"""Answers of studies without crossovers: step times, throughput, the fastest setting, and GPU over CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from crossover.compare.cells import cell_key
from crossover.compare.choices import choose, fastest
from crossover.compare.intervals import (
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SampleMean,
    columns_of,
    interval_of,
    ratio_of,
    time_over_trials,
)
from crossover.config.study import Study
from crossover.config.words import BASELINE, CPU_THREADS, DEVICES, series_axes
from crossover.tables.frames import first_row, on_all_cores, records, rows_with, with_x
from crossover.tables.labels import NAMED_AXES, name_by, place_on, side_word, varying
from crossover.tables.registry import CELL_AXES, SERIES_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import cores_text, rate_text, seconds_text
from crossover.topics.answer import Answer, Comparison, Ranged
from crossover.topics.caveats import BASELINE_AXES, basis, compared_ratio
from crossover.topics.latency.answers import latency_answers
from crossover.topics.loading import loading_answers
from crossover.topics.wording import capitalised, confidence_text, span_text


@dataclass(frozen=True, kw_only=True)
class Ratio(Comparison):
    """The speed-up of an accelerator over its host's CPU, or of the CPU over it."""

    kind = "ratio"

    winner_s: float
    loser_s: float

    def sentence_on(self, alike: Sequence[Self]) -> str:
        return capitalised(self.in_time(alike))

    def details(self) -> list[str]:
        return [*super().details(), f"a step takes {seconds_text(self.winner_s)} and {seconds_text(self.loser_s)}"]


@dataclass(frozen=True, kw_only=True)
class Setting(Comparison):
    """The speed-up of a device's fastest setting over its baseline setting."""

    kind = "setting"
    in_sentence = ("winner", "loser", "place")

    place: str

    def sentence_on(self, alike: Sequence[Self]) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.device}: {self.in_time(alike, where=where)}"


@dataclass(frozen=True, kw_only=True)
class Throughput(Ranged):
    """The highest throughput of a device."""

    kind = "throughput"
    statuses = ("best", INCONCLUSIVE, SINGLE_TRIAL)
    differences = ("best",)
    in_sentence = ("place",)

    samples_per_s: float
    samples_per_s_low: float | None
    samples_per_s_high: float | None
    place: str

    def sentence_on(self, alike: Sequence[Self]) -> str:
        rates = span_text([answer.samples_per_s for answer in alike], rate_text)
        significance = "; not significantly more than other cells" if self.status == INCONCLUSIVE else ""
        return f"{self.device} at best {rates}, at {self.place}{significance}"

    def details(self) -> list[str]:
        return confidence_text(self.samples_per_s_low, self.samples_per_s_high, "samples/s")


@dataclass(frozen=True, kw_only=True)
class StepTime(Ranged):
    kind = "step_time"
    in_sentence = ("place",)

    step_time_s: float
    step_time_low_s: float | None
    step_time_high_s: float | None
    place: str

    def sentence_on(self, alike: Sequence[Self]) -> str:
        times = span_text([answer.step_time_s for answer in alike], seconds_text)
        return f"{self.device} takes {times} per step{f' at {self.place}' if self.place else ''}"

    def details(self) -> list[str]:
        return confidence_text(self.step_time_low_s, self.step_time_high_s, "s")


def comparison_answers(tables: RunTables, study: Study, together: int) -> list[Answer]:
    """The answers of a study without crossovers; `together` is its number of comparisons."""
    loading, ratios = loading_answers(tables, together), _ratios(tables, together)
    main: Sequence[Answer]
    if "latency" in study.figures:
        main = latency_answers(tables)
    elif "throughput" in study.figures:
        main = _for_each_device(tables.cells, lambda cells: _highest_throughput(cells, tables.measurements, together))
    elif loading or _has_one_cell_per_device(tables.cells):
        main = []
    else:
        main = _for_each_device(tables.cells, lambda cells: _fastest_setting(cells, tables.measurements, together))
    answers = [replace(answer, main=True) for answer in main] + [replace(answer, main=not main) for answer in loading]
    return answers + [replace(answer, main=not answers) for answer in ratios]


def _has_one_cell_per_device(cells: pd.DataFrame) -> bool:
    """Whether the CPU and an accelerator have a time, and no device of a machine has several timed cells."""
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    counts = timed.groupby(["machine", "device"]).size()
    return BASELINE in set(timed["device"]) and timed["device"].nunique() > 1 and bool((counts == 1).all())


def _for_each_device(cells: pd.DataFrame, answer: Callable[[pd.DataFrame], Answer]) -> list[Answer]:
    timed = on_all_cores(cells).dropna(subset=["step_time_s"])
    answers = []
    for machine, machine_cells in timed.groupby("machine", sort=False):
        series = machine if timed["machine"].nunique() > 1 else ""
        for device in DEVICES:
            device_cells = machine_cells[machine_cells["device"] == device]
            if len(device_cells):
                about: dict[str, Any] = {"machine": str(machine), "series": str(series), "device": side_word(device)}
                answers.append(replace(answer(device_cells), **about))
    return answers


def _highest_throughput(cells: pd.DataFrame, measurements: pd.DataFrame, together: int) -> Throughput:
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
    return Throughput(
        status=status,
        **columns_of(rate, "samples_per_s{}"),
        place=name_by(cell, ["batch_size", *named]),
        **basis(cell["trials"], pd.DataFrame([cell])),
    )


def _times_per_sample(cell: dict[str, Any], measurements: pd.DataFrame) -> list[float]:
    samples = float(cell["samples_per_s"] * cell["step_time_s"])
    trials = rows_with(measurements, CELL_AXES, cell)
    ok = trials[trials["status"] == "ok"]
    return [float(time) / samples for time in ok["step_time_s"].dropna()]


def _fastest_setting(cells: pd.DataFrame, measurements: pd.DataFrame, together: int) -> Answer:
    """The speed-up per sample of the fastest setting over the baseline setting, at the largest size."""
    at_largest = cells[cells["size"] == cells["size"].max()]
    rows = records(at_largest)
    at_size = name_by(rows[0], ["size"] if cells["size"].nunique() > 1 else [])
    if len(rows) == 1:
        return _step_time(rows[0], at_size)
    plain = [index for index, cell in enumerate(rows) if BASELINE_AXES.items() <= cell.items()]
    times = [SampleMean.of_times(_times_per_sample(cell, measurements)) for cell in rows]
    choice = choose(times, plain[-1] if plain else None, together)
    best, baseline = rows[choice.chosen], rows[choice.baseline]
    named = [axis for axis in varying(at_largest, NAMED_AXES) if axis != "machine"]
    return Setting(
        **compared_ratio(choice.ratio),
        winner=name_by(best, named),
        loser=name_by(baseline, named),
        place=at_size,
        **basis(min(best["trials"], baseline["trials"]), pd.DataFrame([best, baseline])),
    )


def _step_time(cell: Mapping[str, Any], place: str, device: str | None = None) -> StepTime:
    return StepTime(
        machine=cell["machine"],
        device=device or side_word(cell["device"]),
        **columns_of(interval_of(cell, "step_time{}_s"), "step_time{}_s"),
        place=place,
        **basis(cell["trials"], pd.DataFrame([cell])),
    )


def cpu_answers(tables: RunTables, x_axis: str) -> list[StepTime]:
    """The CPU's step time at both ends of each series; series closest to the baseline setting come first."""
    cells = (tables.cells if x_axis == CPU_THREADS else on_all_cores(tables.cells)).dropna(subset=["step_time_s"])
    axes = series_axes(x_axis)
    varied_axes = varying(cells, axes)
    changed = sum((cells[axis] != plain).astype(int) for axis, plain in BASELINE_AXES.items())
    lines = cells.assign(changed=changed).sort_values("changed", kind="stable").groupby(axes, sort=False)
    return [
        replace(_step_time(cell, **_place(cell, x_axis)), series=name_by(cell, varied_axes), main=True)
        for _, line in lines
        for cell in records(with_x(line, x_axis).sort_values("x").iloc[[0, -1]].drop_duplicates(CELL_AXES))
    ]


def _place(cell: Mapping[str, Any], x_axis: str) -> dict[str, str]:
    if x_axis == CPU_THREADS:
        return {"device": side_word(BASELINE), "place": cores_text(cell["threads"], "CPU core")}
    return {"place": place_on(cell, x_axis)}


def _ratios(tables: RunTables, together: int) -> list[Ratio]:
    """The speed-up of an accelerator over its host's CPU, or of the CPU over it, for series with a single size."""
    ratios = tables.ratios[(tables.ratios["pair"] == "device") & (tables.ratios["baseline"] == BASELINE)]
    ratios = ratios[ratios["baseline_machine"] == ratios["machine"]]
    varied_axes = varying(tables.cells, SERIES_AXES)
    lines = (line for _, line in ratios.groupby([*SERIES_AXES, "contender"], sort=False))
    return [_ratio(first_row(line), tables, varied_axes, together) for line in lines if len(line) == 1]


def _ratio(row: dict[str, Any], tables: RunTables, varied_axes: Iterable[str], together: int) -> Ratio:
    ahead = row["ratio"] >= 1
    contender, baseline = (
        tables.means[cell_key(row | {"device": row[side]})]["time"] for side in ("contender", "baseline")
    )
    ratio = ratio_of(contender, baseline, together)
    names = side_word(row["contender"]), side_word(row["baseline"])
    seconds = row["contender_s"], row["baseline_s"]
    both = tables.rows_with("cells", [*SERIES_AXES, "size"], row)
    return Ratio(
        machine=row["machine"],
        series=name_by(row, varied_axes),
        **compared_ratio(ratio if ahead else ratio.inverted()),
        winner=names[0] if ahead else names[1],
        loser=names[1] if ahead else names[0],
        winner_s=min(seconds),
        loser_s=max(seconds),
        **basis(row["trials"], both[both["device"].isin([row["contender"], row["baseline"]])]),
    )

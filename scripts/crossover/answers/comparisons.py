"""Answers on times, speed-ups, data loading, latency and throughput, and on the sides named in `asks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from crossover.answers.answer import COMPARED, Answer, Comparison, Ranged, at_most
from crossover.answers.vocabulary import BASELINE_AXES, caveats_of, compared_ratio, detectable
from crossover.answers.wording import HOST_MEMORY, capitalised, confidence_text, off_text, span_text
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
    EQUIVALENT,
    FASTER,
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SLOWER,
    Interval,
    SampleMean,
    columns_of,
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
from crossover.text import cores_text, number_text, percent_text, rate_text, seconds_text

BOUND = 0.5
"""Share of a step above which loading or copying data counts as the bottleneck of the step."""

NO_WARM_UP = METHODS["latencies_cold_s"]


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
class Asked(Comparison):
    """The comparison of the sides under `asks` in one metric: of the slower over the faster in time, else of the sides.

    Without an interval for metrics that are equal in all trials.
    """

    kind = "asked"
    statuses = (*COMPARED, EQUIVALENT, "better", "worse")
    differences = (FASTER, SLOWER, "better", "worse")
    in_sentence = ("winner", "loser", "metric", "place")

    metric: str
    place: str

    @property
    def quantity(self) -> str | None:
        return self.metric

    def sentence_on(self, alike: Sequence[Self]) -> str:
        place = f", {self.place}" if self.place else ""
        return f"{self.device}{place}: {self.without_place(alike)}"

    def without_place(self, alike: Sequence[Self]) -> str:
        ratios = [answer.ratio for answer in alike]
        if self.metric == "step_time_s":
            return self.in_time(alike, " in time")
        if self.metric in ("relative_error", "max_relative_error"):
            largest = "largest " if self.metric == "max_relative_error" else ""
            return f"{largest}relative error of {self.winner} {self.ratios_text(alike)}x that of {self.loser}"
        if self.status == INCONCLUSIVE and max(max(ratios) - 1, 1 - min(ratios)) >= 0.01:
            return f"no significant difference in memory between {self.winner} and {self.loser}"
        if self.status in (EQUIVALENT, INCONCLUSIVE):
            return f"{self.winner} needs the same memory as {self.loser}"
        off = span_text(ratios, lambda ratio: percent_text(abs(ratio - 1)))
        return f"{self.winner} takes {off} {'less' if self.ratio < 1 else 'more'} memory than {self.loser}"


@dataclass(frozen=True, kw_only=True)
class Loading(Ranged):
    """The share of a step that resident data save: of loading its data or, as `Copying`, of copying them."""

    kind = "loading"
    statuses = ("bounds", FASTER, SLOWER, INCONCLUSIVE, SINGLE_TRIAL)
    differences = ("bounds", SLOWER)

    share: float
    share_low: float | None
    share_high: float | None
    from_host_s: float
    resident_s: float

    def what(self) -> str:
        return "Loading"

    def sentence_on(self, alike: Sequence[Self]) -> str:
        shares = span_text([answer.share for answer in alike], percent_text)
        if self.status == FASTER:
            return f"{self.what()} does not slow a step down on the {self.device}"
        if self.status == "bounds":
            bottleneck = f"not the network, is the bottleneck on the {self.device}"
            return f"{self.what()}, {bottleneck}: it takes {shares} of a step"
        significance = ", but not significantly" if self.status == INCONCLUSIVE else ""
        return f"{self.what()} takes {shares} of a step on the {self.device}{significance}"

    def details(self) -> list[str]:
        times = f"{seconds_text(self.from_host_s)} with it and {seconds_text(self.resident_s)} on resident data"
        return [*confidence_text(self.share_low, self.share_high, "share"), f"a step takes {times}"]


@dataclass(frozen=True, kw_only=True)
class Copying(Loading):
    kind = "copying"
    in_sentence = ("protocol",)

    protocol: str

    def what(self) -> str:
        return f"Transfer from {HOST_MEMORY[self.protocol]} host memory and back"


@dataclass(frozen=True, kw_only=True)
class Latency(Ranged):
    """The effect of a mistake on a latency: the wrong mean over the right one. A single trial has no ratio."""

    kind = "latency"
    statuses = ("error", "none_found", SINGLE_TRIAL)
    differences = ("error",)
    in_sentence = ("mistake",)

    mistake: str | None = None
    ratio: float = 1.0
    ratio_low: float | None = None
    ratio_high: float | None = None
    detectable: float | None = None
    """Without a significant effect, the largest in the mistake's direction that the interval allows, as a share."""

    @property
    def quantity(self) -> str | None:
        return self.mistake

    @property
    def effect(self) -> tuple[bool, float]:
        """By which mistakes are ordered."""
        return self.status == "error", max(self.ratio, 1 / self.ratio)

    def sentence_on(self, alike: Sequence[Self]) -> str:
        ratios = [answer.ratio for answer in alike]
        if self.status == SINGLE_TRIAL:
            return f"A single trial cannot show the effect of mistakes on the {self.device}"
        if self.status == "none_found":
            most = at_most([answer.detectable for answer in alike])
            return f"“{self.mistake}” has no significant effect on the {self.device}{most}"
        if self.mistake == NO_WARM_UP:
            times = span_text(ratios, number_text)
            return f"Without warm-up, the first step takes {times}x the median on the {self.device}"
        off, direction = span_text(ratios, off_text), "high" if self.ratio > 1 else "low"
        return f"“{self.mistake}” makes the mean latency {off} too {direction} on the {self.device}"

    def details(self) -> list[str]:
        if self.status != "error" or self.ratio_low is None or self.ratio_high is None:
            return []
        text = number_text if self.mistake == NO_WARM_UP else off_text
        return [f"95 % CI {span_text([self.ratio_low, self.ratio_high], text)}"]


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


def comparison_answers(tables: RunTables, spec: Study, together: int) -> list[Answer]:
    """The answers of a study without crossovers; `together` is its number of comparisons."""
    loading, ratios = _loading(tables, together), _ratios(tables, together)
    main: Sequence[Answer]
    if "latency" in spec.figures:
        main = _latencies(tables)
    elif "throughput" in spec.figures:
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
        trials=cell["trials"],
        caveats=caveats_of(pd.DataFrame([cell])),
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
        trials=min(best["trials"], baseline["trials"]),
        caveats=caveats_of(pd.DataFrame([best, baseline])),
    )


def _step_time(cell: Mapping[str, Any], place: str, device: str | None = None) -> StepTime:
    return StepTime(
        machine=cell["machine"],
        device=device or side_word(cell["device"]),
        **columns_of(interval_of(cell, "step_time{}_s"), "step_time{}_s"),
        place=place,
        trials=cell["trials"],
        caveats=caveats_of(pd.DataFrame([cell])),
    )


def without_accelerator(tables: RunTables, x_axis: str) -> list[StepTime]:
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
    baseline, contender = (
        {axis: row[axis] for axis in CELL_AXES} | {"device": row[side]} for side in ("baseline", "contender")
    )
    ratio = _speedup(baseline, contender, tables.measurements, together)
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
        trials=row["trials"],
        caveats=caveats_of(both[both["device"].isin([row["contender"], row["baseline"]])]),
    )


def _speedup(baseline: Mapping[str, Any], contender: Mapping[str, Any], rows: pd.DataFrame, together: int) -> Interval:
    """Time of a baseline's cell over that of a contender's, given by their axes."""
    of, over = (Side(axes, "step_time_s") for axes in (baseline, contender))
    ratio, _ = ratio_of_sides(of, over, baseline["study"], rows)
    return interval_of_ratio(ratio, together)


def _loading(tables: RunTables, together: int) -> list[Loading]:
    """The share of data loading in a step and, on an accelerator, the share of transfers from the host."""
    pairs = tables.ratios[tables.ratios["pair"] == "protocol"]
    pairs = pairs[pairs["device"].isin(DEVICES)]
    pairs = pairs[(pairs["device"] != BASELINE) | ~pairs["baseline"].isin(COPYING)]
    varied_axes = [axis for axis in varying(tables.cells, [*SERIES_AXES, "size"]) if axis != "protocol"]
    return [_loading_share(row, tables, varied_axes, together) for row in records(pairs)]


def _loading_share(row: dict[str, Any], tables: RunTables, varied_axes: Iterable[str], together: int) -> Loading:
    resident = {axis: row[axis] for axis in CELL_AXES}
    ratio = _speedup(resident | {"protocol": row["baseline"]}, resident, tables.measurements, together)
    value, low, high = (None if end is None else 1 - 1 / end for end in (ratio.mean, ratio.low, ratio.high))
    is_bound = low is not None and low > BOUND
    both = tables.rows_with("cells", [axis for axis in CELL_AXES if axis != "protocol"], row)
    about: dict[str, Any] = {
        "machine": row["machine"],
        "series": name_by(row, varied_axes),
        "status": "bounds" if is_bound else decided(low, high, 0.0, SLOWER, FASTER),
        "share": value,
        "share_low": low,
        "share_high": high,
        "device": side_word(row["device"]),
        "resident_s": row["contender_s"],
        "from_host_s": row["baseline_s"],
        "trials": row["trials"],
        "caveats": caveats_of(both),
    }
    return Copying(**about, protocol=row["baseline"]) if row["baseline"] in COPYING else Loading(**about)


def _latencies(tables: RunTables) -> list[Latency]:
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
        about: dict[str, Any] = {
            "machine": machine,
            "series": machine if latencies["machine"].nunique() > 1 else "",
            "device": side_word(str(device)),
            "trials": int(cell["trials"].min()),
            "caveats": caveats_of(cell),
        }
        if mistakes["ratio_low"].isna().all():
            answers.append(Latency(**about, status=SINGLE_TRIAL))
        else:
            found = [Latency(**about, **_mistake(row)) for row in records(mistakes)]
            answers += sorted(found, key=lambda answer: answer.effect, reverse=True)
    return answers


def _mistake(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {"mistake": METHODS[row["method"]], **columns_of(interval_of(row, "ratio{}"), "ratio{}")}
    if row["is_error"]:
        return found | {"status": "error"}
    largest = 1 - row["ratio_low"] if row["method"] == LOWERS else row["ratio_high"] - 1
    return found | {"status": "none_found", "detectable": max(largest, 0.0)}


def asked_answers(tables: RunTables, asks: Asks, together: int) -> list[Asked]:
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
    return [
        replace(answer, series=name_by(cell, varied_axes))
        for cell in records(ordered)
        for metric in asks.metrics
        if (answer := _asked_answer(metric, {axis: cell[axis] for axis in shared}, tables, asks, together))
    ]


def _asked_answer(metric: str, shared: Mapping[str, Any], tables: RunTables, asks: Asks, together: int) -> Asked | None:
    """None without a ratio of both sides."""
    of, over = (Side({**shared, **side}, metric) for side in (asks.of, asks.over))
    try:
        log_ratio, trials = ratio_of_sides(of, over, shared["study"], tables.measurements)
    except NoFindingError:
        return None
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
    status = compared(ratio, 0.0, *statuses)
    return Asked(
        main=True,
        machine=shared["machine"],
        status=status,
        detectable=None if is_deterministic else detectable(ratio, status),
        metric=metric,
        **columns_of(Interval(ratio.mean) if is_deterministic else ratio, "ratio{}"),
        winner=names[0],
        loser=names[1],
        device=side_word(shared["device"]),
        place=name_by(first_row(cells), [*varying(tables.cells, ["size"]), *alike]),
        trials=trials,
        caveats=[] if is_deterministic else caveats_of(cells),
    )

"""Compare this machine with references, which are machines measured earlier: crossovers and ratios."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import geometric_mean
from typing import Any

import pandas as pd

from crossover.config.words import BASELINE, X_AXES, is_cpu, series_axes
from crossover.statistics.crossovers import Line, with_costs
from crossover.statistics.intervals import ENDS, Interval, interval_of, time_over_trials
from crossover.statistics.pairings import Pairing, XAxes, machine_pairings
from crossover.statistics.ratios import ratios_of
from crossover.tables.frames import records
from crossover.tables.references import KEPT, Reference
from crossover.tables.registry import CELL_AXES, COSTS
from crossover.tables.run_tables import table_of

Row = Mapping[str, Any]

PAIR = "reference"
SHARED = [axis for axis in CELL_AXES if axis not in ("machine", "device")]
"""The axes on which trials of a reference and of this machine must agree, in addition to the model's code."""


def agreeing(measurements: pd.DataFrame, references: Sequence[Reference]) -> pd.DataFrame:
    """The trials of references that agree with a trial of this machine in SHARED and in the code of the model."""
    shared = measurements[[*SHARED, "model_key"]].dropna(subset="model_key").drop_duplicates()
    agreed = [reference.trials.merge(shared, on=[*SHARED, "model_key"]) for reference in references]
    return pd.concat([trials for trials in agreed if len(trials)] or [measurements.head(0)], ignore_index=True)


def ratios_to_references(measurements: pd.DataFrame, rows: pd.DataFrame, x_axes: XAxes) -> pd.DataFrame:
    """Rows of table `ratios` with pair `reference`, for this machine and each reference, with times as measured.

    They compare a reference's accelerator with this machine's CPU, if `compare_across` allows it, and each device of
    this machine with the same device of the reference. `rows` are the result of `agreeing`.
    """
    if rows.empty:
        return table_of("ratios")
    names = {*rows["machine"]}
    ratios = ratios_of(_beside(measurements, rows), x_axes)
    across = ratios["machine"].isin(names) & ~ratios["baseline_machine"].isin(names)
    return ratios[across & ratios["pair"].isin(["device", "machine"])].assign(pair=PAIR)


@dataclass(frozen=True)
class ReferenceLine(Line):
    """A crossover of a reference's accelerator with this machine's CPU, in a cost: all estimates of it.

    The CPU launches the GPU's kernels, so the time of a GPU step depends on the CPU, above all if the step is small. A
    crossover is therefore computed from GPU times that are scaled by the ratio of the CPUs' times. Its interval also
    covers the crossover computed from unscaled times, and differences between hosts in the GPU's speed-up
    (`SPEEDUP_SPREAD`; for CUDA graphs `GRAPH_SPREAD`).
    """

    estimates: Sequence[Line]

    def p_value(self) -> float | None:
        """The p-value of the estimate that differs least: a side counts as faster only where all say so."""
        p_values = [p_value for line in self.estimates if (p_value := line.p_value()) is not None]
        return max(p_values, default=None)

    def row(self, together: int) -> dict[str, Any]:
        """The row of table `crossovers`, with pair `reference`; `together` is as for `estimate_crossover`."""
        rows: list[Row] = [line.row(together) for line in self.estimates]
        merged = reduce(spanned, rows)
        return {**merged, "pair": PAIR}


def reference_lines(
    measurements: pd.DataFrame,
    rows: pd.DataFrame,
    ratios: pd.DataFrame,
    x_axes: XAxes,
    prices: Mapping[str, float] | None,
) -> list[ReferenceLine]:
    """One line per series, reference and cost. `ratios` are those of `ratios_to_references`, with the same `rows`."""
    if rows.empty:
        return []
    joined, names = _beside(measurements, rows), {*rows["machine"]}
    across = [
        pairing
        for pairing in machine_pairings(joined, x_axes)
        if pairing.pair == "device" and pairing.series["machine"] in names and pairing.baseline_machine not in names
    ]
    estimates = [
        with_costs(_on_other_hosts(trials, names, quantile), prices)
        for trials in (_beside_this_cpu(joined, ratios, x_axes), joined)
        for quantile in (0.0, -NORMAL_QUANTILE, NORMAL_QUANTILE)
    ]
    return [line for pairing in across for line in _lines_of_estimates(pairing, estimates)]


def _lines_of_estimates(pairing: Pairing, estimates: Sequence[pd.DataFrame]) -> Iterator[ReferenceLine]:
    """One line per cost that has values; the estimates differ from the trials of the pairing only in their times."""
    index, side = pairing.trials.index, pairing.trials["side"]
    alike = [replace(pairing, trials=trials.loc[index].assign(side=side)) for trials in estimates]
    for cost in COSTS:
        if alike[0].trials[cost].notna().any():
            yield ReferenceLine(alike[0], cost, [Line(estimate, cost) for estimate in alike])


def _beside(measurements: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The trials of references with those of this machine that agree with one of them in SHARED."""
    trials_here = measurements.merge(rows[SHARED].drop_duplicates(), on=SHARED)
    columns = ["machine", *KEPT]
    return pd.concat([trials_here[columns].astype(object), rows[columns].astype(object)], ignore_index=True)


EAGER_SPREAD, GRAPH_SPREAD = 0.26, 0.04
"""Standard deviation of ln(step time on a host / step time on another host of the same kind).

The value for eager execution excludes the spread between trials. It is the root mean square over the ten pairs of five
hosts with an H100. A pair has 46 to 51 cells in total, on the GPU and the CPU. CUDA graphs depend little on the host;
their value is the maximum over 5 cells and includes the spread between trials.
"""
SPEEDUP_SPREAD = 0.13
"""The same for the speed-up of a GPU over its host's CPU, which differs less, since a fast host speeds up both.

The value is cautious: the root mean square over those ten pairs, with 23 eager cells per pair, was 0.05. It was 0.17
for the pair that differs most.
"""
NORMAL_QUANTILE = 1.96


def host_spread(execution: str) -> float:
    """Standard deviation of ln(step time) between hosts of a kind, as for EAGER_SPREAD."""
    return GRAPH_SPREAD if execution == "cuda-graph" else EAGER_SPREAD


def speedup_spread(execution: str) -> float:
    """Standard deviation of ln(speed-up of a GPU over its host's CPU) between hosts of a kind."""
    return min(SPEEDUP_SPREAD, host_spread(execution))


def _on_other_hosts(trials: pd.DataFrame, machines: Collection[str], quantile: float) -> pd.DataFrame:
    """The trials, with the times on `machines` changed by `quantile` standard deviations of the speed-up over hosts."""
    factors = [
        math.exp(quantile * speedup_spread(execution)) if machine in machines else 1.0
        for machine, execution in zip(trials["machine"], trials["execution"], strict=True)
    ]
    return trials.assign(step_time_s=pd.to_numeric(trials["step_time_s"]) * factors)


SMALL_SPEEDUP = 1.5
"""Speed-up over the CPU below which a step on the GPU counts as bound by the host."""


def host_factors(ratios: pd.DataFrame, x_axis: str) -> dict[tuple[object, ...], float]:
    """The factors by which GPU steps of a reference would take longer on this host, by the values of `series_axes`.

    A factor is the time of this CPU over that of the reference's CPU. It is the geometric mean over the points at which
    the GPU is less than SMALL_SPEEDUP times as fast as this CPU. Without such points, it is the ratio at the smallest
    point. `ratios` have pair `reference`.
    """
    return {
        tuple(steps[series_axes(x_axis)].iloc[0]): geometric_mean(steps["ratio"].astype(float))
        for hosts, small in _of_hosts(ratios, x_axis)
        for steps in [hosts[small] if small.any() else hosts.head(1)]
    }


def _of_hosts(ratios: pd.DataFrame, x_axis: str) -> Iterator[tuple[pd.DataFrame, pd.Series]]:
    """For each series, the ratios of the CPUs' times along `x_axis`, and which of them are of small steps."""
    along = X_AXES[x_axis]
    for _, line in ratios.groupby(series_axes(x_axis), sort=False):
        hosts = line[(line["device"] == BASELINE) & (line["contender"] == line["machine"])].sort_values(along)
        speedups = line[
            [not is_cpu(device) and device == side for device, side in line[["device", "contender"]].values]
        ]
        if len(hosts):
            yield hosts, hosts[along].isin(speedups.loc[speedups["ratio"] < SMALL_SPEEDUP, along])


def host_paces(ratios: pd.DataFrame, x_axes: XAxes) -> dict[str, Interval]:
    """For each reference, the time of this CPU over that of the reference's CPU, with its 95 % interval over cells.

    It is the geometric mean over the small steps of all studies; a reference without any is left out. The interval of a
    single cell is over its trials. `ratios` have pair `reference`.
    """
    cells: dict[str, list[Interval]] = {}
    for study, rows in ratios.groupby("study", sort=False):
        for hosts, small in _of_hosts(rows, x_axes[str(study)]):
            if small.any():
                of_machine = cells.setdefault(str(hosts["machine"].iloc[0]), [])
                of_machine += [interval_of(row, "ratio{}") for row in records(hosts[small])]
    return {
        machine: intervals[0] if len(intervals) == 1 else time_over_trials([interval.mean for interval in intervals])
        for machine, intervals in cells.items()
    }


def spanned(here: Row, there: Row) -> Row:
    """Merge two estimates of a crossover: the result is the less certain estimate (LEAST_SURE).

    Its interval (with single trials, its bracket) is extended to cover both estimates, and is open towards an estimate
    beyond the measured range. A side is significantly faster only where both estimates say so. If they contradict each
    other, or leave no end known, the result is `undecided` with caveat `estimates_disagree`.
    """
    significant = {
        name: None if None in (here[name], there[name]) else further(here[name], there[name])
        for name, further in SIGNIFICANT.items()
    }
    here, there = {**here, **significant}, {**there, **significant}
    statuses = {there["status"], here["status"]}
    disagreeing = dict.fromkeys([*_ESTIMATES, *SIGNIFICANT]) | _DISAGREE
    if len(statuses) > 1 and ("reversed" in statuses or statuses == {"below_range", "above_range"}):
        return {**here, **disagreeing}
    base = min(here, there, key=lambda row: LEAST_SURE.index(row["status"]))
    if base["status"] == "undecided" and len(statuses) > 1:
        return {**base, **_DISAGREE}
    unsure = sorted({*there["caveat_at"], *here["caveat_at"]})
    if unsure and base["status"] in ("edge_tie", "below_range", "above_range"):
        base = {**base, "caveat": "unsure_sizes", "caveat_at": unsure}
    if base["status"] not in ESTIMATED:
        return base
    prefix = "bracket" if base["trials"] == 1 else "crossover"
    lower = min(there, here, key=lambda row: ends_of(row, prefix)[0])
    upper = max(there, here, key=lambda row: ends_of(row, prefix)[1])
    lows = {name: lower[name] for name in base if name.startswith(prefix) and name.endswith("_low")}
    highs = {name: upper[name] for name in base if name.startswith(prefix) and name.endswith("_high")}
    has_end = any(end is not None for end in (*lows.values(), *highs.values()))
    return {**base, **lows, **highs, **({} if has_end else disagreeing)}


DISAGREE = "estimates_disagree"
_DISAGREE = {"status": "undecided", "caveat": DISAGREE, "caveat_at": []}
_ESTIMATES = [f"crossover{unit}{end}" for unit in ("", "_size", "_parameters") for end in ENDS]
SIGNIFICANT = {"slower_up_to": min, "faster_from": max, "sure_low": min, "sure_high": max}
"""Columns of points with a significant difference, with the choice of the point that holds in two estimates."""
ESTIMATED = ("bracketed", "reversed", "edge_tie")
"""Statuses of crossovers with an interval or bracket, which may be open."""
LEAST_SURE = ("no_accelerator", "incomplete", "undecided", "multiple", *ESTIMATED, "below_range", "above_range")
"""All statuses, the least certain first."""


def ends_of(row: Row, prefix: str) -> tuple[float, float]:
    """The ends of the interval or bracket; 0 or infinity for an end that is open or beyond the measured range."""
    if row["status"] in ESTIMATED:
        return row[f"{prefix}_low"] or 0, row[f"{prefix}_high"] or math.inf
    return (0, 0) if row["status"] == "below_range" else (math.inf, math.inf)


def _beside_this_cpu(joined: pd.DataFrame, ratios: pd.DataFrame, x_axes: XAxes) -> pd.DataFrame:
    """The trials, with the times on accelerators scaled by `host_factors`."""
    parts = []
    for study, rows in joined.groupby("study", sort=False):
        x_axis = x_axes[str(study)]
        factors = host_factors(ratios[ratios["study"] == study], x_axis)
        keys = zip(*(rows[axis] for axis in series_axes(x_axis)), strict=True)
        scales = [
            1.0 if is_cpu(device) else factors.get(key, 1.0) for device, key in zip(rows["device"], keys, strict=True)
        ]
        parts.append(rows.assign(step_time_s=pd.to_numeric(rows["step_time_s"]) * scales))
    return pd.concat(parts)

"""Compare this machine with references, which are machines measured earlier: crossovers and ratios."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean

import pandas as pd

from crossover.compare.cells import MeansOfCells
from crossover.compare.intervals import Interval, interval_of, time_over_trials
from crossover.compare.pairings import REFERENCE, Pairing, XAxes, pairings, with_costs
from crossover.compare.ratios import ratios_of
from crossover.config.words import BASELINE, X_AXES, is_cpu, series_axes
from crossover.tables.frames import records
from crossover.tables.reference_files import KEPT, Reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of

SHARED = [axis for axis in CELL_AXES if axis not in ("machine", "device")]
"""The axes on which trials of a reference and of this machine must agree, in addition to the model's code."""


def agreeing(measurements: pd.DataFrame, references: Sequence[Reference]) -> pd.DataFrame:
    """The trials of references that agree with a trial of this machine in SHARED and in the code of the model."""
    shared = measurements[[*SHARED, "model_key"]].dropna(subset="model_key").drop_duplicates()
    agreed = [reference.trials.merge(shared, on=[*SHARED, "model_key"]) for reference in references]
    return pd.concat([trials for trials in agreed if len(trials)] or [measurements.head(0)], ignore_index=True)


def compared_with_references(
    measurements: pd.DataFrame,
    rows: pd.DataFrame,
    x_axes: XAxes,
    means: MeansOfCells,
    prices: Mapping[str, float] | None = None,
) -> tuple[pd.DataFrame, list[Pairing]]:
    """Rows of table `ratios` with pair `reference`, and the pairings of that name that have crossovers.

    The ratios are of times as measured: of a reference's accelerator and this machine's CPU, where machines are
    compared so, and of each device of this machine and the same device of the reference. `rows` is the result of
    `agreeing`, and `means` has the costs of all cells. There is one pairing per reference's accelerator and series,
    with all estimates of its crossovers.

    The CPU launches the GPU's kernels, so the time of a GPU step depends on the CPU, above all if the step is small. A
    crossover is therefore computed from GPU times that are scaled by the ratio of the CPUs' times. Its interval also
    covers the crossover computed from unscaled times, and differences between hosts in the GPU's speed-up
    (`SPEEDUP_SPREAD`; for CUDA graphs `GRAPH_SPREAD`).
    """
    if rows.empty:
        return table_of("ratios"), []
    joined, names = _beside(measurements, rows), {*rows["machine"]}
    across = [
        replace(pairing, pair=REFERENCE)
        for pairing in pairings(joined, x_axes)
        if pairing.pair in ("device", "machine")
        and pairing.series["machine"] in names
        and pairing.baseline_machine not in names
    ]
    ratios = ratios_of(joined, means, across)
    estimates = [
        with_costs(_on_other_hosts(trials, names, quantile), prices)
        for trials in (_beside_this_cpu(joined, ratios, x_axes), joined)
        for quantile in (0.0, -NORMAL_QUANTILE, NORMAL_QUANTILE)
    ]
    of_devices = [pairing for pairing in across if pairing.contender == pairing.device]
    return ratios, [_with_estimates(pairing, estimates) for pairing in of_devices]


def _with_estimates(pairing: Pairing, estimates: Sequence[pd.DataFrame]) -> Pairing:
    """The pairing with all estimates, which differ from its trials only in their costs."""
    index, side = pairing.trials.index, pairing.trials["side"]
    first, *others = [replace(pairing, trials=trials.loc[index].assign(side=side)) for trials in estimates]
    return replace(first, others=tuple(others))


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

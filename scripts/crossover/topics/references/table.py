"""Compare this machine with references, which are machines measured earlier: crossovers and ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import pandas as pd

from crossover.compare.cells import MeansOfCells, means_of
from crossover.compare.intervals import SampleMean
from crossover.compare.pairings import REFERENCE, Pairing, XAxes, pairings
from crossover.compare.ratios import ratios_of
from crossover.config.words import BASELINE, X_AXES, is_cpu, series_axes
from crossover.tables.frames import with_parameters, x_axes_of
from crossover.tables.reference_files import KEPT, Reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of
from crossover.topics.references.prediction import predicted, probed_slowdowns, ratios_and_cells

SHARED = [axis for axis in CELL_AXES if axis not in ("machine", "device")]
"""The axes on which trials of a reference and of this machine must agree, in addition to the model's code."""


def agreeing(measurements: pd.DataFrame, references: Sequence[Reference]) -> pd.DataFrame:
    """The trials of references that agree with a trial of this machine in SHARED and in the code of the model."""
    shared = measurements[[*SHARED, "model_key"]].dropna(subset="model_key").drop_duplicates()
    agreed = [reference.trials.merge(shared, on=[*SHARED, "model_key"]) for reference in references]
    return pd.concat([trials for trials in agreed if len(trials)] or [measurements.head(0)], ignore_index=True)


def pairs_with_references(measurements: pd.DataFrame, references: Sequence[Reference], x_axes: XAxes) -> list[Pairing]:
    """The predicted pairings of this CPU with references, as in `compared_with_references`, without probes."""
    rows, measured = agreeing(measurements, references), with_parameters(measurements)
    axes = x_axes_of(x_axes, measured)
    means = {**means_of(measured), **means_of(rows)}
    return compared_with_references(measured, rows, axes, means, references)[1]


def compared_with_references(
    measurements: pd.DataFrame,
    rows: pd.DataFrame,
    x_axes: XAxes,
    means: MeansOfCells,
    references: Sequence[Reference],
    *,
    roofs: pd.DataFrame | None = None,
    prices: Mapping[str, float] | None = None,
) -> tuple[pd.DataFrame, list[Pairing], pd.DataFrame]:
    """Rows of table `ratios` with pair `reference`, the pairings of that name, and the predicted cells.

    There is one pairing per reference's accelerator and series, whose times are `predicted` for this CPU; the cells
    have them, too. The slowdown of this CPU is that of `host_slowdowns`; `roofs` has the probes of this machine.
    The ratios are of predicted times of a reference's accelerator and times of this CPU, where machines are
    compared so, and of times as measured of each device of this machine and the same device of the reference.
    `rows` is the result of `agreeing`, and `means` has the costs of all cells.
    """
    if rows.empty:
        return table_of("ratios"), [], table_of("cells")
    joined, names = _beside(measurements, rows), {*rows["machine"]}
    across = [
        replace(pairing, pair=REFERENCE)
        for pairing in pairings(joined, x_axes)
        if pairing.pair in ("device", "machine")
        and pairing.series["machine"] in names
        and pairing.baseline_machine not in names
    ]
    measured = ratios_of(joined, means, across)
    slowdowns = host_slowdowns(measured, x_axes, {} if roofs is None else probed_slowdowns(roofs, references))
    of_references = {reference.facts.name: reference.trials for reference in references}
    pairs, ratios, cells = [], [measured[measured["contender"] == measured["machine"]]], []
    for pairing in across:
        machine = str(pairing.series["machine"])
        slowdown = slowdowns.get(machine, SampleMean(0.0, EAGER_SPREAD**2, math.inf))
        if pairing.contender == pairing.device and abs(slowdown.mean) <= math.log(MOST_SLOWDOWN):
            pairs.append(predicted(pairing, slowdown, of_references[machine], prices))
            of_pair, of_cells = ratios_and_cells(pairs[-1], means, prices)
            ratios.append(of_pair)
            cells.append(of_cells)
    return pd.concat(ratios, ignore_index=True), pairs, pd.concat([table_of("cells"), *cells], ignore_index=True)


def _beside(measurements: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The trials of references with those of this machine that agree with one of them in SHARED."""
    trials_here = measurements.merge(rows[SHARED].drop_duplicates(), on=SHARED)
    columns = ["machine", *KEPT, "batch_name"]
    return pd.concat([trials_here[columns].astype(object), rows[columns].astype(object)], ignore_index=True)


EAGER_SPREAD, GRAPH_SPREAD = 0.26, 0.04
"""Standard deviation of ln(step time on a host / step time on another host of the same kind).

The value for eager execution excludes the spread between trials. It is the root mean square over the ten pairs of five
hosts with an H100. A pair has 46 to 51 cells in total, on the GPU and the CPU. CUDA graphs depend little on the host;
their value is the maximum over 5 cells and includes the spread between trials.
"""


def host_spread(execution: str) -> float:
    """Standard deviation of ln(step time) between hosts of a kind, as for EAGER_SPREAD."""
    return GRAPH_SPREAD if execution == "cuda-graph" else EAGER_SPREAD


MOST_SLOWDOWN = 20.0
"""Slowdown of this CPU above which nothing is predicted, since it is rather other programs that take the CPU."""

SMALL_SPEEDUP = 1.5
"""Speed-up over the CPU below which a step on the GPU counts as bound by the host."""


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


SMALL_STEP_SPREAD = 0.16
"""Standard deviation of ln(time of a small step on a CPU / on another), around its mean over 19 to 22 small steps.

It is the root mean square over the ten pairs of five hosts.
"""


def host_slowdowns(ratios: pd.DataFrame, x_axes: XAxes, probed: Mapping[str, SampleMean]) -> dict[str, SampleMean]:
    """For each reference, ln(time of this CPU / time of the reference's CPU), with its squared error.

    It is the mean over small steps; without any, that of the probes or, if a CPU has none or every step is beyond
    MOST_SLOWDOWN, that of the smallest step of each series. `ratios` have pair `reference`.
    """
    small: dict[str, list[float]] = {}
    smallest: dict[str, list[float]] = {}
    least: dict[str, float] = {}
    for study, rows in ratios.groupby("study", sort=False):
        for hosts, is_small in _of_hosts(rows, x_axes[str(study)]):
            machine = str(hosts["machine"].iloc[0])
            small.setdefault(machine, []).extend(hosts.loc[is_small, "ratio"].map(math.log))
            smallest.setdefault(machine, []).append(math.log(hosts["ratio"].iloc[0]))
            least[machine] = min(least.get(machine, math.inf), hosts["ratio"].min())
    return {
        **{machine: _mean(logs, EAGER_SPREAD) for machine, logs in smallest.items()},
        **{machine: probe for machine, probe in probed.items() if least.get(machine, 0.0) <= MOST_SLOWDOWN},
        **{machine: _mean(logs, SMALL_STEP_SPREAD) for machine, logs in small.items() if logs},
    }


def _mean(logs: Sequence[float], spread: float) -> SampleMean:
    return SampleMean(fmean(logs), spread**2 / len(logs), math.inf)

"""Predict the steps of a GPU measured elsewhere beside this CPU, from the parts of its host and of the device.

A step is D + slowdown^exponent (T - D): T is its time there, D that of the device alone, and `slowdown` how much longer
small steps take on this CPU than on the one beside the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from crossover.compare.cells import MeansOfCells, means_of, numbers_of, summarise
from crossover.compare.crossovers import Interpolation
from crossover.compare.intervals import SampleMean
from crossover.compare.pairings import Pairing, Prediction, with_costs
from crossover.compare.ratios import ratios_of
from crossover.config.words import BASELINE, CUDA_GRAPH, is_cpu, series_axes
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import rows_with
from crossover.tables.reference_files import Reference
from crossover.tables.registry import CELL_AXES

EXPONENTS = 0.7, 1.3
"""The 95 % range of the exponent: launching may depend on the CPU less or more than what gives its slowdown."""
UNKNOWN_PART = 0.0, EXPONENTS[1]
"""The same where the device's part is not known: it may be the whole step."""
NORMAL_QUANTILE = 1.96

SPEEDUP_SPREAD = 0.05
"""Standard deviation of ln(speed-up of a GPU over its host's CPU) between hosts of a kind, over 23 eager cells.

It is the root mean square over the ten pairs of five hosts with an H100. Step times differ more (EAGER_SPREAD), but a
fast host is fast on both devices.
"""

PREDICTED = "predicted"
"""The origin of predicted cells."""

FRAMEWORK = "framework"
"""The roof of a CPU that gives its slowdown if no small step does."""

PROBE_SPREAD = 0.18
"""Standard deviation of ln(time) between 16 probes of this roof, one after the other on one machine."""


def probed_slowdowns(roofs: pd.DataFrame, references: Sequence[Reference]) -> dict[str, SampleMean]:
    """ln(this CPU's time for framework work / that of a reference's CPU), where both have been probed."""
    here = _framework_s(roofs)
    there = {reference.facts.name: _framework_s(reference.roofs) for reference in references}
    error = 2 * PROBE_SPREAD**2
    return {
        name: SampleMean(math.log(here / time_s), error, math.inf) for name, time_s in there.items() if here and time_s
    }


def _framework_s(roofs: pd.DataFrame) -> float | None:
    probed = roofs[(roofs["roof"] == FRAMEWORK) & roofs["device"].map(is_cpu).astype(bool)]
    return float(probed["value"].iloc[0]) if len(probed) else None


def device_parts(pairing: Pairing, trials: pd.DataFrame) -> Interpolation:
    """The seconds of the device alone by point: of CUDA graphs or, without any, by the profiler; empty without either.

    `trials` are all of the reference. A graph of any protocol counts, since protocols differ in work of the host.
    """
    axes = [axis for axis in series_axes(pairing.x_axis) if axis not in ("machine", "protocol", "execution")]
    of_gpu = rows_with(trials, [*axes, "device"], pairing.series | {"device": pairing.contender})
    of_gpu = of_gpu[of_gpu["status"] == "ok"]
    graphs = of_gpu[of_gpu["execution"] == CUDA_GRAPH]
    same = rows_with(of_gpu, ["protocol", "execution"], pairing.series)
    for rows, column in ((graphs, "step_time_s"), (same, "device_busy_s")):
        known = rows[pd.to_numeric(rows[column]) > 0]
        if len(known):
            times_s = pd.to_numeric(known[column]).groupby(known[pairing.along]).median()
            return Interpolation(times_s.index, times_s)
    return Interpolation([], [])


def predicted(
    pairing: Pairing, log_slowdown: SampleMean, of_reference: pd.DataFrame, prices: Mapping[str, float] | None = None
) -> Pairing:
    """The pairing with the contender's times beside this CPU; `of_reference` has all trials of its machine."""
    slowdown, error = math.exp(log_slowdown.mean), math.sqrt(log_slowdown.variance)
    trials, device_s = pairing.trials, device_parts(pairing, of_reference)
    is_contender = (trials["side"] == pairing.contender).to_numpy(bool)
    points, times_s = trials[pairing.along].to_numpy(float), numbers_of(trials["step_time_s"])
    parts_s = np.fmin([device_s(point) or 0.0 for point in points], times_s)
    deviation, host_share = {}, {}
    for point in np.unique(points[is_contender & ~np.isnan(times_s)]):
        at = is_contender & (points == point)
        device, host = float(np.nanmean(parts_s[at])), float(np.nanmean((times_s - parts_s)[at]))
        whole = device + slowdown * host
        exponents = UNKNOWN_PART if device_s(point) is None else EXPONENTS
        furthest = max(abs(math.log((device + slowdown**power * host) / whole)) for power in exponents)
        host_share[point] = slowdown * host / whole
        deviation[point] = math.hypot(SPEEDUP_SPREAD, furthest / NORMAL_QUANTILE, host_share[point] * error)
    beside_s = np.where(is_contender, parts_s + slowdown * (times_s - parts_s), times_s)
    axes = [*series_axes(pairing.x_axis), "device"]
    cpu, gpu = (
        rows_with(of_reference, axes, pairing.series | {"device": side}) for side in (BASELINE, pairing.contender)
    )
    measured_at = tuple(sorted(gpu.loc[gpu["status"] == "ok", pairing.along].unique().tolist()))
    return replace(
        pairing,
        trials=with_costs(trials.assign(step_time_s=beside_s), prices),
        prediction=Prediction(slowdown, deviation, host_share, measured_at, spread_of(cpu, pairing.along)),
    )


def spread_of(trials: pd.DataFrame, along: str) -> SampleMean | None:
    """The variance of ln(time) between the trials of a point, pooled over the points; None without repeated trials."""
    ok = trials[trials["status"] == "ok"]
    logs = pd.Series(np.log(numbers_of(ok["step_time_s"])), ok.index).groupby(ok[along])
    freedom = logs.count() - 1
    total, squares = int(freedom.sum()), float((logs.var() * freedom).sum())
    return SampleMean(0.0, squares / total, total) if squares > 0 else None


def ratios_and_cells(
    pairing: Pairing, means: MeansOfCells, prices: Mapping[str, float] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of table `ratios`, and the contender's cells, of a pairing that is `predicted`."""
    assert pairing.prediction is not None
    trials = pairing.trials.reindex(columns=list(COLUMNS))
    of_contender = trials[(pairing.trials["side"] == pairing.contender).to_numpy(bool)]
    deviation = pairing.prediction.deviation
    along = [*CELL_AXES].index(pairing.along)
    beside = {
        key: {cost: mean.widened(deviation[key[along]]) for cost, mean in costs.items()}
        for key, costs in means_of(of_contender, prices).items()
    }
    ratios = ratios_of(trials, {**means, **beside}, [pairing])
    ratios = ratios.assign(deviation=ratios[pairing.along].map(deviation).astype("Float64"))
    return ratios, summarise(of_contender, beside, origin=PREDICTED)

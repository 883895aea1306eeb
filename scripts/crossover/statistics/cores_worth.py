"""How many CPU cores an accelerator is worth: the number on which the CPU would take the same time.

That is the crossover over the number of threads; the accelerator's time is a single cell, whose error is common to all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from crossover.config.words import is_cpu
from crossover.statistics.crossover import crossover_of
from crossover.statistics.crossover_curve import Advantages, curve_through
from crossover.statistics.intervals import Floats, SampleMean
from crossover.tables.frames import at_common_sizes, device_name_of, with_ok_times
from crossover.tables.registry import SERIES_AXES, table_of


def worth_in_cores(cpu_s: Mapping[int, Sequence[float]], accelerator_s: Sequence[float]) -> dict[str, Any]:
    """How many cores take as long as an accelerator, as columns of table `cores_worth`.

    `cpu_s` maps a number of threads to the medians of its trials, `accelerator_s` holds those of the accelerator, all
    in seconds. An end that is open, or unknown for lack of a second trial, is None.
    """
    sides = {threads: SampleMean.of_times(medians) for threads, medians in sorted(cpu_s.items()) if len(medians)}
    if not sides or not len(accelerator_s):
        return {"status": "incomplete"}
    accelerator = SampleMean.of_times(accelerator_s)
    means, variances, fourths = np.array([(side.mean, side.variance, side.fourth) for side in sides.values()]).T
    advantages = Advantages(np.array([*sides], float), means - accelerator.mean, variances, fourths, (), accelerator)
    signs, threads = advantages.sure_signs(), np.array([*sides])
    if (signs > 0).all():
        return {"status": "more", "cores_low": threads[-1] if advantages.known else None}
    if (signs < 0).all():
        return {"status": "fewer", "cores_high": threads[0] if advantages.known else None}
    slower_again = threads[(signs > 0) & (np.minimum.accumulate(signs) < 0)]
    if len(slower_again):
        return {"status": "more_is_slower", "slower_cores": slower_again[0]}
    if signs[0] > 0 > signs[-1]:
        crossover = crossover_of(advantages)
        ends = {"cores_low": crossover.low, "cores_high": crossover.high}
        return {"status": "between", "cores": crossover.size, **ends}
    low, high = _bounds(advantages, signs) if advantages.known and signs.any() else (None, None)
    return {"status": "inconclusive", "cores_low": low, "cores_high": high}


def _bounds(advantages: Advantages, signs: Floats) -> tuple[float | None, float | None]:
    """The most cores on which the CPU is significantly slower, and the fewest on which it is significantly faster."""
    together, level = advantages.simultaneous
    curve = replace(curve_through(advantages), together=together, level=level)
    low = high = None
    if signs[0] > 0:
        gap = int(np.argmax(signs <= 0)) - 1
        low = curve.leaves_set(curve.root(gap) if signs[gap + 1] < 0 else float(curve.log_sizes[gap + 1]), gap, -1)
    if signs[-1] < 0:
        gap = int(np.flatnonzero(signs >= 0)[-1])
        high = curve.leaves_set(curve.root(gap) if signs[gap] > 0 else float(curve.log_sizes[gap]), gap, 1)
    return low, high


def cores_worth_of(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row for each line, size and accelerator; none at a size that refinement added, which has one CPU side only.

    The trials of CPU sides with the same number of threads are pooled.
    """
    rows = []
    for key, line in with_ok_times(measurements).groupby(SERIES_AXES, sort=False):
        for size, cell in at_common_sizes(line, "device").groupby("size"):
            axes = dict(zip(SERIES_AXES, key, strict=True)) | {"size": size}
            cpu = cell[cell["device"].map(is_cpu)]
            for contender, accelerator in cell[~cell["device"].map(is_cpu)].groupby("device", sort=False):
                rows.append(axes | _compare(str(contender), cpu, accelerator))
    return table_of("cores_worth", rows)


def _compare(contender: str, cpu: pd.DataFrame, accelerator: pd.DataFrame) -> dict[str, object]:
    timed = cpu.dropna(subset=["step_time_s", "threads"]).astype({"threads": int})
    counts = timed["threads"].unique().tolist()
    cpu_s = {count: timed.loc[timed["threads"] == count, "step_time_s"].tolist() for count in counts}
    accelerator_s = accelerator["step_time_s"].dropna().tolist()
    return {
        "contender": contender,
        "size_name": accelerator["size_name"].iloc[0],
        "parameters": accelerator["parameters"].max(),
        **worth_in_cores(cpu_s, accelerator_s),
        "measured_cores": sorted(cpu_s),
        "trials": min(map(len, (*cpu_s.values(), accelerator_s))),
        "baseline_name": device_name_of(cpu),
        "contender_name": device_name_of(accelerator),
    }

"""How many CPU cores an accelerator is worth: the number on which the CPU would take the same time.

A status rests on the numbers of cores at which the CPU is significantly slower or faster, by intervals that hold
together (Bonferroni over the numbers measured).

The logarithm of the CPU's time is interpolated over the logarithm of its threads by PCHIP, which never swings beyond
the measured points (Fritsch and Butland, 1984); nothing is extrapolated. The 95 % set holds the numbers at which the
two times differ by no more than Welch's t quantile times the standard error, plus the distance of PCHIP from the
straight line there: a curve that bends is known less well between two points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from crossover.config.words import is_cpu
from crossover.statistics.crossover_curve import ONE_TRIAL_LEAD, Floats, t_errors, weighed
from crossover.statistics.intervals import CONFIDENCE, Interval, LogMean, ratio_of
from crossover.tables.frames import at_common_sizes, device_name_of, with_ok_times
from crossover.tables.registry import LINE_AXES, table_of

PLACES = 2000
"""Points between two measured numbers of cores, at which the answer and its 95 % set are looked for."""


def worth_in_cores(cpu_s: Mapping[int, Sequence[float]], accelerator_s: Sequence[float]) -> dict[str, Any]:
    """How many cores take as long as an accelerator, as columns of table `cores_worth`.

    `cpu_s` maps a number of threads to the medians of its trials, `accelerator_s` holds those of the accelerator, all
    in seconds. The set takes two trials of every side; an end that is open, or not known, is None.
    """
    timed = {threads: medians for threads, medians in sorted(cpu_s.items()) if len(medians)}
    if not timed or not len(accelerator_s):
        return {"status": "incomplete"}
    sides = {threads: LogMean.of(medians) for threads, medians in timed.items()}
    accelerator = LogMean.of(accelerator_s)
    signs = {threads: _sign(ratio_of(accelerator, side, len(sides))) for threads, side in sides.items()}
    fewest, most = min(sides), max(sides)
    has_intervals = not math.isnan(accelerator.variance + sum(side.variance for side in sides.values()))
    if set(signs.values()) == {1}:
        return {"status": "more", "cores_low": most if has_intervals else None}
    if set(signs.values()) == {-1}:
        return {"status": "fewer", "cores_high": fewest if has_intervals else None}
    faster = [threads for threads, sign in signs.items() if sign < 0]
    slower_again = [threads for threads, sign in signs.items() if sign > 0 and faster and threads > faster[0]]
    if slower_again:
        return {"status": "more_is_slower", "slower_cores": slower_again[0]}
    if signs[fewest] != 1 or signs[most] != -1:
        curve = _curve_of(sides, accelerator, len(sides))
        low, high = _set(curve, float(curve.threads[np.abs(curve.ahead).argmin()]))
        return {
            "status": "inconclusive",
            "cores_low": low if signs[fewest] == 1 else None,
            "cores_high": high if signs[most] == -1 else None,
        }
    curve = _curve_of(sides, accelerator)
    root = curve.root()
    low, high = _set(curve, root)
    return {"status": "between", "cores": root, "cores_low": low, "cores_high": high}


def _sign(cpu_over_accelerator: Interval) -> int:
    """1 where the CPU is significantly slower, -1 where faster, else 0; of single trials by the lead that counts."""
    low, high = cpu_over_accelerator.low, cpu_over_accelerator.high
    if low is None or high is None:
        low, high = cpu_over_accelerator.mean / ONE_TRIAL_LEAD, cpu_over_accelerator.mean * ONE_TRIAL_LEAD
    return int(low >= 1) - int(high <= 1)


@dataclass(frozen=True)
class _Curve:
    """The accelerator's advantage over numbers of threads, from the fewest to the most measured."""

    threads: Floats
    ahead: Floats
    """Logarithm of the CPU's time over the accelerator's."""
    tolerance: Floats
    """Its error; infinite with one trial of a side."""

    def root(self) -> float:
        """Where the two times are equal; of several such numbers, between which neither is ahead, the middle one."""
        before = np.flatnonzero(np.diff(self.ahead > 0))
        start = before[len(before) // 2]
        (low, high), (fewer, more) = self.ahead[start : start + 2], self.threads[start : start + 2]
        return float(fewer + low / (low - high) * (more - fewer))


def _curve_of(sides: Mapping[int, LogMean], accelerator: LogMean, together: int = 1) -> _Curve:
    from scipy.interpolate import PchipInterpolator  # a third of a second, which most runs need not wait for

    logs, means = np.log(list(sides)), np.array([side.mean for side in sides.values()])
    last = len(logs) - 1
    places = np.unique([np.linspace(few, many, PLACES) for few, many in pairwise(logs)]) if last else logs
    below = np.clip(np.searchsorted(logs, places, side="right") - 1, 0, max(0, last - 1))
    above = np.minimum(below + 1, last)
    share = (places - logs[below]) / (logs[above] - logs[below]) if last else np.zeros(1)
    straight = np.interp(places, logs, means)
    smooth = PchipInterpolator(logs, means)(places) if last else straight
    variances, fourths = (np.array([getattr(side, name) for side in sides.values()]) for name in ("variance", "fourth"))
    variance = weighed(variances[below], variances[above], share, 2) + accelerator.variance
    fourth = weighed(fourths[below], fourths[above], share, 4) + accelerator.fourth
    tolerance = t_errors(variance, fourth, 1 - (1 - CONFIDENCE) / 2 / together) + np.abs(smooth - straight)
    return _Curve(np.exp(places), smooth - accelerator.mean, tolerance)


def _set(curve: _Curve, held: float) -> tuple[float | None, float | None]:
    """Ends of the 95 % set, which holds `held` at any rate; None where it is open, or with one trial of a side."""
    if np.isinf(curve.tolerance).any():
        return None, None
    inside = np.abs(curve.ahead) <= curve.tolerance
    reached = [held, *curve.threads[inside].tolist()]
    return (None if inside[0] else min(reached)), (None if inside[-1] else max(reached))


def cores_worth_of(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row for each line, size and accelerator; none at a size that refinement added, which has one CPU side only.

    CPU sides that ran on the same number of threads count as one, with the trials of all.
    """
    rows = []
    for key, line in with_ok_times(measurements).groupby(LINE_AXES, sort=False):
        for size, cell in at_common_sizes(line, "device").groupby("size"):
            axes = dict(zip(LINE_AXES, key, strict=True)) | {"size": size}
            cpu = cell[cell["device"].map(is_cpu)]
            for contender, own in cell[~cell["device"].map(is_cpu)].groupby("device", sort=False):
                rows.append(axes | _compare(str(contender), cpu, own))
    return table_of("cores_worth", rows)


def _compare(contender: str, cpu: pd.DataFrame, own: pd.DataFrame) -> dict[str, object]:
    timed = cpu.dropna(subset=["step_time_s", "threads"]).astype({"threads": int})
    counts = timed["threads"].unique().tolist()
    cpu_s = {count: timed.loc[timed["threads"] == count, "step_time_s"].tolist() for count in counts}
    own_s = own["step_time_s"].dropna().tolist()
    return {
        "contender": contender,
        "size_name": own["size_name"].iloc[0],
        "parameters": own["parameters"].max(),
        **worth_in_cores(cpu_s, own_s),
        "measured_cores": sorted(cpu_s),
        "trials": min(map(len, (*cpu_s.values(), own_s))),
        "baseline_name": device_name_of(cpu),
        "contender_name": device_name_of(own),
    }

"""How many CPU cores an accelerator is worth: on how many the CPU would take the same time.

Between the measured numbers of threads the logarithm of the CPU's time is taken as a straight line in the logarithm of
their number, which is exact for a power law. Nothing is extrapolated. The 95 % set holds the numbers at which the two
times do not differ by more than Welch's t quantile times the standard error of that line and the accelerator's time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from crossover.analysis.style import cores_text
from crossover.analysis.summary import CONFIDENCE
from crossover.analysis.tables import LINE_AXES, with_ok_times
from crossover.records import is_cpu

CORES_STATUSES = {
    "between": "the CPU is slower on few cores and faster on many",
    "more": "the CPU is slower on every number of cores measured",
    "fewer": "the CPU is faster on every number of cores measured",
    "more_is_slower": "the CPU is slower on some number of cores than on fewer: no single number",
    "incomplete": "one side has no time",
}
"""How the search for the number of cores can end."""

CORES_COLUMNS = {
    "contender": "the accelerator",
    "size_name": "what the size axis counts",
    "parameters": "trainable parameters of the model",
    "status": "how the search ended: " + ", ".join(CORES_STATUSES),
    "message": "the same in words",
    "cores": "cores on which the CPU would take the accelerator's time, interpolated; else empty",
    "cores_low": "lower end of the 95 % set; empty: open, or one trial",
    "cores_high": "upper end of the 95 % set; empty: open, or one trial",
    "measured_cores": "numbers of cores on which the CPU has a time, which is threads of torch",
    "trials": "fewest ok trials behind a time; with one, the number is indicative",
    "baseline_name": "name of the CPU",
    "contender_name": "name of the accelerator",
}
"""The columns of a number of cores beside the axes of its line and its size."""

POINTS = 2000
"""Places between two measured numbers of cores at which the 95 % set is looked for."""


@dataclass(frozen=True)
class CoresWorth:
    """How many cores an accelerator is worth; ends of the 95 % set are None where it is open, or not known."""

    status: str
    message: str
    cores: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class _Side:
    """Mean of the logarithms of a side's times, its squared standard error, and the trials less one."""

    mean: float
    variance: float
    freedom: int

    @classmethod
    def of(cls, medians_s: Sequence[float]) -> _Side:
        logs = [math.log(median) for median in medians_s]
        variance = statistics.variance(logs) / len(logs) if len(logs) > 1 else math.nan
        return cls(math.fsum(logs) / len(logs), variance, len(logs) - 1)


def worth_in_cores(cpu_s: Mapping[int, Sequence[float]], accelerator_s: Sequence[float]) -> CoresWorth:
    """How many cores take as long as an accelerator.

    `cpu_s` maps a number of threads to the medians of its trials, `accelerator_s` holds those of the accelerator, all
    in seconds. The set takes two trials of every side.
    """
    timed = {threads: medians for threads, medians in sorted(cpu_s.items()) if len(medians)}
    if not timed or not len(accelerator_s):
        return CoresWorth("incomplete", CORES_STATUSES["incomplete"])
    sides = {threads: _Side.of(medians) for threads, medians in timed.items()}
    accelerator = _Side.of(accelerator_s)
    ahead = {threads: side.mean - accelerator.mean for threads, side in sides.items()}
    fewest, most = min(sides), max(sides)
    if min(ahead.values()) > 0:
        low, _ = _set(sides, accelerator, most)
        return CoresWorth("more", f"more than {cores_text(most)}", low=low)
    if max(ahead.values()) < 0:
        _, high = _set(sides, accelerator, fewest)
        return CoresWorth("fewer", f"less than {cores_text(fewest)}", high=high)
    for (few, slow), (many, fast) in pairwise(sides.items()):
        if fast.mean > slow.mean:
            return CoresWorth("more_is_slower", f"no single number: {many} cores are slower than {few}")
    root = _root(ahead)
    return CoresWorth("between", f"about {cores_text(root)}", root, *_set(sides, accelerator, root))


def _root(ahead: Mapping[int, float]) -> float:
    """Where a falling line through the points, straight in the logarithm of the threads, is zero."""
    threads = sorted(ahead, reverse=True)
    return float(np.exp(np.interp(0, [ahead[count] for count in threads], np.log(threads))))


def _set(sides: Mapping[int, _Side], accelerator: _Side, held: float) -> tuple[float | None, float | None]:
    """Ends of the 95 % set, which holds `held` at any rate; None where it is open, or with one trial of a side."""
    if any(side.freedom == 0 for side in (*sides.values(), accelerator)):
        return None, None
    inside = _undecided(sides, accelerator)
    fewest, most = math.log(min(sides)), math.log(max(sides))
    low, high = (math.exp(end([math.log(held), *inside])) for end in (min, max))
    return (None if fewest in inside else low), (None if most in inside else high)


def _undecided(sides: Mapping[int, _Side], accelerator: _Side) -> set[float]:
    """Logarithms of the numbers of cores at which neither side is surely ahead, among POINTS between two measured."""
    found: set[float] = set()
    points = list(sides.items())
    for (few, slow), (many, fast) in pairwise(points if len(points) > 1 else points * 2):
        share = np.linspace(0, 1, POINTS if few < many else 1)
        parts = np.stack([(1 - share) ** 2 * slow.variance, share**2 * fast.variance, share * 0 + accelerator.variance])
        freedoms = np.array([[slow.freedom], [fast.freedom], [accelerator.freedom]])
        variance, squares = parts.sum(axis=0), (parts**2 / freedoms).sum(axis=0)
        freedom = np.divide(variance**2, squares, out=np.ones_like(share), where=squares > 0)
        spread = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(variance)
        distance = np.abs((1 - share) * slow.mean + share * fast.mean - accelerator.mean)
        places = (1 - share) * math.log(few) + share * math.log(many)
        found |= set(places[distance <= spread].tolist())
    return found


def compare_cores(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row for each line, size and accelerator.

    CPU sides that ran on the same number of threads count as one, with the trials of all.
    """
    rows = []
    for key, cell in with_ok_times(measurements).groupby([*LINE_AXES, "size"], sort=False):
        cpu = cell[cell["device"].map(is_cpu)]
        for contender, own in cell[~cell["device"].map(is_cpu)].groupby("device", sort=False):
            rows.append(dict(zip([*LINE_AXES, "size"], key, strict=True)) | _compare(str(contender), cpu, own))
    return pd.DataFrame(rows, columns=[*LINE_AXES, "size", *CORES_COLUMNS]).convert_dtypes()


def _compare(contender: str, cpu: pd.DataFrame, own: pd.DataFrame) -> dict[str, object]:
    timed = cpu.dropna(subset=["step_time_s", "threads"]).astype({"threads": int})
    counts = timed["threads"].unique().tolist()
    cpu_s = {count: timed.loc[timed["threads"] == count, "step_time_s"].tolist() for count in counts}
    own_s = own["step_time_s"].dropna().tolist()
    found = worth_in_cores(cpu_s, own_s)
    return {
        "contender": contender,
        "size_name": own["size_name"].iloc[0],
        "parameters": own["parameters"].max(),
        "status": found.status,
        "message": found.message,
        "cores": found.cores,
        "cores_low": found.low,
        "cores_high": found.high,
        "measured_cores": sorted(cpu_s),
        "trials": min(map(len, (*cpu_s.values(), own_s))),
        "baseline_name": _name(cpu),
        "contender_name": _name(own),
    }


def _name(rows: pd.DataFrame) -> str | None:
    names = rows["device_name"].dropna()
    return str(names.iloc[0]) if len(names) else None

"""Devices at their best: the fastest candidate of each device at each size, and comparisons of these.

A candidate is a combination of execution, precision, variant and, on a CPU, number of cores. The precisions of a
study's candidates count as equally accurate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.choices import Fastest, fastest
from crossover.compare.intervals import Floats
from crossover.compare.pairings import Pairing, XAxes
from crossover.config.study import Study
from crossover.config.words import BASELINE, X_AXES, is_cpu, ranks_of_side, series_axes
from crossover.tables.frames import at_common_points, first_row
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables

CANDIDATE_AXES = ["execution", "precision", "variant", "device"]
"""The columns that identify a candidate. A CPU limited to one core is the device `cpu-1`."""


def best_axes(x_axis: str) -> list[str]:
    """The axes that identify a series of devices at their best."""
    return [axis for axis in series_axes(x_axis) if axis not in CANDIDATE_AXES]


BEST = "best"
"""Value of `pair`, `execution` and, if variants differ, `variant` in rows about devices at their best."""

CANDIDATE_MARGIN = 1.1
"""Maximum time of a candidate in play, as a multiple of the time of the fastest candidate."""

CandidatesByStudy = Mapping[str, Study]
Candidate = tuple[str, ...]
"""The values of CANDIDATE_AXES."""


@dataclass(frozen=True)
class CandidatesAtSizes:
    """The candidates of a device, each measured at some points of the x axis."""

    logs: Mapping[int, Mapping[Candidate, Floats]]
    """ln(seconds) of ok trials, by size and candidate; an empty array if none is ok."""

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The candidates with a time at any size."""
        timed = (name for candidates in self.logs.values() for name, logs in candidates.items() if len(logs))
        return list(dict.fromkeys(timed))

    @cached_property
    def at_best(self) -> dict[int, tuple[Candidate, Fastest, dict[Candidate, float]]]:
        """For each size: the fastest candidate, its corrected trials, and each candidate's probability of being it."""
        at_sizes = {}
        for size, candidates in self.logs.items():
            if timed := [candidate for candidate, logs in candidates.items() if len(logs)]:
                best = fastest([candidates[candidate] for candidate in timed])
                at_sizes[size] = timed[best.index], best, dict(zip(timed, best.chances.tolist(), strict=True))
        return at_sizes

    def in_play(self, candidate: Candidate, size: int) -> bool:
        """True if a candidate is within CANDIDATE_MARGIN of the fastest at a size.

        A candidate that was not measured at this size is judged at the nearest smaller and larger sizes at which it was
        measured. It is in play if it is close to the fastest at one of them.
        """
        if candidate in self.logs.get(size, {}):
            return self._is_close(candidate, size)
        measured = [measured_size for measured_size, candidates in self.logs.items() if candidate in candidates]
        below = max((measured_size for measured_size in measured if measured_size < size), default=None)
        above = min((measured_size for measured_size in measured if measured_size > size), default=None)
        return any(self._is_close(candidate, nearest) for nearest in (below, above) if nearest is not None)

    def _is_close(self, candidate: Candidate, size: int) -> bool:
        candidates = self.logs[size]
        if not len(candidates[candidate]):
            return False
        least = min(logs.mean() for logs in candidates.values() if len(logs))
        return bool(candidates[candidate].mean() - least <= math.log(CANDIDATE_MARGIN))

    def is_complete(self, size: int) -> bool:
        """True if every candidate in play at a size was measured there."""
        return all(candidate in self.logs[size] for candidate in self.candidates if self.in_play(candidate, size))

    def best_logs(self) -> dict[int, Floats]:
        """ln(seconds) of the fastest candidate's trials, corrected for selection bias, at each complete size."""
        return {
            size: self.at_best[size][1].logs if size in self.at_best else np.empty(0)
            for size in self.logs
            if self.is_complete(size)
        }

    def numbers(self, candidate: Candidate, size: int) -> set[int]:
        """The numbers of a candidate's trials at a size, assuming that they start at 1 and that no trial failed."""
        return {*range(1, 1 + len(self.logs.get(size, {}).get(candidate, ())))}

    def unfinished(self, trials: int) -> dict[tuple[Candidate, int], set[int]]:
        """The trial numbers, up to `trials`, that each candidate in play lacks at a size at which it was measured."""
        return {
            (candidate, size): missing
            for size, candidates in self.logs.items()
            for candidate in candidates
            if (missing := {*range(1, trials + 1)} - self.numbers(candidate, size)) and self.in_play(candidate, size)
        }


@dataclass(frozen=True)
class Device(CandidatesAtSizes):
    """A device of a series, with the trials of its candidates."""

    device: str
    trials: Mapping[tuple[Candidate, int], pd.DataFrame]

    @classmethod
    def of(cls, device: str, rows: pd.DataFrame, along: str) -> Device:
        """Group the trials of a device by candidate and by point on axis `along`."""
        trials = {}
        logs: dict[int, dict[Candidate, Floats]] = {}
        for key, cell in rows.sort_values(along, kind="stable").groupby([*CANDIDATE_AXES, along], sort=False):
            *axes, size_text = map(str, key)
            candidate, size = tuple(axes), int(size_text)
            trials[candidate, size] = cell
            seconds = pd.to_numeric(cell.loc[_is_timed(cell), "step_time_s"])
            logs.setdefault(size, {})[candidate] = np.log(seconds.to_numpy(float))
        return cls(logs, device, trials)

    def numbers(self, candidate: Candidate, size: int) -> set[int]:
        """The numbers of a candidate's trials at a size, failed ones included."""
        return {*map(int, self.trials[candidate, size]["trial"])} if (candidate, size) in self.trials else set()

    def side(self) -> pd.DataFrame:
        """The trials of the fastest candidate at each complete size, with times corrected for selection bias."""
        parts = []
        for size, logs in self.best_logs().items():
            candidate = self.at_best[size][0] if len(logs) else next(iter(self.logs[size]))
            rows = self.trials[candidate, size]
            rows = rows[_is_timed(rows)] if len(logs) else rows.head(1)
            time_s = np.exp(logs) if len(logs) else math.nan
            parts.append(rows.assign(step_time_s=time_s, time=time_s, energy=math.nan, money=math.nan, run=math.nan))
        return pd.concat(parts).assign(device=self.device, side=self.device) if parts else pd.DataFrame()


def _is_timed(trials: pd.DataFrame) -> pd.Series:
    return (trials["status"] == "ok") & trials["step_time_s"].notna()


@dataclass(frozen=True)
class BestSeries:
    """A series of a study that has `candidates`, with its devices."""

    axes: dict[str, Any]
    x_axis: str
    precisions: tuple[str, ...]
    devices: Mapping[str, Device]

    def pairings(self) -> Iterator[Pairing]:
        """Pair each accelerator with the CPU, both at their best, where either has several candidates."""
        baseline = self.devices.get(BASELINE)
        for name, contender in self.devices.items():
            if baseline is None or is_cpu(name) or max(len(baseline.candidates), len(contender.candidates)) < 2:
                continue
            sides = [baseline.side(), contender.side()]
            if not all(map(len, sides)):
                continue
            both = pd.concat(sides)
            common = at_common_points(both, "side", X_AXES[self.x_axis])
            trials = common if len(common) else both
            variants = {variant for _, _, variant, _ in (*baseline.candidates, *contender.candidates)}
            series = {
                **self.axes,
                "variant": variants.pop() if len(variants) == 1 else BEST,
                "precision": "+".join(self.precisions),
                "execution": BEST,
            }
            yield Pairing(BEST, series, name, BASELINE, name, trials, self.x_axis)


def best_series(measurements: pd.DataFrame, candidates: CandidatesByStudy, x_axes: XAxes) -> Iterator[BestSeries]:
    """The series of each study in `candidates`, from trials that include those of its candidates."""
    for study, own in candidates.items():
        compared = own.compared or own
        axes, along = best_axes(x_axes[study]), X_AXES[x_axes[study]]
        rows = measurements[
            (measurements["study"] == study)
            & (measurements["device"].map(ranks_of_side) == 1)
            & measurements["precision"].isin(compared.precisions)
            & measurements["protocol"].isin(compared.protocols)
        ]
        for _, series in rows.groupby(axes, sort=False):
            names = series["device"].map(lambda side: BASELINE if is_cpu(side) else side)
            devices = {str(name): Device.of(str(name), of_device, along) for name, of_device in series.groupby(names)}
            yield BestSeries(first_row(series[axes]), x_axes[study], tuple(compared.precisions), devices)


def of_own_grid(measurements: pd.DataFrame, candidates: CandidatesByStudy) -> pd.DataFrame:
    """Drop the trials that were measured only as candidates, since their cells are outside of their study's grid."""
    if not candidates:
        return measurements
    columns = [measurements[name].astype(str) for name in ("study", *CANDIDATE_AXES)]
    in_grid = [
        study not in candidates or candidates[study].has(*candidate) for study, *candidate in zip(*columns, strict=True)
    ]
    return measurements[np.array(in_grid, dtype=bool)]


def standings_of(at_best: Iterable[BestSeries]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The columns CANDIDATES of each candidate cell, by the values of CELL_AXES."""
    standings = {}
    for series in at_best:
        for device in series.devices.values():
            for candidate, size in device.trials:
                names = dict(zip(CANDIDATE_AXES, candidate, strict=True))
                axes = series.axes | {X_AXES[series.x_axis]: size} | names
                standings[tuple(axes[axis] for axis in CELL_AXES)] = _standing(device, candidate, size)
    return standings


def candidates_of(tables: RunTables) -> pd.DataFrame:
    """The candidate cells, with device `cpu` for every CPU. Column `side` keeps the device as measured (`cpu-1`)."""
    cells = pd.concat([tables.cells, tables.candidate_cells], ignore_index=True).dropna(subset=["in_play"])
    return cells.assign(side=cells["device"], device=[BASELINE if is_cpu(side) else side for side in cells["device"]])


def _standing(device: Device, candidate: Candidate, size: int) -> dict[str, Any]:
    chosen, best, chances = device.at_best.get(size, (None, None, {}))
    return {
        "in_play": device.in_play(candidate, size),
        "counts": device.is_complete(size),
        "chosen": candidate == chosen,
        "chance": chances.get(candidate),
        "selection_bias": math.expm1(best.selection_bias) if best and candidate == chosen else None,
    }

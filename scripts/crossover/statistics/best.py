"""Devices at their best: the fastest way of a device at each size, and the comparison of two devices so run.

A way is an execution, a precision of the study's accuracy class, a variant, and for a CPU the number of cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from crossover.config.studies import Ways
from crossover.config.words import BASELINE, is_cpu
from crossover.statistics.choices import Fastest, fastest
from crossover.statistics.intervals import Floats, Interval, time_over_trials
from crossover.statistics.pairings import Pairing
from crossover.tables.frames import at_common_sizes, first_row
from crossover.tables.registry import table_of

BEST_AXES = ["study", "workload", "protocol", "batch_size", "machine"]
"""The axes of a line on which devices are compared at their best."""
WAY_AXES = ["execution", "precision", "variant", "device"]
"""The columns that identify a way; `device` is its side, as `cpu-1`."""
BEST = "best"
"""The pair, and the value of `execution` in its rows."""

WAY_MARGIN = 1.1
"""A way is in play if it takes at most this many times as long as the fastest."""

WaysByStudy = Mapping[str, Ways]
Way = tuple[str, ...]
"""The values of WAY_AXES."""


@dataclass(frozen=True)
class WaysAtSizes:
    """The ways of a device, each measured at some sizes."""

    logs: Mapping[int, Mapping[Way, Floats]]
    """ln(seconds) of the ok trials of each way by size; empty where none is ok."""

    @cached_property
    def ways(self) -> list[Way]:
        """The ways with a time at any size."""
        return list(dict.fromkeys(way for ways in self.logs.values() for way, logs in ways.items() if len(logs)))

    @cached_property
    def at_best(self) -> dict[int, tuple[Way, Fastest, dict[Way, float]]]:
        """At each size with a time: the fastest way, corrected for selection bias, and each way's chance."""
        at_sizes = {}
        for size, ways in self.logs.items():
            if timed := [way for way, logs in ways.items() if len(logs)]:
                best = fastest([ways[way] for way in timed])
                at_sizes[size] = timed[best.index], best, dict(zip(timed, best.chances.tolist(), strict=True))
        return at_sizes

    def in_play(self, way: Way, size: int) -> bool:
        """Whether a way may be the fastest at a size; where it was not measured, by the nearest that were."""
        if way in self.logs.get(size, {}):
            return self._is_close(way, size)
        measured = [other for other, ways in self.logs.items() if way in ways]
        below = max((other for other in measured if other < size), default=None)
        above = min((other for other in measured if other > size), default=None)
        return any(self._is_close(way, other) for other in (below, above) if other is not None)

    def _is_close(self, way: Way, size: int) -> bool:
        ways = self.logs[size]
        if not len(ways[way]):
            return False
        least = min(logs.mean() for logs in ways.values() if len(logs))
        return bool(ways[way].mean() - least <= math.log(WAY_MARGIN))

    def counts(self, size: int) -> bool:
        """Whether every way in play at a size was measured there."""
        return all(way in self.logs[size] for way in self.ways if self.in_play(way, size))

    def best_logs(self) -> dict[int, Floats]:
        """ln(seconds) of the fastest way's trials at the sizes that count, as `fastest` corrects them.

        Empty at a size where all trials failed.
        """
        return {
            size: self.at_best[size][1].logs if size in self.at_best else np.empty(0)
            for size in self.logs
            if self.counts(size)
        }

    def numbers(self, way: Way, size: int) -> set[int]:
        """Numbers of the trials measured of a way at a size."""
        return {*range(1, 1 + len(self.logs.get(size, {}).get(way, ())))}

    def unfinished(self, trials: int) -> dict[tuple[Way, int], set[int]]:
        """Numbers of the trials, of 1 to `trials`, that ways in play lack, by way and size."""
        return {
            (way, size): missing
            for size, of_ways in self.logs.items()
            for way in of_ways
            if (missing := {*range(1, trials + 1)} - self.numbers(way, size)) and self.in_play(way, size)
        }


@dataclass(frozen=True)
class Device(WaysAtSizes):
    """A device on a line, with the trials of its ways."""

    device: str
    trials: Mapping[tuple[Way, int], pd.DataFrame]

    @classmethod
    def of(cls, device: str, rows: pd.DataFrame) -> Device:
        """The device of some trials."""
        trials = {}
        logs: dict[int, dict[Way, Floats]] = {}
        for key, cell in rows.sort_values("size", kind="stable").groupby([*WAY_AXES, "size"], sort=False):
            *axes, size_text = map(str, key)
            way, size = tuple(axes), int(size_text)
            trials[way, size] = cell
            seconds = pd.to_numeric(cell.loc[_is_timed(cell), "step_time_s"])
            logs.setdefault(size, {})[way] = np.log(seconds.to_numpy(float))
        return cls(logs, device, trials)

    def numbers(self, way: Way, size: int) -> set[int]:
        """Numbers of the trials measured of a way at a size, however they ended."""
        return {*map(int, self.trials[way, size]["trial"])} if (way, size) in self.trials else set()

    def side(self) -> pd.DataFrame:
        """The trials of its fastest ways at the sizes that count, with corrected times.

        Where all failed, one trial without a time.
        """
        parts = []
        for size, logs in self.best_logs().items():
            way = self.at_best[size][0] if len(logs) else next(iter(self.logs[size]))
            rows = self.trials[way, size]
            rows = rows[_is_timed(rows)] if len(logs) else rows.head(1)
            time_s = np.exp(logs) if len(logs) else math.nan
            parts.append(rows.assign(step_time_s=time_s, time=time_s, energy=math.nan, money=math.nan))
        return pd.concat(parts).assign(device=self.device, side=self.device) if parts else pd.DataFrame()


def _is_timed(trials: pd.DataFrame) -> pd.Series:
    """Whether each trial ended ok with a time."""
    return (trials["status"] == "ok") & trials["step_time_s"].notna()


@dataclass(frozen=True)
class BestLine:
    """A line of a study with `ways`, and its devices."""

    axes: dict[str, Any]
    precisions: tuple[str, ...]
    devices: Mapping[str, Device]

    def pairings(self) -> Iterator[Pairing]:
        """Each accelerator against the CPU, both at their best, if either has several ways."""
        baseline = self.devices.get(BASELINE)
        for name, contender in self.devices.items():
            if baseline is None or is_cpu(name) or max(len(baseline.ways), len(contender.ways)) < 2:
                continue
            sides = [baseline.side(), contender.side()]
            if not all(map(len, sides)):
                continue
            both = pd.concat(sides)
            common = at_common_sizes(both, "side")
            both = common if len(common) else both
            variants = {way[WAY_AXES.index("variant")] for device in (baseline, contender) for way in device.ways}
            line = {
                **self.axes,
                "variant": variants.pop() if len(variants) == 1 else BEST,
                "precision": "+".join(self.precisions),
                "execution": BEST,
            }
            yield Pairing(BEST, line, name, BASELINE, name, both)


def best_lines(measurements: pd.DataFrame, ways: WaysByStudy) -> Iterator[BestLine]:
    """The lines of the studies that have `ways`."""
    for study, spec in ways.items():
        rows = measurements[
            (measurements["study"] == study)
            & measurements["precision"].isin(spec.precisions)
            & measurements["protocol"].isin(spec.protocols)
        ]
        for _, line in rows.groupby(BEST_AXES, sort=False):
            names = line["device"].map(lambda side: BASELINE if is_cpu(side) else side)
            devices = {str(name): Device.of(str(name), of_device) for name, of_device in line.groupby(names)}
            yield BestLine(first_row(line[BEST_AXES]), tuple(spec.precisions), devices)


def of_own_grid(measurements: pd.DataFrame, ways: WaysByStudy) -> pd.DataFrame:
    """The trials without those of cells that only `ways` added, which no other comparison uses."""
    if not ways:
        return measurements
    columns = [measurements[name].astype(str) for name in ("study", "execution", "precision", "device")]
    in_grid = [study not in ways or ways[study].has_own(*way) for study, *way in zip(*columns, strict=True)]
    return measurements[np.array(in_grid, dtype=bool)]


def best_ways_of(measurements: pd.DataFrame, ways: WaysByStudy) -> pd.DataFrame:
    """Table `best_ways`: one row a way, device and size, with the way's chance to be the fastest."""
    rows = [
        {**line.axes, **_row(device, way, size)}
        for line in best_lines(measurements, ways)
        for device in line.devices.values()
        for way, size in device.trials
    ]
    return table_of("best_ways", rows)


def _row(device: Device, way: Way, size: int) -> dict[str, Any]:
    trials, logs = device.trials[way, size], device.logs[size][way]
    execution, precision, variant, side = way
    time = time_over_trials(np.exp(logs).tolist()) if len(logs) else Interval(math.nan)
    failed = trials[trials["status"] != "ok"]
    first = first_row(failed if len(failed) else trials)
    chosen, best, chances = device.at_best.get(size, (None, None, {}))
    return {
        "size": size,
        "device": device.device,
        "execution": execution,
        "precision": precision,
        "variant": variant,
        "side": side,
        "size_name": first["size_name"],
        "parameters": first["parameters"],
        "status": first["status"],
        "reason": first["reason"],
        "step_time_s": time.mean,
        "step_time_low_s": time.low,
        "step_time_high_s": time.high,
        "trials": len(logs),
        "in_play": device.in_play(way, size),
        "counts": device.counts(size),
        "chosen": way == chosen,
        "chance": chances.get(way),
        "optimism": math.expm1(best.optimism) if best and way == chosen else None,
    }

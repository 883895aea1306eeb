"""The pairs of sides that are compared on a line: devices, precisions, executions and machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pandas as pd

from crossover.config.words import BASELINE, PLAIN_SIDES, is_cpu
from crossover.tables.frames import at_common_sizes, on_all_cores
from crossover.tables.registry import SERIES_AXES

SHARED_AXES = [axis for axis in SERIES_AXES if axis != "machine"]
"""The axes of a line that machines have in common."""


@dataclass(frozen=True)
class Pairing:
    """Two sides of a line."""

    pair: str
    """device, precision, execution, machine or best."""
    series: dict[str, object]
    """The line's axes; that of the pair has the contender's value."""
    device: str | None
    """The contender's device; None where the machine has no accelerator."""
    baseline: str
    contender: str | None
    trials: pd.DataFrame
    """The trials of both sides, named in column `side`."""
    other_machine: str | None = None
    """The baseline's machine, where it is not the line's."""

    @property
    def baseline_device(self) -> str | None:
        """The device of the baseline."""
        return self.baseline if self.pair in ("device", "best") else self.device

    @property
    def baseline_machine(self) -> object:
        """The machine of the baseline."""
        return self.other_machine or self.series["machine"]

    @property
    def is_headline(self) -> bool:
        """Whether it is the main question: an accelerator against all cores of the CPU beside it."""
        return self.pair == "device" and self.baseline == BASELINE and self.other_machine is None


def pairings(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Every pairing of every line within a machine: first the devices, then the precisions, then the executions."""
    yield from _devices(measurements)
    for axis in PLAIN_SIDES:
        yield from _settings(measurements, axis)


def machine_pairings(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Every pairing of two machines with a size in common: accelerators with CPUs, then the same device of both."""
    if measurements["machine"].nunique() < 2:
        return
    lines = [
        (dict(zip(SHARED_AXES, key, strict=True)), rows)
        for key, rows in on_all_cores(measurements).groupby(SHARED_AXES, sort=False)
    ]
    for pairs in (_devices_of_machines, _machines):
        for line, rows in lines:
            yield from (pairing for pairing in pairs(line, rows) if len(pairing.trials))


def compare_across(devices: Collection[str], other: Collection[str]) -> bool:
    """Whether the accelerators of a machine with `devices` are compared with the CPU of a machine with `other` ones.

    Only where the one lacks a CPU, or the other an accelerator: when would that GPU pay off over this CPU?
    """
    return BASELINE in other and (BASELINE not in devices or all(map(is_cpu, other)))


def _devices(measurements: pd.DataFrame) -> Iterator[Pairing]:
    for key, rows in measurements.groupby(SERIES_AXES, sort=False):
        line = dict(zip(SERIES_AXES, key, strict=True))
        devices = list(rows["device"].unique())
        fewer_threads = [device for device in devices if is_cpu(device) and device != BASELINE]
        accelerators = [device for device in devices if not is_cpu(device)]
        for contender in accelerators or [None]:
            for baseline in (BASELINE, *fewer_threads) if contender else (BASELINE,):
                both = rows[rows["device"].isin([baseline, contender])]
                sides = at_common_sizes(both, "device")
                # An unfinished run may lack a common size, or the CPU; the crossover then is `incomplete`.
                sides = next((table for table in (sides, both) if len(table)), rows)
                yield Pairing("device", line, contender, baseline, contender, sides.assign(side=sides["device"]))


def _settings(measurements: pd.DataFrame, axis: str) -> Iterator[Pairing]:
    """The precisions, or the executions, of each device against the plain one."""
    fixed = [name for name in (*SERIES_AXES, "device") if name != axis]
    plain = PLAIN_SIDES[axis]
    for key, rows in on_all_cores(measurements).groupby(fixed, sort=False):
        offered = list(rows.loc[rows["status"] != "unsupported", axis].unique())
        for contender in offered if plain in offered else ():
            if contender != plain:
                values = {**dict(zip(fixed, key, strict=True)), axis: contender}
                line = {name: values[name] for name in SERIES_AXES}
                sides = _sides(rows, axis, [plain, contender])
                yield Pairing(axis, line, str(values["device"]), plain, contender, sides)


def _devices_of_machines(line: dict[str, object], rows: pd.DataFrame) -> Iterator[Pairing]:
    """The accelerators of a machine against the CPU of another one, where `compare_across` says so."""
    devices = rows.groupby("machine", sort=False)["device"].unique()
    for other, of_other in devices.items():
        for machine, of_machine in devices.items():
            if other == machine or not compare_across(of_machine, of_other):
                continue
            for contender in (device for device in of_machine if not is_cpu(device)):
                of_baseline = (rows["machine"] == other) & (rows["device"] == BASELINE)
                both = rows[of_baseline | ((rows["machine"] == machine) & (rows["device"] == contender))]
                sides = _sides(both, "device", [BASELINE, contender])
                yield Pairing("device", {**line, "machine": machine}, contender, BASELINE, contender, sides, str(other))


def _machines(line: dict[str, object], rows: pd.DataFrame) -> Iterator[Pairing]:
    """A device of each machine against that of the first one that has it."""
    for device, of_device in rows.groupby("device", sort=False):
        first, *others = of_device["machine"].unique()
        for machine in others:
            sides = _sides(of_device, "machine", [first, machine])
            yield Pairing("machine", {**line, "machine": machine}, str(device), first, machine, sides, first)


def _sides(rows: pd.DataFrame, axis: str, values: Collection[str]) -> pd.DataFrame:
    """The rows of two values of an axis at the sizes that both have, with column `side`."""
    sides = at_common_sizes(rows[rows[axis].isin(values)], axis)
    return sides.assign(side=sides[axis])

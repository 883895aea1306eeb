"""Who is compared with whom, in tables `crossovers` and `ratios`: pairs of sides, by the axis on which they differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.config.studies import Cell
from crossover.config.words import (
    BASELINE,
    BASELINE_SETTINGS,
    CPU_THREADS,
    FROM_HOST,
    PROTOCOLS,
    X_AXES,
    is_cpu,
    series_axes,
)
from crossover.tables.frames import at_common_points, first_row, on_all_cores
from crossover.tables.registry import CELL_AXES


@dataclass(frozen=True)
class Pairing:
    """Two sides of a series."""

    pair: str
    """device, precision, execution, settings, protocol, machine or best."""
    series: dict[str, object]
    """The axes of the series; the axis on which the sides differ has the contender's value."""
    device: str | None
    """The contender's device; None if no accelerator was measured."""
    baseline: str
    contender: str | None
    trials: pd.DataFrame
    """The trials of both sides, which column `side` names. For the x axis `cpu_threads`, the contender's trials are
    repeated at every number of threads.
    """
    x_axis: str
    """One of `X_AXES`."""
    other_machine: str | None = None
    """The baseline's machine; None if it is that of the series."""

    @property
    def baseline_machine(self) -> object:
        return self.other_machine or self.series["machine"]

    @property
    def is_headline(self) -> bool:
        """True for the main question: an accelerator against all cores of its host's CPU."""
        return self.pair == "device" and self.baseline == BASELINE and self.other_machine is None

    @property
    def along(self) -> str:
        """The column of `trials` that has the points of the x axis."""
        return CPU_THREADS if self.x_axis == CPU_THREADS else X_AXES[self.x_axis]

    def cells(self) -> Iterator[tuple[int, Cell, Cell]]:
        """Each point with the contender's and the baseline's cell there, ascending; pooled sides have several cells."""
        cells: dict[int, dict[str, list[Cell]]] = {}
        columns = [self.trials[name].tolist() for name in ("side", self.along, *CELL_AXES)]
        for side, point, *axes in dict.fromkeys(zip(*columns, strict=True)):
            cell = Cell(**dict(zip(CELL_AXES, axes, strict=True)))
            cells.setdefault(point, {}).setdefault(side, []).append(cell)
        for point, by_side in sorted(cells.items()):
            for baseline in by_side.get(self.baseline, ()):
                yield from ((point, contender, baseline) for contender in by_side.get(str(self.contender), ()))


XAxes = Mapping[str, str]
"""The x axis of each study's crossovers."""


def pairings(measurements: pd.DataFrame, x_axes: XAxes) -> Iterator[Pairing]:
    """The pairings of each series within a machine: first of devices, then of precisions, then of executions."""
    studies = [(x_axes[str(study)], rows) for study, rows in measurements.groupby("study", sort=False)]
    for x_axis, rows in studies:
        yield from _over_threads(rows) if x_axis == CPU_THREADS else _devices(rows, x_axis)
    for axis in BASELINE_SETTINGS:
        for x_axis, rows in studies:
            if x_axis != CPU_THREADS:
                yield from _settings(rows, axis, x_axis)


def cell_pairings(measurements: pd.DataFrame, x_axes: XAxes) -> Iterator[Pairing]:
    """All pairings: those of devices, precisions and executions, then of settings and protocols, and of machines.

    Over numbers of cores, only devices have crossovers. The other sides are then paired over the size.
    """
    over_sizes = {study: "size" if x_axis == CPU_THREADS else x_axis for study, x_axis in x_axes.items()}
    yield from pairings(measurements, x_axes)
    over_cores = on_all_cores(measurements[measurements["study"].map(x_axes) == CPU_THREADS])
    for axis in BASELINE_SETTINGS:
        yield from _settings(over_cores, axis, "size")
    for study, rows in on_all_cores(measurements).groupby("study", sort=False):
        yield from _study_settings(rows, over_sizes[str(study)])
        yield from _protocols(rows, over_sizes[str(study)])
    yield from machine_pairings(measurements, over_sizes)


def baseline_settings(cells: Collection[Any]) -> dict[str, Any]:
    """The baseline settings of a study: `fp32` and `eager`, or a setting's only value; empty without a baseline."""
    baseline: dict[str, Any] = {}
    for axis, usual in BASELINE_SETTINGS.items():
        values = {getattr(key, axis) for key in cells}
        if len(values) > 1 and usual not in values:
            return {}
        baseline[axis] = usual if len(values) > 1 else values.pop()
    return baseline


def machine_pairings(measurements: pd.DataFrame, x_axes: XAxes) -> Iterator[Pairing]:
    """The pairings of machines with a point in common: first accelerators with CPUs, then devices of the same kind."""
    if measurements["machine"].nunique() < 2:
        return
    studies = on_all_cores(measurements).groupby("study", sort=False)
    series = [
        (x_axis, dict(zip(axes, key, strict=True)), rows)
        for study, of_study in studies
        if (x_axis := x_axes[str(study)]) != CPU_THREADS
        for axes in [[axis for axis in series_axes(x_axis) if axis != "machine"]]
        for key, rows in of_study.groupby(axes, sort=False)
    ]
    for pairs in (_pairings_across_machines, _pairings_of_machines):
        for x_axis, axes_of_series, rows in series:
            yield from (pairing for pairing in pairs(axes_of_series, rows, x_axis) if len(pairing.trials))


def compare_across(devices: Collection[str], cpu_machine_devices: Collection[str]) -> bool:
    """Whether to compare the accelerators of a machine, which has `devices`, with the CPU of another machine.

    They are compared if the first machine has no CPU times or the other machine has no accelerator.
    """
    return BASELINE in cpu_machine_devices and (BASELINE not in devices or all(map(is_cpu, cpu_machine_devices)))


def _devices(measurements: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    axes = series_axes(x_axis)
    for key, rows in measurements.groupby(axes, sort=False):
        series = dict(zip(axes, key, strict=True))
        devices = list(rows["device"].unique())
        fewer_threads = [device for device in devices if is_cpu(device) and device != BASELINE]
        accelerators = [device for device in devices if not is_cpu(device)]
        for contender in accelerators or [None]:
            for baseline in (BASELINE, *fewer_threads) if contender else (BASELINE,):
                both = rows[rows["device"].isin([baseline, contender])]
                sides = at_common_points(both, "device", X_AXES[x_axis])
                # An unfinished run may lack a common point, or the CPU; the crossover is then `incomplete`.
                sides = next((table for table in (sides, both) if len(table)), rows)
                trials = sides.assign(side=sides["device"])
                yield Pairing("device", series, contender, baseline, contender, trials, x_axis)


def _over_threads(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Each accelerator against the CPU over its number of threads; CPU sides with the same number are pooled."""
    axes = series_axes(CPU_THREADS)
    for key, rows in measurements.groupby(axes, sort=False):
        series = dict(zip(axes, key, strict=True))
        is_baseline = rows["device"].map(is_cpu).astype(bool)
        cpu = rows[is_baseline & rows["threads"].notna()]
        cpu = cpu.assign(side=BASELINE, **{CPU_THREADS: cpu["threads"].astype(int)})
        accelerators = rows[~is_baseline]
        for contender in accelerators["device"].unique() if len(accelerators) else [None]:
            constant = accelerators[accelerators["device"] == contender].assign(side=contender)
            counts = cpu[CPU_THREADS].unique()
            trials = pd.concat([cpu, *(constant.assign(**{CPU_THREADS: count}) for count in counts)])
            yield Pairing("device", series, contender, BASELINE, contender, trials, CPU_THREADS)


def _settings(measurements: pd.DataFrame, axis: str, x_axis: str) -> Iterator[Pairing]:
    """Each precision or execution (`axis`) that a device supports against the one in BASELINE_SETTINGS."""
    rows = on_all_cores(measurements)
    yield from _on_same_device(rows, rows[axis], BASELINE_SETTINGS[axis], axis, [axis], x_axis)


def _study_settings(rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Each combination of precision and execution against the study's `baseline_settings`."""
    baseline = baseline_settings(list(rows[[*BASELINE_SETTINGS]].drop_duplicates().itertuples()))
    varied = [axis for axis in baseline if rows[axis].nunique() > 1]
    if varied:
        names = rows[varied].agg(", ".join, axis=1)
        plain = ", ".join(baseline[axis] for axis in varied)
        yield from _on_same_device(rows, names, plain, "settings", [*BASELINE_SETTINGS], x_axis)


def _protocols(rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Resident data against each protocol with data from the host."""
    for protocol in FROM_HOST:
        both = rows[rows["protocol"].isin([PROTOCOLS[0], protocol])]
        yield from _on_same_device(both, both["protocol"], protocol, "protocol", ["protocol"], x_axis)


def _on_same_device(
    rows: pd.DataFrame, sides: pd.Series, baseline: str, pair: str, differing: Collection[str], x_axis: str
) -> Iterator[Pairing]:
    """Each side that a device supports against `baseline`; the sides differ only on the axes `differing`."""
    if baseline not in set(sides) or sides.nunique() < 2:
        return
    axes = [*series_axes(x_axis), "device"]
    for _, of_device in rows.assign(side=sides).groupby([axis for axis in axes if axis not in differing], sort=False):
        named = of_device["side"].to_numpy(object)
        offered = list(dict.fromkeys(named[(of_device["status"] != "unsupported").to_numpy(bool)]))
        for contender in offered if baseline in offered else ():
            if contender != baseline:
                both = of_device[(named == baseline) | (named == contender)]
                series = first_row(of_device[named == contender].head(1)[axes])
                device = str(series.pop("device"))
                trials = at_common_points(both, "side", X_AXES[x_axis])
                yield Pairing(pair, series, device, baseline, str(contender), trials, x_axis)


def _pairings_across_machines(series: dict[str, object], rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """The accelerators of a machine against the CPU of another machine, if `compare_across` allows it."""
    devices = rows.groupby("machine", sort=False)["device"].unique()
    for cpu_machine, cpu_machine_devices in devices.items():
        for machine, machine_devices in devices.items():
            if cpu_machine == machine or not compare_across(machine_devices, cpu_machine_devices):
                continue
            for contender in (device for device in machine_devices if not is_cpu(device)):
                of_baseline = (rows["machine"] == cpu_machine) & (rows["device"] == BASELINE)
                both = rows[of_baseline | ((rows["machine"] == machine) & (rows["device"] == contender))]
                sides = _sides(both, "device", [BASELINE, contender], x_axis)
                on_machine = {**series, "machine": machine}
                yield Pairing("device", on_machine, contender, BASELINE, contender, sides, x_axis, str(cpu_machine))


def _pairings_of_machines(series: dict[str, object], rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Each device of a machine against the same device of the first machine that has it."""
    for device, of_device in rows.groupby("device", sort=False):
        first, *others = of_device["machine"].unique()
        for machine in others:
            sides = _sides(of_device, "machine", [first, machine], x_axis)
            on_machine = {**series, "machine": machine}
            yield Pairing("machine", on_machine, str(device), first, machine, sides, x_axis, first)


def _sides(rows: pd.DataFrame, axis: str, values: Collection[str], x_axis: str) -> pd.DataFrame:
    sides = at_common_points(rows[rows[axis].isin(values)], axis, X_AXES[x_axis])
    return sides.assign(side=sides[axis])

"""Who is compared with whom: pairs of sides, by the axis on which they differ.

Table `ratios` has a row for each pair of cells of a pairing, and table `crossovers` for each of its `costs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, pairwise

import numpy as np
import pandas as pd

from crossover.compare.cells import SECONDS_PER_HOUR, hourly_price, numbers_of
from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossover_curve import Advantages, advantages_of_table
from crossover.compare.intervals import CLOCK_RESOLUTION, RESOLUTIONS, SampleMean
from crossover.compare.payback import startups_of
from crossover.config.studies import Cell
from crossover.config.study import Epochs, steps_of_run
from crossover.config.words import (
    BASELINE,
    BASELINE_SETTINGS,
    CPU_THREADS,
    EACH,
    FROM_HOST,
    GPUS,
    PROTOCOLS,
    X_AXES,
    is_cpu,
    ranks_of_side,
    series_axes,
    unit_of_side,
)
from crossover.tables.frames import at_common_points, first_row, on_all_cores
from crossover.tables.registry import CELL_AXES, COSTS

XAxes = Mapping[str, str]
"""The x axis of each study's crossovers."""

StepsOfRuns = Mapping[str, int | Epochs | None]
"""The key `steps_per_run` of each study."""

REFERENCE = "reference"
"""The kind of pair of this machine with one measured elsewhere."""


@dataclass(frozen=True)
class Prediction:
    """What the contender's times rest on if they are predicted for a host on which it was not measured."""

    slowdown: float
    """Time of small steps on this host over that on the contender's own."""
    deviation: Mapping[float, float]
    """Standard deviation of the error of ln(time), by point."""
    host_share: Mapping[float, float]
    """The host's share of a predicted step, by point; above 0."""
    points: tuple[int, ...]
    """All points at which the contender was measured, also where this host was not."""
    spread: SampleMean | None
    """With the variance of ln(time) of a single trial on the CPU of the contender's own host; None if unknown."""


@dataclass(frozen=True)
class Pairing:
    """Two sides of a series."""

    pair: str
    """What the sides differ in: device, precision, execution, variant, settings (precision and execution), protocol or
    machine; gpus: the number of GPUs, or of processes on the CPU; reference: a machine measured elsewhere; best:
    devices, each with its fastest candidate.
    """
    series: dict[str, object]
    """The axes of the series; the axis on which the sides differ has the contender's value."""
    device: str | None
    """The contender's device; None if no accelerator was measured."""
    baseline: str
    contender: str | None
    trials: pd.DataFrame
    """The trials of both sides, which column `side` names, with the columns of `with_costs`. For the x axis
    `cpu_threads`, the contender's trials are repeated at every number of threads.
    """
    x_axis: str
    """One of `X_AXES`."""
    other_machine: str | None = None
    """The baseline's machine; None if it is that of the series."""
    prediction: Prediction | None = None
    has_crossovers: bool = True
    """False for a pair that has ratios only."""
    second_axis: bool = False
    """True along the second axis of a study; the pair then has a crossover in time only."""

    @property
    def study(self) -> str:
        return str(self.series["study"])

    @property
    def baseline_machine(self) -> object:
        return self.other_machine or self.series["machine"]

    @property
    def is_headline(self) -> bool:
        """True for the main question: an accelerator against all cores of its host's CPU."""
        return self.pair == "device" and self.baseline == BASELINE and self.other_machine is None

    @property
    def axis(self) -> str:
        """The axis of cells on which the sides differ."""
        return "device" if self.pair == GPUS else self.pair

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

    def advantages(self, cost: str, x: str) -> Advantages:
        """The contender's advantage in one of COSTS, over column `x` of the trials."""
        if (cost, x) not in self._advantages:
            advantages = advantages_of_table(
                self.trials,
                self.baseline,
                self.contender or "accelerator",
                RESOLUTIONS.get(cost, CLOCK_RESOLUTION),
                constant=self.x_axis == CPU_THREADS,
                x=x,
                cost=cost,
                spread=self.prediction.spread if self.prediction else None,
            )
            if self.prediction:
                deviations = self.by_x(self.prediction.deviation, x)
                advantages = replace(advantages, deviation=np.array([deviations[size] for size in advantages.sizes]))
            self._advantages[cost, x] = advantages
        return self._advantages[cost, x]

    @cached_property
    def _advantages(self) -> dict[tuple[str, str], Advantages]:
        """What `advantages` returned before: ratios, crossovers and corrections ask for the same."""
        return {}

    def by_x(self, values: Mapping[float, float], x: str) -> dict[float, float]:
        """Values by point, by column `x` of the trials instead."""
        points = zip(self.trials[x], self.trials[self.along], strict=True)
        return {size: values[point] for size, point in points if point in values}

    @property
    def costs(self) -> list[str]:
        """The costs in which the sides have a crossover: those with values; for a headline always the time."""
        return [
            cost
            for cost in (COSTS if self.has_crossovers else ())
            if not (self.second_axis and cost != "time")
            and ((self.is_headline and cost == "time") or (self.contender and self.trials[cost].notna().any()))
        ]

    def crossover(self, cost: str, x: str, together: int = 1) -> Crossover:
        """The crossover in one of COSTS over column `x` of the trials; `together` is as for `Advantages`."""
        if self.contender is None:
            return Crossover("no_accelerator")
        return crossover_of(replace(self.advantages(cost, x), together=together))

    def p_value(self, cost: str) -> float | None:
        """The p-value of the hypothesis that the sides do not differ anywhere.

        It is NaN if there are no intervals, and None if no size has a cost on both sides.
        """
        advantages = self.advantages(cost, self.x_axis)
        return advantages.p_value() if len(advantages.sizes) else None

    def least_trials(self, cost: str) -> int:
        """The smallest number of trials with a cost, of a side at a point; 0 without any."""
        cells = zip(self.trials[self.x_axis].tolist(), self.trials["side"].tolist(), strict=True)
        return min(Counter(compress(cells, self.trials[cost].notna().tolist())).values(), default=0)

    def signs(self, together: int) -> dict[float, float]:
        """By point with times on both sides: 1 where the contender is significantly faster, -1 where slower, else 0."""
        advantages = replace(self.advantages("time", self.along), together=together)
        return dict(zip(advantages.sizes.tolist(), advantages.sure_signs().tolist(), strict=True))


def pairings(
    measurements: pd.DataFrame,
    x_axes: XAxes,
    prices: Mapping[str, float] | None = None,
    runs: StepsOfRuns | None = None,
) -> Iterator[Pairing]:
    """The pairings of a run's trials: of devices, of settings, of protocols, then of machines.

    `topics.analysis` adds those of devices at their best (`compare.best`), those with references (`topics.references`),
    and those along second axes, which it gets from here.

    Over numbers of cores, only devices have crossovers; other sides are then paired over the size, for their ratios.
    The arguments are as for `with_costs`.
    """
    for pairing in _pairings(with_costs(measurements, prices, runs), x_axes):
        along_study = pairing.x_axis == x_axes[pairing.study]
        yield replace(pairing, has_crossovers=along_study and pairing.pair not in ("settings", "protocol"))


def _pairings(priced: pd.DataFrame, x_axes: XAxes) -> Iterator[Pairing]:
    studies = [(x_axes[str(study)], rows) for study, rows in priced.groupby("study", sort=False)]
    for x_axis, rows in studies:
        alone = rows[rows["device"].map(ranks_of_side) == 1]
        yield from _over_threads(alone) if x_axis == CPU_THREADS else _devices(alone, x_axis)
        yield from _numbers_of_gpus(rows, "size" if x_axis == CPU_THREADS else x_axis)
    on_cores = [("size" if x_axis == CPU_THREADS else x_axis, on_all_cores(rows)) for x_axis, rows in studies]
    for axis in BASELINE_SETTINGS:
        for x_axis, rows in on_cores:
            yield from _on_same_device(rows, rows[axis], _baseline(rows, axis), axis, [axis], x_axis)
    for x_axis, rows in on_cores:
        yield from _on_same_device(rows, rows["variant"], _baseline(rows, "variant"), "variant", ["variant"], x_axis)
        yield from _study_settings(rows, x_axis)
        yield from _protocols(rows, x_axis)
    if priced["machine"].nunique() > 1:
        series = [
            (x_axis, *of_series)
            for x_axis, rows in on_cores
            for of_series in _series(rows, [axis for axis in series_axes(x_axis) if axis != "machine"])
        ]
        for pairs in (_accelerators_and_cpus, _same_devices):
            for x_axis, axes_of_series, rows in series:
                yield from (pairing for pairing in pairs(axes_of_series, rows, x_axis) if len(pairing.trials))


def with_costs(
    measurements: pd.DataFrame, prices: Mapping[str, float] | None, runs: StepsOfRuns | None = None
) -> pd.DataFrame:
    """Add a column for each of COSTS: seconds, joules and money per step, and seconds per run.

    All costs are NaN for a trial that is not ok. Energy is also NaN if its counter did not change, money if there is no
    price, and the time of a run if the study has no steps per run (`runs`) or the start-up is unknown. `prices` is as
    for `hourly_price`.
    """
    ok = measurements["status"] == "ok"
    joules = pd.to_numeric(measurements["energy_per_step_j"]).astype(float)
    time_s = pd.to_numeric(measurements["step_time_s"]).astype(float).where(ok)
    sides = [*zip(measurements["machine"], measurements["device"], strict=True)]
    prices_of = {side: hourly_price(prices or {}, *side) for side in set(sides)}
    return measurements.assign(
        time=time_s,
        energy=joules.where(ok & (joules > 0)),
        money=time_s / SECONDS_PER_HOUR * np.array([prices_of[side] for side in sides], dtype=float),
        run=_run_times(measurements, runs or {}).where(ok),
    )


def _run_times(measurements: pd.DataFrame, runs: StepsOfRuns) -> pd.Series:
    of_runs = measurements[measurements["study"].isin([study for study, steps in runs.items() if steps])]
    keys = zip(of_runs["study"], of_runs["batch_size"], strict=True)
    steps = np.array([steps_of_run(runs[study], batch_size) for study, batch_size in keys], dtype=float)
    times_s = startups_of(of_runs) + steps * numbers_of(of_runs["step_time_s"])
    return pd.Series(times_s, of_runs.index, dtype=float).reindex(measurements.index)


def _baseline(rows: pd.DataFrame, axis: str) -> str:
    """The value that others are compared with: of BASELINE_SETTINGS, or else the first; empty without rows.

    `rows` are in the order in which a study lists its values.
    """
    values = [*rows[axis].unique()]
    usual = BASELINE_SETTINGS.get(axis, "")
    return usual if usual in values else next(iter(values), "")


def baseline_settings(rows: pd.DataFrame) -> dict[str, str]:
    """The baseline precision and execution of a study's trials or cells, which are in the order of the study."""
    return {axis: _baseline(rows, axis) for axis in BASELINE_SETTINGS}


def _series(rows: pd.DataFrame, axes: list[str]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    for _, of_series in rows.groupby(axes, sort=False):
        yield first_row(of_series[axes]), of_series


def _devices(measurements: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Each accelerator against each CPU side; without an accelerator, the CPU alone."""
    for series, rows in _series(measurements[measurements["protocol"] != EACH], series_axes(x_axis)):
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


def _numbers_of_gpus(measurements: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Several GPUs against one, and against the next smaller number of them."""
    for series, rows in _series(measurements, series_axes(x_axis)):
        devices = sorted(rows["device"].unique(), key=ranks_of_side)
        for unit in dict.fromkeys(map(unit_of_side, devices)):
            sides = [device for device in devices if unit_of_side(device) == unit]
            for smaller, contender in pairwise(sides):
                for baseline in dict.fromkeys((sides[0], smaller)):
                    both = rows[rows["device"].isin([baseline, contender])]
                    trials = at_common_points(both.assign(side=both["device"]), "side", X_AXES[x_axis])
                    if len(trials):
                        yield Pairing(GPUS, series, contender, baseline, contender, trials, x_axis)


def _over_threads(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Each accelerator against the CPU over its number of threads; CPU sides with the same number are pooled."""
    for series, rows in _series(measurements, series_axes(CPU_THREADS)):
        is_baseline = rows["device"].map(is_cpu).astype(bool)
        cpu = rows[is_baseline & rows["threads"].notna()]
        cpu = cpu.assign(side=BASELINE, **{CPU_THREADS: cpu["threads"].astype(int)})
        accelerators = rows[~is_baseline]
        for contender in accelerators["device"].unique() if len(accelerators) else [None]:
            constant = accelerators[accelerators["device"] == contender].assign(side=contender)
            counts = cpu[CPU_THREADS].unique()
            trials = pd.concat([cpu, *(constant.assign(**{CPU_THREADS: count}) for count in counts)])
            yield Pairing("device", series, contender, BASELINE, contender, trials, CPU_THREADS)


def _study_settings(rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Each combination of precision and execution against the study's `baseline_settings`."""
    baseline = baseline_settings(rows)
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


def _accelerators_and_cpus(series: dict[str, object], rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """The accelerators of a machine against the CPU of another.

    They are compared if the first machine has no CPU times or the other machine has no accelerator.
    """
    devices = rows.groupby("machine", sort=False)["device"].unique()
    for cpu_machine, of_cpu_machine in devices.items():
        for machine, of_machine in devices.items():
            is_asked = BASELINE not in of_machine or all(map(is_cpu, of_cpu_machine))
            if cpu_machine == machine or BASELINE not in of_cpu_machine or not is_asked:
                continue
            for contender in (device for device in of_machine if not is_cpu(device) and ranks_of_side(device) == 1):
                of_baseline = (rows["machine"] == cpu_machine) & (rows["device"] == BASELINE)
                both = rows[of_baseline | ((rows["machine"] == machine) & (rows["device"] == contender))]
                trials = at_common_points(both.assign(side=both["device"]), "side", X_AXES[x_axis])
                on_machine = {**series, "machine": machine}
                yield Pairing("device", on_machine, contender, BASELINE, contender, trials, x_axis, str(cpu_machine))


def _same_devices(series: dict[str, object], rows: pd.DataFrame, x_axis: str) -> Iterator[Pairing]:
    """Each device of a machine against the same device of the first machine that has it."""
    for device, of_device in rows.groupby("device", sort=False):
        first, *others = of_device["machine"].unique()
        for machine in others:
            both = of_device[of_device["machine"].isin([first, machine])]
            trials = at_common_points(both.assign(side=both["machine"]), "side", X_AXES[x_axis])
            on_machine = {**series, "machine": machine}
            yield Pairing("machine", on_machine, str(device), first, machine, trials, x_axis, first)

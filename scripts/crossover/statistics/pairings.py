"""What is compared with what: devices, and on one device precisions and executions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from crossover.config.words import BASELINE, is_cpu
from crossover.plan.stages import PLAIN_SIDES
from crossover.tables.frames import LINE_AXES, at_common_sizes, on_all_cores

PAIRS = ("device", "precision", "execution")
"""The axes whose values are compared within a machine."""


@dataclass(frozen=True)
class Pairing:
    """Two sides of a line."""

    pair: str
    line: dict[str, object]
    """The line's axes; that of the pair has the contender's value."""
    device: str | None
    """The contender's device; None where the machine has no accelerator."""
    baseline: str
    contender: str | None
    trials: pd.DataFrame
    """The trials of both sides, named in column `side`."""
    other_machine: str | None = None
    """The baseline's machine; None: the contender's, which is the line's."""

    @property
    def baseline_device(self) -> str | None:
        """The device of the baseline."""
        return self.baseline if self.pair == "device" else self.device

    @property
    def baseline_machine(self) -> object:
        """The machine of the baseline."""
        return self.other_machine or self.line["machine"]

    @property
    def is_headline(self) -> bool:
        """Whether it is the question that every line has: its accelerator against all of the CPU beside it."""
        return self.pair == "device" and self.baseline == BASELINE and self.other_machine is None


def pairings(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Every pairing of every line within a machine: first the devices, then the precisions, then the executions."""
    yield from _of_devices(measurements)
    for pair in PLAIN_SIDES:
        yield from _on_one_device(measurements, pair)


def _of_devices(measurements: pd.DataFrame) -> Iterator[Pairing]:
    for key, rows in measurements.groupby(LINE_AXES, sort=False):
        line = dict(zip(LINE_AXES, key, strict=True))
        devices = list(rows["device"].unique())
        fewer_threads = [device for device in devices if is_cpu(device) and device != BASELINE]
        accelerators = [device for device in devices if not is_cpu(device)]
        for contender in accelerators or [None]:
            for baseline in (BASELINE, *fewer_threads) if contender else (BASELINE,):
                own = rows[rows["device"].isin([baseline, contender])]
                sides = at_common_sizes(own, "device")
                # A run that has not finished may lack a size in common, or all of the CPU; the search then says so.
                sides = next((table for table in (sides, own) if len(table)), rows)
                yield Pairing("device", line, contender, baseline, contender, sides.assign(side=sides["device"]))


def _on_one_device(measurements: pd.DataFrame, pair: str) -> Iterator[Pairing]:
    fixed = [axis for axis in (*LINE_AXES, "device") if axis != pair]
    baseline = PLAIN_SIDES[pair]
    for key, rows in on_all_cores(measurements).groupby(fixed, sort=False):
        *_, device = key
        # A side that the device does not offer is no side.
        offered = list(rows.loc[rows["status"] != "unsupported", pair].unique())
        for contender in offered if baseline in offered else ():
            if contender != baseline:
                line = {**dict(zip(fixed, key, strict=True)), pair: contender}
                sides = at_common_sizes(rows[rows[pair].isin([baseline, contender])], pair)
                yield Pairing(
                    pair,
                    {axis: line[axis] for axis in LINE_AXES},
                    str(device),
                    baseline,
                    contender,
                    sides.assign(side=sides[pair]),
                )

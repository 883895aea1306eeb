"""What is compared across machines: the same device of two, and a CPU with an accelerator where a machine has no other.

By default an accelerator is compared with the CPU beside it, which `pairings` does. A machine that lacks one half of
that question is set against the other machines' half: when would their GPU pay off over this CPU?
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from crossover.config.words import BASELINE, is_cpu
from crossover.statistics.pairings import Pairing
from crossover.tables.frames import LINE_AXES, at_common_sizes, on_all_cores

MACHINES = "machine"
"""The pair of two machines, on the same device."""

SHARED_AXES = [axis for axis in LINE_AXES if axis != "machine"]
"""The axes of a line that machines have in common."""


def machine_pairings(measurements: pd.DataFrame) -> Iterator[Pairing]:
    """Every pairing of two machines, line by line; none in the rows of one machine, nor without a common size."""
    if measurements["machine"].nunique() < 2:
        return
    lines = [(dict(zip(SHARED_AXES, key, strict=True)), rows) for key, rows in _lines(measurements)]
    for line, rows in lines:
        yield from _cpu_against_accelerators(line, rows)
    for line, rows in lines:
        yield from _same_device(line, rows)


def _lines(measurements: pd.DataFrame) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    return iter(on_all_cores(measurements).groupby(SHARED_AXES, sort=False))


def _cpu_against_accelerators(line: dict[str, object], rows: pd.DataFrame) -> Iterator[Pairing]:
    """The accelerators of a machine against the CPU of another one, where either lacks its own other half."""
    devices = {str(machine): list(own["device"].unique()) for machine, own in rows.groupby("machine", sort=False)}
    for other, of_other in devices.items():
        for machine, own in devices.items():
            halves = BASELINE not in own or all(map(is_cpu, of_other))
            if other == machine or BASELINE not in of_other or not halves:
                continue
            for contender in (device for device in own if not is_cpu(device)):
                baseline = (rows["machine"] == other) & (rows["device"] == BASELINE)
                both = rows[baseline | ((rows["machine"] == machine) & (rows["device"] == contender))]
                sides = at_common_sizes(both, "device")
                if len(sides):
                    sides = sides.assign(side=sides["device"])
                    yield Pairing("device", {**line, "machine": machine}, contender, BASELINE, contender, sides, other)


def _same_device(line: dict[str, object], rows: pd.DataFrame) -> Iterator[Pairing]:
    """A device of each machine against that of the first one that has it."""
    for device, own in rows.groupby("device", sort=False):
        first, *others = own["machine"].unique()
        for machine in others:
            sides = at_common_sizes(own[own["machine"].isin([first, machine])], "machine")
            if len(sides):
                sides = sides.assign(side=sides["machine"])
                yield Pairing(MACHINES, {**line, "machine": machine}, str(device), first, machine, sides, first)

"""What a run says of memory: how full the device was, what ran out of it, and which setting takes least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.answers.wording import capitalised, listed
from crossover.config.words import BASELINE, DEVICES, HERE
from crossover.figures.style import bytes_text, device_label, percent_text
from crossover.statistics.largest_batches import largest_words
from crossover.statistics.problems import TO_FIT
from crossover.tables.frames import at_common_sizes, device_name_of, first_row, on_all_cores, records

SETTINGS = ["variant", "precision", "execution"]
"""The axes that a reader may change to save memory, the work of a step staying the same."""

NEARLY_FULL = 0.9
"""Share of a device's memory above which little else fits: its context and what is reserved stand beside tensors."""


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of one device of a study, in bytes; what is not known is None."""

    device: str
    name: str | None
    peak_bytes: float | None
    """The most that an ok trial took: of tensors on an accelerator, of the whole process on the CPU."""
    capacity_bytes: float | None
    place: str
    """The cell that took most."""
    lost: int
    """Cells that ran out of memory."""
    first_lost: str
    """The smallest of them."""
    settings: str
    """Which setting takes least, and which most."""
    machine: str = HERE
    lost_elsewhere: int = 0
    """Cells of other studies that ran out of the same memory."""

    @property
    def label(self) -> str:
        """'GPU (NVIDIA H200)', and whose, where machines are named."""
        return device_label(self.device, self.name, self.machine)

    @property
    def share(self) -> float | None:
        """Peak over capacity."""
        return self.peak_bytes / self.capacity_bytes if self.peak_bytes and self.capacity_bytes else None


def device_memories(trials: pd.DataFrame) -> list[DeviceMemory]:
    """Of each accelerator of one study's trials, or of the CPU where there is none; none where nothing is known."""
    machines = trials["machine"].unique()
    return [one for machine in machines for one in _of_machine(on_all_cores(trials[trials["machine"] == machine]))]


def _of_machine(rows: pd.DataFrame) -> list[DeviceMemory]:
    devices = [device for device in DEVICES if (rows["device"] == device).any()]
    accelerators = [device for device in devices if device != BASELINE]
    found = [_of_device(rows[rows["device"] == device], device) for device in accelerators or devices]
    return [one for one in found if one.peak_bytes is not None or one.lost]


def memory_answers(trials: pd.DataFrame, searches: pd.DataFrame | None) -> list[str]:
    """A few sentences a device, for one study; `searches` are its own, None where no batch was searched."""
    return [" ".join([verdict(one), *_details(one, searches)]) for one in device_memories(trials)]


def verdict(one: DeviceMemory) -> str:
    """Whether memory limits what was measured, and what it rests on."""
    memory = f"Memory of the {one.label}"
    taken = None if one.peak_bytes is None else _taken(one)
    if one.lost:
        cells = f"{one.lost:,} cell{'' if one.lost == 1 else 's'}"
        others = f", beside {one.lost_elsewhere:,} of other studies" if one.lost_elsewhere else ""
        text = f"{memory} is a limit: {cells} ran out of it{others}, the smallest at {one.first_lost}: {TO_FIT}."
        return f"{text} Where it sufficed, {taken}." if taken else text
    if one.share is None:
        return f"{memory}: {taken}."
    return f"{memory} {'is nearly full' if one.share > NEARLY_FULL else 'is no limit here'}: {taken}."


def _taken(one: DeviceMemory) -> str:
    """'tensors take up to 158 MB of its 150 GB, 0.11 % (12 linear layers)'."""
    what, whose = ("the process takes", "the host's") if one.device == BASELINE else ("tensors take", "its")
    text = f"{what} up to {bytes_text(one.peak_bytes or 0)}"
    if one.capacity_bytes and one.share is not None:
        text += f" of {whose} {bytes_text(one.capacity_bytes)}, {percent_text(one.share)}"
    return f"{text} ({one.place})" if one.place else text


def _details(one: DeviceMemory, searches: pd.DataFrame | None) -> list[str]:
    said = [one.settings] if one.settings else []
    if searches is not None:
        own = searches[(searches["device"] == one.device) & (searches["machine"] == one.machine)]
        named = varying(own, [axis for axis in NAMED_AXES if axis != "batch_size"])
        for row in records(own):
            name = name_by(row, named)
            text = largest_words(row)
            said.append(f"{name}: {text}." if name else f"{capitalised(text)}.")
    return said


def _of_device(rows: pd.DataFrame, device: str) -> DeviceMemory:
    column, capacity = (
        ("peak_rss_bytes", "memory_bytes") if device == BASELINE else ("peak_allocated_bytes", "device_memory_bytes")
    )
    numbers = rows.assign(peak=pd.to_numeric(rows[column]).astype(float))
    known = numbers[numbers["status"] == "ok"].dropna(subset=["peak"])
    sizes = pd.to_numeric(rows[capacity]).dropna()
    lost = rows[rows["status"] == "oom"].drop_duplicates(list(NAMED_AXES)).sort_values(["size", "batch_size"])
    named = varying(rows)
    most = known.loc[[known["peak"].idxmax()]] if len(known) else known
    return DeviceMemory(
        device,
        device_name_of(rows),
        float(most["peak"].iloc[0]) if len(most) else None,
        float(sizes.min()) if len(sizes) else None,
        name_by(first_row(most), named) if len(most) else "",
        len(lost),
        name_by(first_row(lost), named or NAMED_AXES) if len(lost) else "",
        "" if device == BASELINE else _settings(known),
        str(rows["machine"].iloc[0]),
    )


def _settings(known: pd.DataFrame) -> str:
    """Which setting takes least memory and which most, at the largest size and batch that all of them have."""
    named = varying(known, SETTINGS)
    if not named:
        return ""
    known = known.assign(setting=pd.Series(list(zip(*(known[axis] for axis in named), strict=True)), known.index))
    common = at_common_sizes(known, "setting")
    if common.empty:
        return ""
    common = common[common["size"] == common["size"].max()]
    by_batch = common.groupby("batch_size")["setting"].nunique()
    batch = by_batch[by_batch == by_batch.max()].index.max()
    peaks = common[common["batch_size"] == batch].groupby("setting", sort=False)["peak"].median()
    if len(peaks) < 2:
        return ""
    names = {setting: name_by(dict(zip(named, setting, strict=True)), named) for setting in peaks.index}
    least, most = (_all_with(names, peaks, bytes_text(end)) for end in (peaks.min(), peaks.max()))
    if len(least) == len(peaks):
        return f"It is the same in {listed(least)} ({bytes_text(peaks.min())})."
    return (
        f"Least in {listed(least)} ({bytes_text(peaks.min())}), most in {listed(most)} ({bytes_text(peaks.max())})"
        f"{_where(common, batch)}."
    )


def _where(common: pd.DataFrame, batch: int) -> str:
    row = first_row(common)
    return f", at {row['size']:,} {row['size_name']}, batch {batch:,}"


def _all_with(names: dict[tuple[str, ...], str], peaks: pd.Series, text: str) -> list[str]:
    """The settings whose memory reads the same."""
    return [name for setting, name in names.items() if bytes_text(peaks[setting]) == text]


def memory_of_devices(trials: Mapping[str, pd.DataFrame]) -> list[str]:
    """A sentence on each device whose memory is known: the study of `trials`, by study, that says most of it."""
    memories = [(study, one) for study, own in trials.items() for one in device_memories(own)]
    labels = dict.fromkeys(one.label for _, one in memories)
    found = [fullest([(study, one) for study, one in memories if one.label == label]) for label in labels]
    return [f"{verdict(one)} Study: {study}." for study, one in filter(None, found)]


def fullest(memories: Sequence[tuple[str, DeviceMemory]]) -> tuple[str, DeviceMemory] | None:
    """Of studies and their devices the one that says most of memory: what ran out of it, else what is fullest."""
    if not memories:
        return None
    study, most = max(memories, key=lambda item: (item[1].lost, item[1].share or 0))
    lost = sum(one.lost for _, one in memories if one.label == most.label)
    return study, replace(most, lost_elsewhere=lost - most.lost)

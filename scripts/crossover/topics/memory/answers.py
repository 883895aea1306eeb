"""Answers on memory: the peak of a step, cells that ran out of memory, and the setting with the lowest peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.compare.intervals import EQUIVALENT
from crossover.config.words import BASELINE, DEVICES
from crossover.tables.frames import at_common_points, device_name_of, first_row, on_all_cores
from crossover.tables.labels import NAMED_AXES, device_label, name_by, varying
from crossover.tables.registry import MEMORY_PARTS
from crossover.text import bytes_text, percent_text, with_noun
from crossover.topics.answer import Answer

SETTINGS = ["variant", "precision", "execution"]
"""Axes whose values are compared by their peak memory."""

NEARLY_FULL = 0.9
"""Share of a device's memory above which a peak nearly fills it; a peak omits the context and reserved memory."""


@dataclass(frozen=True, kw_only=True)
class Memory(Answer):
    """The highest peak of a device's cells."""

    kind = "memory"
    statuses = ("limit", "nearly_full", "no_limit", "unknown_capacity")

    peak_bytes: float | None
    is_growth: bool
    """Whether the peak is only the growth of the process, which held the step's data before: a CPU without parts."""
    capacity_bytes: float | None
    place: str
    """The cell with the peak."""
    lost: int
    """The number of cells that ran out of memory."""
    lost_place: str
    """The smallest of these."""

    @property
    def fullness(self) -> tuple[int, float]:
        return self.lost, (self.peak_bytes or 0) / self.capacity_bytes if self.capacity_bytes else 0

    def sentence(self) -> str:
        cells = with_noun(self.lost, "cell")
        about = {
            "limit": f" is a limit: {cells} ran out of it, the smallest at {self.lost_place}",
            "nearly_full": " is nearly full",
            "no_limit": " is no limit here",
        }.get(self.status, "")
        return f"Memory of the {self.device}{about}{self._need()}"

    def _need(self) -> str:
        if self.peak_bytes is None:
            return ""
        a_step = "; where it sufficed, a step" if self.status == "limit" else ": a step"
        peak = bytes_text(self.peak_bytes)
        need = f"adds up to {peak} to its data" if self.is_growth else f"needs up to {peak}"
        if self.capacity_bytes is not None:
            share = percent_text(self.peak_bytes / self.capacity_bytes)
            need += f" of {bytes_text(self.capacity_bytes)}, {share}"
        return f"{a_step} {need}{f' ({self.place})' if self.place else ''}"


@dataclass(frozen=True, kw_only=True)
class MemorySetting(Answer):
    """The settings with the lowest and the highest peak on a device."""

    kind = "memory_setting"
    statuses = ("better", EQUIVALENT)

    lowest: str
    lowest_bytes: float
    highest: str
    highest_bytes: float
    place: str

    def sentence(self) -> str:
        lowest = bytes_text(self.lowest_bytes)
        if self.status == EQUIVALENT:
            return f"All settings need the same memory on the {self.device}: {lowest}, at {self.place}"
        highest = f"most with {self.highest} ({bytes_text(self.highest_bytes)})"
        return f"Least memory on the {self.device} with {self.lowest} ({lowest}), {highest}, at {self.place}"


def memory_answers(cells: pd.DataFrame) -> list[Answer]:
    """Answers for each machine's accelerators or, if it has none, its CPU."""
    answers: list[Answer] = []
    for machine, machine_cells in on_all_cores(cells).groupby("machine", sort=False):
        devices = [device for device in DEVICES if (machine_cells["device"] == device).any()]
        for device in [device for device in devices if device != BASELINE] or devices:
            device_cells = machine_cells[machine_cells["device"] == device]
            # Libraries with an allocator of their own leave that of torch at 0.
            with_peak = device_cells[(device_cells["status"] == "ok") & (device_cells["peak_bytes"] > 0)]
            lost = device_cells[device_cells["status"] == "oom"].sort_values(["size", "batch_size"])
            name = device_label(device, device_name_of(device_cells["device_name"]), str(machine))
            about = {"machine": machine, "device": name}
            if len(with_peak) or len(lost):
                answers.append(_peak_answer(about, device_cells, with_peak, lost))
            if device != BASELINE:
                answers += _setting_answers(about, with_peak)
    return answers


def _peak_answer(about: dict[str, Any], cells: pd.DataFrame, with_peak: pd.DataFrame, lost: pd.DataFrame) -> Memory:
    named = varying(cells)
    largest = first_row(with_peak.loc[[with_peak["peak_bytes"].idxmax()]]) if len(with_peak) else None
    has_parts = largest is not None and all(largest[part] is not None for part in MEMORY_PARTS)
    grows = largest is not None and largest["device"] == BASELINE and not has_parts
    capacity = None if grows or cells["capacity_bytes"].isna().all() else float(cells["capacity_bytes"].min())
    peak = None if largest is None else float(largest["peak_bytes"])
    if len(lost):
        status = "limit"
    elif not peak or not capacity:
        status = "unknown_capacity"
    else:
        status = "nearly_full" if peak / capacity > NEARLY_FULL else "no_limit"
    return Memory(
        **about,
        status=status,
        peak_bytes=peak,
        is_growth=grows,
        capacity_bytes=capacity,
        place="" if largest is None else name_by(largest, named),
        lost=len(lost),
        lost_place=name_by(first_row(lost), named or NAMED_AXES) if len(lost) else "",
        trials=None if largest is None else largest["trials"],
    )


def _setting_answers(about: dict[str, Any], with_peak: pd.DataFrame) -> list[MemorySetting]:
    """The settings with the lowest and the highest peak, at the largest size that all settings have."""
    named = varying(with_peak, SETTINGS)
    if not named:
        return []
    keys = pd.Series(list(zip(*(with_peak[axis] for axis in named), strict=True)), with_peak.index)
    common = at_common_points(with_peak.assign(setting=keys), "setting")
    common = common[common["size"] == common["size"].max()]
    if common.empty:
        return []
    counts = common.groupby("batch_size")["setting"].nunique()
    common = common[common["batch_size"] == counts[counts == counts.max()].index.max()]
    peaks = common.groupby("setting", sort=False)["peak_bytes"].median().sort_values(kind="stable")
    if len(peaks) < 2:
        return []
    names = [name_by(dict(zip(named, setting, strict=True)), named) for setting in peaks.index]
    lowest, highest = float(peaks.iloc[0]), float(peaks.iloc[-1])
    setting = MemorySetting(
        **about,
        status="better" if highest > lowest else EQUIVALENT,
        lowest=names[0],
        lowest_bytes=lowest,
        highest=names[-1],
        highest_bytes=highest,
        place=name_by(first_row(common), ["size", "batch_size"]),
    )
    return [setting]

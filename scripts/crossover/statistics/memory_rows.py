"""What each cell's memory is for at its step's peak, and how much the device has."""

from __future__ import annotations

import pandas as pd

from crossover.answers.wording import listed
from crossover.config.words import is_cpu
from crossover.figures.views import StudyView
from crossover.tables.frames import CELL_AXES, first_row

PARTS = {
    "parameter_bytes": "parameters",
    "gradient_bytes": "gradients",
    "optimizer_bytes": "optimizer state",
    "activation_bytes": "activations",
    "resident_bytes": "resident data",
    "other_bytes": "workspace and rest",
}
"""The columns that split a peak, from the bottom of a stack to its top, and what they hold."""

MEMORY_COLUMNS = [*PARTS, "peak_bytes", "capacity_bytes"]


def peak_label(device: str) -> str:
    """What a peak is: nothing counts what tensors need on the CPU."""
    return f"{'held' if is_cpu(device) else 'needed'} at a step's peak"


def capacities(rows: pd.DataFrame, device: str) -> dict[float, str]:
    """How much memory a device has, in bytes, ascending, and whose it is; of several machines each one's."""
    known = rows.groupby("machine", sort=False)["capacity_bytes"].max()
    found: dict[float, list[str]] = {}
    for machine, capacity in known[known > 0].sort_values(kind="stable").items():
        found.setdefault(float(capacity), []).append(str(machine))
    named = "" if is_cpu(device) else "the GPU of "
    this = f"this {'machine' if is_cpu(device) else 'GPU'}"
    return {
        capacity: f"all the memory of {named + listed(machines) if len(known) > 1 else this}"
        for capacity, machines in found.items()
    }


def memory_rows(view: StudyView) -> pd.DataFrame:
    """The cells, with x and `MEMORY_COLUMNS`, in bytes; NaN where a cell has no ok trial or it is not known.

    A cell's numbers are those of one trial, that of the lower median peak, so that the parts are of one step. The peak
    is what tensors needed; on the CPU, where no allocator counts, the sum of the parts, or without these the growth of
    the process. The capacity is the device's whole memory; the host's for the CPU.
    """
    cells = view.with_x(view.cells)
    found = [_of_cell(rows) for rows in _trials_of(view, cells)]
    memory = pd.DataFrame(found, index=cells.index, columns=MEMORY_COLUMNS).astype(float)
    return pd.concat([cells, memory], axis=1)


def _trials_of(view: StudyView, cells: pd.DataFrame) -> list[pd.DataFrame]:
    groups = dict(list(view.measurements.groupby(CELL_AXES, sort=False)))
    return [groups[tuple(key)] for key in cells[CELL_AXES].itertuples(index=False, name=None)]


def _of_cell(trials: pd.DataFrame) -> dict[str, float]:
    capacity = _capacity(trials)
    ok = trials[trials["status"] == "ok"]
    peaks = _peaks(ok).dropna().sort_values()
    if peaks.empty:
        return {"capacity_bytes": capacity}
    middle = peaks.index[(len(peaks) - 1) // 2]
    parts = {part: float(value) for part, value in _numbers(ok.loc[[middle]], list(PARTS)).iloc[0].items()}
    return {str(part): value for part, value in parts.items()} | {
        "peak_bytes": float(peaks[middle]),
        "capacity_bytes": capacity,
    }


def _peaks(trials: pd.DataFrame) -> pd.Series:
    if trials.empty:
        return pd.Series(dtype=float)
    if not is_cpu(str(trials["device"].iloc[0])):
        return _numbers(trials, ["peak_allocated_bytes"])["peak_allocated_bytes"]
    resident = _numbers(trials, ["peak_rss_bytes", "base_rss_bytes"])
    parts = _numbers(trials, list(PARTS)).sum(axis=1, skipna=False)
    return parts.fillna(resident["peak_rss_bytes"] - resident["base_rss_bytes"])


def _capacity(trials: pd.DataFrame) -> float:
    column = "memory_bytes" if is_cpu(first_row(trials)["device"]) else "device_memory_bytes"
    return float(_numbers(trials, [column])[column].max())


def _numbers(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame({column: pd.to_numeric(rows[column]).astype(float) for column in columns})

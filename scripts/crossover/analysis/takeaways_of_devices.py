"""What figures of a device's limits show in a line: its memory, its rate, its wait for the host, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from crossover.analysis.energy import cell_costs
from crossover.analysis.host_share import host_shares
from crossover.analysis.memory_rows import LINE, PARTS, memory_rows
from crossover.analysis.naming import NAMED_AXES, name_by, varying
from crossover.analysis.style import DEVICE_WORDS, bytes_text, device_label, money_text, number_text
from crossover.analysis.tables import device_name_of, records
from crossover.analysis.takeaway_words import at_place, between, indicative, who
from crossover.analysis.views import StudyView
from crossover.records import DEVICES

Row = dict[str, Any]


def of_memory(view: StudyView) -> str:
    """The largest size that fitted on each device and the first that did not; of one size, the most and the least."""
    view = view.on_all_cores()
    rows = memory_rows(view)
    of_device = _of_one_size if rows["size"].nunique() == 1 else _of_sizes
    said = [of_device(view, rows[rows["device"] == device]) for device in DEVICES if device in set(rows["device"])]
    known = rows.loc[rows["peak_bytes"].notna(), "trials"]
    text = "; ".join(words for words in said if words)
    return indicative(f"{text[:1].upper()}{text[1:]}", known.min() if len(known) else 0)


def _of_sizes(view: StudyView, rows: pd.DataFrame) -> str:
    varied = varying(view.cells, LINE)
    lost = [cell for cell in records(rows) if cell["status"] == "oom"]
    if lost:
        first = min(lost, key=lambda cell: cell["x"])
        line = rows[(rows[LINE] == pd.Series(first)[LINE]).all(axis=1)]
        fitting = [cell for cell in records(line) if cell["status"] == "ok" and cell["x"] < first["x"]]
        where = f"{who(first, varied)} {at_place(view, first['x'], first['size_name'])}"
        if not fitting:
            return f"{where} ran out of memory, and no smaller size was measured"
        last = max(fitting, key=lambda cell: cell["x"])
        return f"{where} ran out of memory; {at_place(view, last['x'], last['size_name'])} fitted{_in_words(last)}"
    known = [cell for cell in records(rows) if cell["peak_bytes"] is not None]
    if not known:
        return ""
    largest = max(known, key=lambda cell: (cell["x"], cell["peak_bytes"]))
    every = "every size" if len(known) == len(rows) else "every size that ended well"
    place = at_place(view, largest["x"], largest["size_name"])
    return f"on the {_device(rows)} {every} fitted, up to {place}{_in_words(largest)}"


def _of_one_size(view: StudyView, rows: pd.DataFrame) -> str:
    known = [cell for cell in records(rows) if cell["peak_bytes"] is not None]
    lost = int((rows["status"] == "oom").sum())
    out = f", {lost} of {len(rows)} cells ran out of memory" if lost else ""
    if not known:
        return f"on the {_device(rows)} {lost} of {len(rows)} cells ran out of memory" if lost else ""
    least, most = (pick(known, key=lambda cell: cell["peak_bytes"]) for pick in (min, max))
    names = [name_by(cell, varying(rows, LINE)) for cell in (least, most)]
    if len(known) == 1:
        return f"on the {_device(rows)} a step needs {bytes_text(most['peak_bytes'])}{_of_capacity(most)}{out}"
    return (
        f"on the {_device(rows)} {names[0]} needs least, {bytes_text(least['peak_bytes'])}, "
        f"{names[1]} most, {bytes_text(most['peak_bytes'])}{_of_capacity(most)}{out}"
    )


def _in_words(cell: Row) -> str:
    """', with 12.3 GB of 150 GB, 71 % of it activations'."""
    if cell["peak_bytes"] is None:
        return ""
    text = f", with {bytes_text(cell['peak_bytes'])}{_of_capacity(cell)}"
    parts = {words: cell[part] or 0.0 for part, words in PARTS.items()}
    total = sum(parts.values())
    if total <= 0:
        return text
    largest = max(parts, key=lambda words: parts[words])
    what = "workspace and temporaries" if largest == "rest" else largest
    return f"{text}, {100 * parts[largest] / total:.0f} % of it {what}"


def _of_capacity(cell: Row) -> str:
    return "" if cell["capacity_bytes"] is None else f" of {bytes_text(cell['capacity_bytes'])}"


def _device(rows: pd.DataFrame) -> str:
    return device_label(str(rows["device"].iloc[0]), device_name_of(rows))


def of_utilisation(view: StudyView) -> str:
    """The highest rate on each device, and its share of what a matrix product reached."""
    view = view.on_all_cores()
    varied = [axis for axis in varying(view.cells) if axis != "size"]
    best = []
    for device in DEVICES:
        cells = records(view.with_x(view.cells[view.cells["device"] == device].dropna(subset=["achieved_tflops"])))
        if cells:
            best.append(max(cells, key=lambda cell: cell["achieved_tflops"]))
    said = [_rate_words(view, cell, varied) for cell in best]
    text = f"Highest measured rate: {'; '.join(said)}" if said else ""
    return indicative(text, min((cell["trials"] for cell in best), default=0))


def _rate_words(view: StudyView, cell: Row, varied: Sequence[str]) -> str:
    rate, time = cell["achieved_tflops"], cell["step_time_s"]
    ends = [cell[f"step_time_{end}_s"] for end in ("high", "low")]
    low, high = (None if end is None else rate * time / end for end in ends)
    share = "" if cell["peak_share"] is None else f", {100 * cell['peak_share']:.0f} % of a matrix product's"
    place = at_place(view, cell["x"], cell["size_name"])
    return f"{number_text(rate)} TFLOP/s{between(low, high)} {who(cell, varied)} at {place}{share}"


def of_host_share(view: StudyView) -> str:
    """Between which shares of a step each accelerator waits for the host, and where."""
    shares = host_shares(view)
    names = dict(zip(view.cells["size"], view.cells["size_name"], strict=True))
    varied = varying(shares, [axis for axis in NAMED_AXES if axis != "size"])
    said, trials = [], []
    for device, own in shares.groupby("device", sort=False):
        rows = records(own)
        ends = [pick(rows, key=lambda row: row["mean"]) for pick in (max, min)]
        words = [
            f"{100 * row['mean']:.0f} %{between(row['low'], row['high'], lambda value: f'{100 * value:.0f} %')} of a step "
            f"at {', '.join(part for part in (at_place(view, row['x'], names[row['size']]), name_by(row, varied)) if part)}"
            for row in (ends if len(rows) > 1 else ends[:1])
        ]
        said.append(f"the {DEVICE_WORDS[str(device)]} waits for the host {' and '.join(words)}")
        trials += [row["trials"] for row in ends]
    text = "; ".join(said)
    return indicative(f"{text[:1].upper()}{text[1:]}", min(trials, default=0))


def of_energy(view: StudyView) -> str:
    """What a step costs on each device at the largest size, in energy and in money, where it costs least."""
    costs = cell_costs(view.on_all_cores())
    if costs.empty:
        return ""
    names = dict(zip(view.cells["size"], view.cells["size_name"], strict=True))
    varied = varying(view.cells, LINE)
    largest = records(costs[costs["x"] == costs["x"].max()])
    said = []
    for cost in ("energy", "money"):
        for device in DEVICES:
            own = [row for row in largest if (row["cost"], row["device"]) == (cost, device)]
            if own:
                said.append(_cost_words(view, min(own, key=lambda row: row["mean"]), varied))
    place = at_place(view, largest[0]["x"], names[largest[0]["size"]])
    return indicative(f"At {place} {'; '.join(said)}", min(row["trials"] for row in largest))


def _cost_words(view: StudyView, row: Row, varied: Sequence[str]) -> str:
    if row["cost"] == "energy":
        return f"a step takes {number_text(row['mean'])} J{between(row['low'], row['high'])} {who(row, varied)}"
    unit = f" {view.currency}" if view.currency else ""
    ends = between(row["low"], row["high"], money_text)
    return f"a million steps cost {money_text(row['mean'])}{unit}{ends} {who(row, varied)}"

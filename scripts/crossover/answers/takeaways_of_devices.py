"""What figures of a device's limits show in a line: its memory, its rate, its wait for the host, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.answers.takeaway_words import at_place, between, indicative, number_at, on_device, where
from crossover.answers.wording import INDICATIVE, capitalised
from crossover.config.words import DEVICES
from crossover.figures.energy import cell_costs
from crossover.figures.host_share import host_shares
from crossover.figures.style import DEVICE_WORDS, bytes_text, money_text, number_text, share_text
from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS, memory_rows
from crossover.tables.frames import LINE_AXES, records, rows_with

Row = dict[str, Any]


def of_memory(view: StudyView) -> str:
    """The largest size that fitted on each device and the first that did not; of one size, the most and the least."""
    view = view.on_all_cores()
    rows = memory_rows(view)
    known = rows.loc[rows["peak_bytes"].notna(), "trials"]
    devices = [rows[rows["device"] == device] for device in DEVICES if device in set(rows["device"])]
    if rows["size"].nunique() == 1:
        said = [words for own in devices if (words := _of_one_size(own))]
    else:
        said = [words for own in devices if (words := _ran_out(view, own))]
        fitted = [own for own in devices if own["peak_bytes"].notna().any() and "oom" not in set(own["status"])]
        said += [_fitted(view, fitted)] * bool(fitted)
    return indicative(capitalised("; ".join(said)), known.min() if len(known) else 0)


def _ran_out(view: StudyView, rows: pd.DataFrame) -> str:
    """Of a device's first size that ran out of memory, and the largest below it that fitted on the same line."""
    lost = [cell for cell in records(rows) if cell["status"] == "oom"]
    if not lost:
        return ""
    varied = varying(view.cells, LINE_AXES)
    first = min(lost, key=lambda cell: cell["x"])
    same = records(rows_with(rows, LINE_AXES, first))
    fitting = [cell for cell in same if cell["status"] == "ok" and cell["x"] < first["x"]]
    lines, short = rows[LINE_AXES].drop_duplicates(), pd.DataFrame(lost)[LINE_AXES].drop_duplicates()
    count = f" in {len(short)} of {len(lines)} lines, first" if len(lines) > 1 else ""
    name = f" ({name_by(first, varied)})" if varied else ""
    place = f"{at_place(view, first['x'], first['size_name'])}{name}"
    text = f"on the {DEVICE_WORDS[first['device']]} memory ran out{count} at {place}"
    if not fitting:
        return f"{text}; no smaller size fitted there"
    last = max(fitting, key=lambda cell: cell["x"])
    return f"{text}; {number_at(view, last['x'])} fitted there{_with_peak(last)}"


def _fitted(view: StudyView, devices: Sequence[pd.DataFrame]) -> str:
    """Of devices on which no size ran out of memory, what the largest size took there."""
    known = [rows.dropna(subset=["peak_bytes"]) for rows in devices]
    every = "every size" if sum(map(len, known)) == sum(map(len, devices)) else "every size that ended well"
    largest = [max(records(rows), key=lambda cell: (cell["x"], cell["peak_bytes"])) for rows in known]
    alike, varied = len({cell["x"] for cell in largest}) == 1, varying(view.cells, LINE_AXES)
    said = []
    for cell in largest:
        place = "" if alike else f" at {at_place(view, cell['x'], cell['size_name'])}"
        said.append(f"{on_device(cell, varied)}{place}{_with_peak(cell)}")
    up_to = f", up to {at_place(view, largest[0]['x'], largest[0]['size_name'])}" if alike else ""
    return f"{every} fitted{up_to}: {'; '.join(said)}"


def _of_one_size(rows: pd.DataFrame) -> str:
    device = f"on the {DEVICE_WORDS[str(rows['device'].iloc[0])]}"
    known = [cell for cell in records(rows) if cell["peak_bytes"] is not None]
    lost = int((rows["status"] == "oom").sum())
    out = f"{lost} of {len(rows)} cells ran out of memory" if lost else ""
    if not known:
        return f"{device} {out}" if out else ""
    least, most = (pick(known, key=lambda cell: cell["peak_bytes"]) for pick in (min, max))
    ends = [bytes_text(cell["peak_bytes"]) for cell in (least, most)]
    capacity = _of_capacity(most)
    if len(known) == 1:
        text = f"{device} a step needs {ends[0]}{capacity}"
    elif ends[0] == ends[1]:
        text = f"{device} each of {len(known)} cells needs {ends[0]}{capacity}"
    else:
        named = [f"{end} ({_names(known, end, varying(rows, LINE_AXES))})" for end in ends]
        text = f"{device} a step needs {named[0]} to {named[1]}{capacity}"
    return ", ".join(words for words in (text, out) if words)


def _names(cells: Sequence[Row], peak: str, varied: Sequence[str]) -> str:
    """The cells whose peaks read alike; of more than two, how many."""
    names = [name_by(cell, varied) for cell in cells if bytes_text(cell["peak_bytes"]) == peak]
    return "; ".join(names) if len(names) < 3 else f"{len(names)} cells"


def _with_peak(cell: Row) -> str:
    """' with 12.3 GB of 150 GB, 71 % of it activations'."""
    if cell["peak_bytes"] is None:
        return ""
    text = f" with {bytes_text(cell['peak_bytes'])}{_of_capacity(cell)}"
    parts = {words: cell[part] or 0.0 for part, words in PARTS.items()}
    total = sum(parts.values())
    if total <= 0:
        return text
    largest = max(parts, key=lambda words: parts[words])
    return f"{text}, {share_text(parts[largest] / total)} of it {largest}"


def _of_capacity(cell: Row) -> str:
    return "" if cell["capacity_bytes"] is None else f" of {bytes_text(cell['capacity_bytes'])}"


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
    return f"{number_text(rate)} TFLOP/s{between(low, high)} {where(view, cell, varied)}{share}"


def of_host_share(view: StudyView) -> str:
    """Between which shares of a step each accelerator waits for the host, and where."""
    shares = host_shares(view)
    names = dict(zip(view.cells["size"], view.cells["size_name"], strict=True))
    varied = varying(shares, [axis for axis in NAMED_AXES if axis != "size"])
    said, trials = [], []
    for device, own in shares.groupby("device", sort=False):
        rows = records(own)
        ends = [pick(rows, key=lambda row: row["mean"]) for pick in (max, min)]
        words = []
        for row in ends if len(rows) > 1 else ends[:1]:
            name = name_by(row, varied)
            place = f"at {at_place(view, row['x'], names[row['size']])}{f' ({name})' if name else ''}"
            interval = "" if row["low"] is None else f" ({share_text(row['low'])} to {share_text(row['high'])})"
            words.append(f"{share_text(row['mean'])}{interval} of a step {place}")
        said.append(f"the {DEVICE_WORDS[str(device)]} waits for the host {' and '.join(words)}")
        trials += [row["trials"] for row in ends]
    caution = f" Known of {INDICATIVE}." if min(trials, default=2) < 2 else ""
    return f"{capitalised('; '.join(said))}.{caution}" if said else ""


def of_energy(view: StudyView) -> str:
    """What a step costs on each device at its own largest size, in energy and in money, where it costs least."""
    view = view.on_all_cores()
    costs = cell_costs(view)
    timed = view.cells.dropna(subset=["step_time_s"])
    devices = [device for device in DEVICES if device in set(timed["device"])]
    names = dict(zip(view.cells["size"], view.cells["size_name"], strict=True))
    varied = varying(view.cells, LINE_AXES)
    known: list[tuple[str, str]] = []
    unknown, trials = [], []
    for cost, own in ((cost, costs[costs["cost"] == cost]) for cost in ("energy", "money")):
        for device in devices if len(own) else ():
            rows = own[own["device"] == device]
            if rows.empty:
                unknown.append(f"the {cost} of a step is not known on the {DEVICE_WORDS[device]}")
                continue
            least = min(records(rows[rows["x"] == rows["x"].max()]), key=lambda row: row["mean"])
            known.append((f"at {at_place(view, least['x'], names[least['size']])}", _cost_words(view, least, varied)))
            trials.append(least["trials"])
    # Where all are of one size, it is named once.
    several = len({place for place, _ in known}) > 1
    said = [f"{place} {words}" if several or not number else words for number, (place, words) in enumerate(known)]
    return indicative(capitalised("; ".join(said + unknown)), min(trials, default=0))


def _cost_words(view: StudyView, row: Row, varied: Sequence[str]) -> str:
    if row["cost"] == "energy":
        return f"a step takes {number_text(row['mean'])} J{between(row['low'], row['high'])} {on_device(row, varied)}"
    unit = f" {view.currency}" if view.currency else ""
    ends = between(row["low"], row["high"], money_text)
    return f"a million steps cost {money_text(row['mean'])}{unit}{ends} {on_device(row, varied)}"

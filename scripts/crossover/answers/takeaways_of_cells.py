"""What figures of cells show in a line: which is fastest, which nothing beats, which mistake misleads most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.answers.takeaway_words import between, indicative, on_device, who
from crossover.answers.wording import capitalised
from crossover.config.words import BASELINE, DEVICES
from crossover.figures.comparison_rows import gpu_memory_column
from crossover.figures.style import DEVICE_WORDS, bytes_text, rate_text, seconds_text
from crossover.figures.trade_off import front
from crossover.figures.views import StudyView
from crossover.statistics.latency_rows import latency_rows, worst_words
from crossover.statistics.run_comparison import compare_times
from crossover.tables.frames import CELL_AXES, records, rows_with

Row = dict[str, Any]


def of_comparison(view: StudyView) -> str:
    """The cell with the shortest time at the largest size, and how many others the trials do not tell from it."""
    view = view.on_all_cores()
    largest = view.cells["size"].max()
    timed = records(view.cells[view.cells["size"] == largest].dropna(subset=["samples_per_s"]))
    if len(timed) < 2:
        return ""
    varied = varying(view.cells)
    best = max(timed, key=lambda cell: cell["samples_per_s"])
    each = " a sample" if "batch_size" in varied else ""
    scale = best["batch_size"] if each else 1
    low, high = (
        None if best[f"step_time_{end}_s"] is None else best[f"step_time_{end}_s"] / scale for end in ("low", "high")
    )
    seconds = best["step_time_s"] / scale
    where = f" at {name_by(best, ['size'])}" if "size" in varied else ""
    text = f"Shortest time{each}{where}: {who(best, varied)}, {seconds_text(seconds)}{between(low, high, seconds_text)}"
    return indicative(text + _not_apart(view, best, timed), _fewest(timed))


def of_throughput(view: StudyView) -> str:
    """The most samples per second of each device, and how many cells the trials do not tell from it."""
    said = []
    varied = varying(view.cells)
    for device in DEVICES:
        timed = records(view.cells[view.cells["device"] == device].dropna(subset=["samples_per_s"]))
        if timed:
            best = max(timed, key=lambda cell: cell["samples_per_s"])
            ends = [best[f"step_time_{end}_s"] for end in ("high", "low")]
            low, high = (None if end is None else best["batch_size"] / end for end in ends)
            name = name_by(best, [axis for axis in NAMED_AXES if axis in varied and axis != "batch_size"])
            rate = f"{rate_text(best['samples_per_s'])}{between(low, high, rate_text)}"
            where = ", ".join(words for words in (f"at batch {best['batch_size']:,}", name) if words)
            said.append(f"most on the {DEVICE_WORDS[device]}: {rate} {where}{_not_apart(view, best, timed)}")
    return indicative(capitalised("; ".join(said)), _fewest(records(view.cells.dropna(subset=["samples_per_s"]))))


def _not_apart(view: StudyView, best: Row, timed: Sequence[Row]) -> str:
    """How many others are not surely slower than the best, by their time of a sample; nothing with one trial."""
    if best["trials"] < 2 or len(timed) < 2:
        return ""
    own = _times_of_a_sample(view, best)
    others = [cell for cell in timed if cell is not best]
    verdicts = [compare_times(own, _times_of_a_sample(view, cell)) for cell in others]
    near = [cell for cell, found in zip(others, verdicts, strict=True) if found.low is None or found.low <= 1]
    if not near:
        return ", ahead of all others"
    names = [who(cell, varying(view.cells)) for cell in near]
    return f", not told apart from {names[0]}" if len(near) == 1 else f", not told apart from {len(near)} others"


def _times_of_a_sample(view: StudyView, cell: Mapping[str, Any]) -> list[float]:
    own = rows_with(view.measurements, CELL_AXES, cell)["step_time_s"].dropna()
    return [float(time) / cell["batch_size"] for time in own]


def _fewest(cells: Sequence[Row]) -> float:
    return min((cell["trials"] for cell in cells), default=0)


def of_trade_off(view: StudyView) -> str:
    """How many cells of each device nothing beats in both time and memory, and the two ends of these."""
    said = []
    named = varying(view.cells, NAMED_AXES) or ["precision"]
    for device in DEVICES:
        memory = "rss_growth_bytes" if device == BASELINE else gpu_memory_column(view)
        cells = records(view.cells[view.cells["device"] == device].dropna(subset=["samples_per_s", memory]))
        points = {
            (float(cell[memory]), 1 / cell["samples_per_s"]): name_by(cell, named) for cell in cells if cell[memory]
        }
        if len(points) < 2:
            continue
        kept = front(list(points))
        ends = [f"{points[point]} ({bytes_text(point[0])}, {seconds_text(point[1])})" for point in (kept[0], kept[-1])]
        if len(kept) == 1:
            said.append(f"on the {DEVICE_WORDS[device]} no other cell is measured better than {ends[0]} in either")
        else:
            said.append(
                f"on the {DEVICE_WORDS[device]} nothing beats {len(kept)} of {len(cells)} cells in both as measured, "
                f"from {ends[0]} to {ends[1]} a sample"
            )
    return indicative(capitalised("; ".join(said)), _fewest(records(view.cells.dropna(subset=["samples_per_s"]))))


def of_latency(view: StudyView) -> str:
    """The mistake that is furthest off on each device, so far as the trials bear it out."""
    view = view.on_all_cores()
    said, trials = [], []
    varied = varying(view.cells)
    for cell in records(view.cells):
        if words := worst_words(latency_rows(view.measurements, cell)):
            said.append(f"{on_device(cell, varied)} {words}")
            trials.append(cell["trials"])
    return indicative(capitalised("; ".join(said)), min(trials, default=0))

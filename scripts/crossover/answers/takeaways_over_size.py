"""What figures over size show in a line: where devices cross, and how much faster one side is at best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crossover.answers.naming import name_by, varying
from crossover.answers.other_crossovers import found_sentence
from crossover.answers.sentences import crossover_text, doubt_words, merged
from crossover.answers.takeaway_words import at_place, between, indicative, on_device, resting_on, where
from crossover.config.words import BASELINE, is_cpu
from crossover.figures.precisions import is_plain, plain_of, plain_words, ratios_over_plain
from crossover.figures.style import number_text, seconds_text
from crossover.figures.views import StudyView
from crossover.statistics.summary import speedups
from crossover.tables.frames import DEVICE_LINE_AXES, LINE_AXES, first_row, records, rows_with

MOST_SENTENCES = 3
"""Of more lines than these, the answers are counted."""


def of_times(view: StudyView) -> str:
    """Where the devices cross on each line; of one device, its shortest and its longest time."""
    rows = [row for row in records(view.crossovers) if row["status"] != "no_accelerator"]
    if not rows or view.cells["device"].nunique() == 1:
        return _range_of_times(view)
    varied = varying(view.crossovers, LINE_AXES)
    found = merged((name_by(row, varied), found_sentence(row)) for row in rows)
    if len(found) > 1 and len(rows) > MOST_SENTENCES:
        return _counted(rows)
    return " ".join(f"{text.removesuffix('.')} ({line})." if line else text for line, text in found)


def _range_of_times(view: StudyView) -> str:
    timed = records(view.with_x(view.on_all_cores().cells).dropna(subset=["step_time_s", "x"]))
    if not timed:
        return ""
    varied = varying(view.cells, LINE_AXES)
    ends = [pick(timed, key=lambda cell: cell["step_time_s"]) for pick in (min, max)]
    same = on_device(ends[0], varied) == on_device(ends[1], varied)
    words = []
    for cell in ends if ends[0] != ends[1] else ends[:1]:
        interval = between(cell["step_time_low_s"], cell["step_time_high_s"], seconds_text)
        place = at_place(view, cell["x"], cell["size_name"]) if same else where(view, cell, varied)
        words.append(f"{seconds_text(cell['step_time_s'])}{interval} {'at ' * same}{place}")
    text = f"A step takes {' to '.join(words)}{f' {on_device(ends[0], varied)}' if same else ''}"
    return indicative(text, min(cell["trials"] for cell in ends))


def _counted(rows: Sequence[dict[str, Any]]) -> str:
    """How many lines have which answer, and between which places those lie that cross."""
    counts = Counter(row["status"] for row in rows)
    crossing = [row["crossover"] for row in rows if row["status"] == "bracketed"]
    says = {
        "below_range": "at every size in {}",
        "bracketed": "from some size on in {}",
        "reversed": "only below some size in {}",
        "above_range": "at no size in {}",
    }
    parts = [words.format(counts[status]) for status, words in says.items() if counts[status]]
    if len(set(crossing)) > 1:
        places = f"{crossover_text(min(crossing))} and {crossover_text(max(crossing))}"
        parts = [f"{part} (between {places})" if "on in" in part else part for part in parts]
    open_count = len(rows) - sum(counts[status] for status in says)
    text = f"Of {len(rows)} lines the accelerator takes less time than the CPU {', '.join(parts)}" if parts else ""
    if open_count:
        undecided = f"no single answer in {open_count}"
        text = f"{text}; {undecided}" if text else f"Of {len(rows)} lines {undecided}"
    doubtful = sum(bool(doubt_words(row)) for row in rows)
    if doubtful:
        text = f"{text}; in {doubtful} the trials leave sizes in doubt"
    return indicative(text, min((row["trials"] for row in rows if row["trials"]), default=0))


def of_speedups(view: StudyView) -> str:
    """The largest speed-up of an accelerator over the CPU."""
    view = view.on_all_cores()
    found = []
    for line in view.lines():
        trials = view.trials_of(line)
        devices = [device for device in trials["device"].unique() if not is_cpu(device)]
        found += [
            {**line, **row, "device": device}
            for device in devices
            for row in records(speedups(trials, BASELINE, device))
        ]
    varied = varying(view.crossovers, LINE_AXES)
    return _largest(view, found, varied, "over the CPU", {"device": BASELINE})


def of_precisions(view: StudyView) -> str:
    """The largest speed-up over the plain precision and execution, and what is slower somewhere."""
    view = view.on_all_cores()
    plain = plain_of(view)
    if plain is None:
        return ""
    others = view.cells[~is_plain(view.cells, plain)]
    found = [
        {**first_row(cells), **row}
        for _, cells in others.groupby(DEVICE_LINE_AXES, sort=False)
        for row in records(ratios_over_plain(view, first_row(cells), plain))
    ]
    varied = varying(view.cells, LINE_AXES)
    slower = dict.fromkeys(
        name_by(row, [axis for axis in ("precision", "execution") if axis in varied])
        for row in found
        if row["high"] is not None and row["high"] < 1
    )
    text = _largest(view, found, varied, f"over {plain_words(view, plain)}", plain)
    if not slower:
        return text
    names = list(slower) if len(slower) <= MOST_SENTENCES else [f"{len(slower)} others"]
    return f"{text} Slower at some size, with the whole interval: {'; '.join(names)}."


def _largest(
    view: StudyView, found: Sequence[dict[str, Any]], varied: Sequence[str], over: str, baseline: Mapping[str, str]
) -> str:
    """The row of the largest ratio in words, and what its two cells are flagged with.

    Rows have the axes, x, speedup, low and high; `baseline` has the axes in which the cell that it is over differs.
    """
    if not found:
        return ""
    best = max(found, key=lambda row: row["speedup"])
    ratio = f"{number_text(best['speedup'])} times{between(best['low'], best['high'])}"
    text = f"{ratio}, {where(view, best, varied)}"
    trials = 1 if best["low"] is None else 2
    ends = [row["high"] for row in found]
    if None not in ends and max(ends) < 1:
        said = f"No speed-up {over}: at best {text}"
    else:
        open_words = "; the interval holds 1" if best["low"] is not None and best["low"] <= 1 <= best["high"] else ""
        said = f"Largest measured speed-up {over}: {text}{open_words}"
    return indicative(said, trials) + resting_on([_flags(view, cell) for cell in (best, {**best, **baseline})])


def _flags(view: StudyView, cell: Mapping[str, Any]) -> list[str]:
    """The flags of a cell, which has its axes and x."""
    return [flag for own in rows_with(view.with_x(view.cells), [*DEVICE_LINE_AXES, "x"], cell)["flags"] for flag in own]

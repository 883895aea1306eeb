"""How cells that did not end well ended: marks at the lower edge of a panel, so that no size is left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from crossover.figures.curves import px_per_pt
from crossover.figures.style import LABEL_BOX, PUBLISHED_COLOUR
from crossover.tables.frames import records

MARK = "×"
MOST_ROWS = 4
"""With more kinds of marks than these, the words share a row whatever their colours."""
ROW_PT, FIRST_PT = 12.0, 9.0
"""Height of a row of marks, and of the first one above the panel's lower edge."""


@dataclass(frozen=True)
class StatusMark:
    """A size at which something ended without a full result, and how."""

    x: float
    words: str
    colour: str


def status_marks(cells: pd.DataFrame, colour: str, who: str = "") -> list[StatusMark]:
    """A mark for each cell that is not ok, from columns x, status, step_time_s, trials and trials_not_ok.

    `who` comes before the word, where several devices share the panel.
    """
    return [
        StatusMark(float(cell["x"]), f"{who} {status_words(cell)}".strip(), colour)
        for cell in records(cells)
        if cell["status"] != "ok" and cell["x"] is not None
    ]


def status_words(cell: dict[str, object]) -> str:
    """'oom'; of a cell that other trials gave a time, 'oom in 1 of 3 trials'."""
    if cell["step_time_s"] is None:
        return str(cell["status"])
    lost = int(str(cell["trials_not_ok"]))
    return f"{cell['status']} in {lost} of {lost + int(str(cell['trials']))} trials"


def make_room(axes: Axes, marks: Sequence[StatusMark], first_pt: float = FIRST_PT) -> None:
    """Lower the lower end of a logarithmic y axis, so that the marks' rows stand below the points."""
    if not marks:
        return
    height_pt = axes.get_window_extent().height / px_per_pt(axes)
    share = min(0.5, (first_pt + ROW_PT * len(_rows(marks)) - ROW_PT / 2) / height_pt)
    low, high = axes.get_ylim()
    axes.set_ylim(low / (high / low) ** (share / (1 - share)), high)


def draw_status_marks(axes: Axes, marks: Sequence[StatusMark], first_pt: float = FIRST_PT) -> None:
    """Draw a cross at each mark's size, a row for each way to end, which is named once.

    The axes' limits are final. `first_pt` is the height of the first row above the panel's lower edge.
    """
    for number, ((words, colour), places) in enumerate(_rows(marks).items()):
        height = first_pt + ROW_PT * number
        for x in sorted(set(places)):
            _write(axes, MARK, x, 0, height, colour, "center", 13)
        first, last = min(places), max(places)
        if _share(axes, first) > 0.3:
            _write(axes, words, first, -6, height, colour, "right", 9)
        else:
            _write(axes, words, last if _share(axes, last) < 0.7 else first, 6, height, colour, "left", 9)


def _rows(marks: Sequence[StatusMark]) -> dict[tuple[str, str], list[float]]:
    """The places of the marks by words and colour; by words alone where these would be too many rows."""
    rows: dict[tuple[str, str], list[float]] = {}
    for mark in marks:
        rows.setdefault((mark.words, mark.colour), []).append(mark.x)
    if len(rows) <= MOST_ROWS:
        return rows
    merged: dict[tuple[str, str], list[float]] = {}
    for (words, _), places in rows.items():
        merged.setdefault((words, PUBLISHED_COLOUR), []).extend(places)
    return merged


def _share(axes: Axes, x: float) -> float:
    """How far to the right of the panel a size stands, from 0 to 1."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, axes.get_ylim()[0])))[0])


def _write(axes: Axes, text: str, x: float, right_pt: int, up_pt: float, colour: str, side: str, size: int) -> None:
    axes.annotate(
        text,
        (x, 0),
        (right_pt, up_pt),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=colour,
        ha=side,
        va="center",
        fontsize=size,
        weight="bold",
        bbox=LABEL_BOX if text != MARK else None,
        zorder=5,
    )

"""How cells that did not end well ended: marks at the lower edge of a panel, so that no size is left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from crossover.analysis.style import LABEL_BOX, PUBLISHED_COLOUR
from crossover.analysis.tables import records

MARK = "×"
MOST_ROWS = 4
"""With more kinds of marks than these, the words share a row whatever their colours."""
ROW_PT, FIRST_PT = 12, 9
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


def draw_status_marks(axes: Axes, marks: Sequence[StatusMark]) -> None:
    """Draw a cross at each mark's size, a row for each way to end, which is named once; the axes' limits are final."""
    rows: dict[tuple[str, str], list[float]] = {}
    for mark in marks:
        rows.setdefault((mark.words, mark.colour), []).append(mark.x)
    if len(rows) > MOST_ROWS:
        rows = {}
        for mark in marks:
            rows.setdefault((mark.words, PUBLISHED_COLOUR), []).append(mark.x)
    for number, ((words, colour), places) in enumerate(rows.items()):
        height = FIRST_PT + ROW_PT * number
        for x in sorted(set(places)):
            _write(axes, MARK, x, 0, height, colour, "center", 13)
        first, last = min(places), max(places)
        if _share(axes, first) > 0.3:
            _write(axes, words, first, -6, height, colour, "right", 9)
        else:
            _write(axes, words, last if _share(axes, last) < 0.7 else first, 6, height, colour, "left", 9)


def _share(axes: Axes, x: float) -> float:
    """How far to the right of the panel a size stands, from 0 to 1."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, axes.get_ylim()[0])))[0])


def _write(axes: Axes, text: str, x: float, right_pt: int, up_pt: int, colour: str, side: str, size: int) -> None:
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

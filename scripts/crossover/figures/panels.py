"""Panels one below the other, with room to their right for the names of their lines, and logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from crossover.figures.style import GUIDE_COLOUR, use_style

WIDTH_IN = 8.5
LEFT_IN, TOP_IN, BOTTOM_IN, GAP_IN = 0.85, 0.8, 0.85, 0.85
TITLE_IN = 0.3
LETTER_IN = 0.07
"""About the width of a letter of 9 points."""


def stacked_panels(
    title: str, heights_in: Sequence[float], texts: Sequence[str], titles: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """A figure with log-log panels of the given heights in inches; `texts` are to be written to their right.

    `titles` are those of the panels; where the first is empty, it takes no room.
    """
    use_style()
    longest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    width_in = max(WIDTH_IN - LEFT_IN - 0.45 - LETTER_IN * longest, 0.45 * WIDTH_IN)
    first_in = TOP_IN if titles[0] else TOP_IN - TITLE_IN
    height_in = first_in + sum(heights_in) + GAP_IN * (len(heights_in) - 1) + BOTTOM_IN
    figure = plt.figure(figsize=(WIDTH_IN, height_in))
    figure.suptitle(title, x=0.01, y=1 - 0.12 / height_in, ha="left", va="top", fontsize=13, weight="bold")
    panels: list[Axes] = []
    top_in = height_in - first_in
    for own_in, words in zip(heights_in, titles, strict=True):
        place = (LEFT_IN / WIDTH_IN, (top_in - own_in) / height_in, width_in / WIDTH_IN, own_in / height_in)
        axes = figure.add_axes(place, xscale="log", yscale="log", sharex=panels[0] if panels else None)
        axes.grid(color=GUIDE_COLOUR, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_title(words)
        panels.append(axes)
        top_in -= own_in + GAP_IN
    return figure, panels


def blank_figure(title: str, sentence: str) -> Figure:
    """A figure without panels that says why there are none."""
    use_style()
    figure = plt.figure(figsize=(WIDTH_IN, 1.2))
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, weight="bold")
    figure.text(0.01, 0.35, sentence, fontsize=11)
    return figure


def keep_in_view(axes: Axes, points: Collection[float]) -> None:
    """Let the widest intervals run out of a logarithmic y axis, as two trials may give them.

    It ends at the nearer of its own limits and twice or half the outermost of the points, lest these shrink to nothing.
    """
    if points:
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, min(points) / 2), min(high, max(points) * 2))


def tick_counts(
    axes: Axes, words: Mapping[float, str], refined: Collection[float] = (), least_share: float = 0.11
) -> None:
    """Ticks of a logarithmic x axis at measured places, with their words where these are not too close.

    The places that refinement added come last: they have a tick where the others leave room. `least_share` of the
    axis is what the words need.
    """
    if len(words) == 1:
        (only,) = words
        axes.set_xlim(only / 2, only * 2)
    kept = spaced_out(sorted(words), least_share, refined)
    axes.set_xticks(kept, [words[place] for place in kept])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def spaced_out(values: Sequence[float], least_share: float = 0.04, last: Collection[float] = ()) -> list[float]:
    """Of ascending values, those that stand far enough apart on a logarithmic axis to be labelled.

    Those in `last` have what room the others leave.
    """
    kept: list[float] = []
    for value in sorted(values, key=lambda value: (value in last, value)):
        if all(abs(math.log(value / other)) >= least_share * math.log(values[-1] / values[0]) for other in kept):
            kept.append(value)
    return sorted(kept)

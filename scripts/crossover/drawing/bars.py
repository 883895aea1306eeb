"""Horizontal bars with names and words beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from crossover.drawing.panels import Floats

NAME_LETTERS = 36


def stack_bars(axes: Axes, parts: Mapping[str, Floats], colours: Sequence[str], least: float) -> Floats:
    """Draw stacked bars, without the parts that are at most `least` in every bar; return the ends of the bars."""
    left = np.zeros_like(next(iter(parts.values())))
    for (words, width), colour in zip(parts.items(), colours, strict=True):
        if (width > least).any():
            axes.barh(np.arange(len(width)), width, left=left, color=colour, height=0.7, label=words)
        left = left + width
    return left


def name_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def write_beside(axes: Axes, point: tuple[float, float], words: str) -> None:
    axes.annotate(words, point, (4, 0), textcoords="offset points", va="center", fontsize=8)

"""Ticks of logarithmic axes: a few round numbers, however many decades there are to label, or however few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullLocator

MULTIPLES: Sequence[Sequence[int]] = ((1, 2, 5), (1, 3), (1,), (1, 2, 3, 4, 5, 7))
"""Multiples of the powers of ten that have a tick, in the order in which they are tried."""


class LogTicks(Locator):
    """At most so many round numbers in view, and at least two where an axis has any length."""

    def __init__(self, most: int) -> None:
        self.most = max(2, most)

    def __call__(self) -> list[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The ticks from one positive number to another, ascending."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high:
            return []
        sets = [_multiples(low, high, subs) for subs in MULTIPLES]
        for fewest in (3, 2):  # two tell an axis's scale where there is no better
            for ticks in sets:
                if fewest <= len(ticks) <= self.most:
                    return ticks
        decades = _multiples(low, high, (1,))
        return _thinned(decades if len(decades) > self.most else _evenly(low, high), self.most)


def _multiples(low: float, high: float, subs: Sequence[int]) -> list[float]:
    decades = range(int(np.floor(np.log10(low))), int(np.floor(np.log10(high))) + 1)
    return [value for decade in decades for sub in subs if low <= (value := float(f"{sub}e{decade}")) <= high]


def _evenly(low: float, high: float) -> list[float]:
    """Ticks of a linear scale, for an axis too short to show multiples of powers of ten."""
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def _thinned(ticks: list[float], most: int) -> list[float]:
    return ticks[:: -(-len(ticks) // most)]


def tick_values(axis: XAxis | YAxis, formatter: Formatter, most: int = 8) -> None:
    """Give a logarithmic axis such ticks, and no others."""
    axis.set_major_locator(LogTicks(most))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(formatter)


def reach_ticks_beside_1(panels: Sequence[Axes]) -> None:
    """Have the y axis that panels share reach 0.5 where a line comes below 1, and 2 where one comes above."""
    low, high = panels[0].get_ylim()
    below = any(axes.dataLim.y0 < 1 for axes in panels)
    above = any(axes.dataLim.y1 > 1 for axes in panels)
    panels[0].set_ylim(min(low, 0.48) if below else low, max(high, 2.1) if above else high)

"""Colours, fonts and ticks of figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from crossover.config.words import HALF, ranks_of_side, threads_of_side, unit_of_side

DEVICE_COLOURS = {"cpu": "#0072B2", "cuda": "#D55E00", "mps": "#D55E00", "xpu": "#D55E00"}
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""
PUBLISHED_COLOURS = {
    "cpu": ("#0072B2", "#004266", "#4DA6DB"),
    **dict.fromkeys(("cuda", "mps", "xpu"), ("#D55E00", "#7A3600", "#F29A5C")),
}
PUBLISHED_MARKERS = ("D", "^", "v", "s")
CPU_SIDE_COLOUR = "#56B4E9"
"""The CPU on fewer than all cores."""
GROUP_COLOURS = ("#CC79A7", "#882255", "#E69F00")
"""Two, four and more GPUs, or processes on the CPU."""
PALETTE = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#111111", "#0072B2", "#D55E00")
"""Colours of lines that differ in more than their device; the colours of devices come last."""
PART_COLOURS = {
    "parameter_bytes": "#0072B2",
    "gradient_bytes": "#56B4E9",
    "optimizer_bytes": "#009E73",
    "activation_bytes": "#E69F00",
    "resident_bytes": "#CC79A7",
    "other_bytes": "#999999",
}
SPLIT_COLOURS = {
    "loader": "#E69F00",
    "transfer": "#CC79A7",
    "launch": "#D55E00",
    "host": "#332288",
    "threads": "#F0E442",
    "overhead": "#009E73",
    "memory": "#56B4E9",
    "compute": "#0072B2",
    "unexplained": "#BBBBBB",
}
PUBLISHED_COLOUR = "#666666"
PUBLISHED_GREYS = (PUBLISHED_COLOUR, "#222222", "#999999")
"""Greys of published series in figures whose colours show settings."""
MISTAKE_COLOUR = "#CC79A7"
GUIDE_COLOUR = "#e3e3e3"
INK = "#111111"
WIDTH_IN = 9.0

STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
    # A dollar sign in a title, label or currency must not start a formula.
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "svg.fonttype": "none",
    "svg.hashsalt": "crossover",
    "savefig.facecolor": "white",
    "savefig.dpi": 160,
}


def use_style() -> None:
    """Set Matplotlib's backend and style."""
    mpl.use("agg")
    mpl.rcParams.update(STYLE)


def stacked_axes(title: str, count: int, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with a column of axes; `options` are those of `plt.subplots`."""
    use_style()
    figure, grid = plt.subplots(count, 1, squeeze=False, **options)
    figure.suptitle(title, x=0.01, ha="left")
    return figure, list(grid[:, 0])


def blank_figure(title: str, sentence: str) -> Figure:
    """A figure that shows a sentence instead of data."""
    use_style()
    figure = plt.figure(figsize=(WIDTH_IN, 1.2))
    figure.suptitle(title, x=0.01, ha="left")
    figure.text(0.01, 0.3, sentence, fontsize=11)
    return figure


def side_look(device: str) -> tuple[str, str]:
    """Colour and dashes of a device."""
    threads, ranks = threads_of_side(device), ranks_of_side(device)
    if ranks > 1:
        rank = min(ranks.bit_length() - 2, 2)
        return GROUP_COLOURS[rank], ("--", "-.", ":")[rank]
    if threads is None:
        return DEVICE_COLOURS[unit_of_side(device)], "-"
    return CPU_SIDE_COLOUR, "--" if threads == HALF else ":"


def published_look(shades: Sequence[str], rank: int) -> tuple[str, str]:
    """Colour and marker of a published series."""
    return shades[rank % len(shades)], PUBLISHED_MARKERS[rank % len(PUBLISHED_MARKERS)]


def wrapped(text: str, letters: int) -> str:
    """Wrap text, keeping existing line breaks."""
    return "\n".join(fill(line, letters, break_on_hyphens=False) for line in text.split("\n"))


def worded(words: Callable[[float], str]) -> Formatter:
    """A tick formatter from a function that formats a number."""
    return FuncFormatter(lambda value, _: words(value))


SECONDS, BYTES = EngFormatter("s"), EngFormatter("B")


def log_ticks(axis: Axis, formatter: Formatter) -> None:
    """Set ticks at round numbers on a logarithmic axis."""
    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if 0 < low < high else 1
    if decades < 0.7:
        inside = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        axis.set_major_locator(FixedLocator([value for value in inside if low <= value <= high]))
    else:
        subs = (1, 2, 5) if decades < 2.2 else (1, 3) if decades < 4 else (1,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(NullFormatter())


def size_ticks(axes: Axes, words: Mapping[float, str], last: Collection[float] = ()) -> None:
    """Set ticks at the x positions in `words` whose labels fit; those in `last` are tried last."""
    if len(words) == 1:
        (only,) = words
        axes.set_xlim(only / 2, only * 2)
    ticks = spaced_out(words, last)
    axes.set_xticks(ticks, [words[x] for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def spaced_out(words: Mapping[float, str], last: Collection[float] = ()) -> list[float]:
    """The positions in `words` whose labels fit on a logarithmic axis, ascending."""
    width = math.log(max(words) / min(words)) if words else 0
    ticks: list[float] = []
    for x in sorted(words, key=lambda x: (x in last, x)):
        # Minimum distance from each tick, as a share of the axis, at which both labels fit.
        needed = {tick: 0.015 + 0.008 * len(words[x] + words[tick]) for tick in ticks}
        if all(abs(math.log(x / tick)) >= share * width for tick, share in needed.items()):
            ticks.append(x)
    return sorted(ticks)

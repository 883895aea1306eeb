"""How figures and sentences look: colours, names and readable numbers."""

from __future__ import annotations

import math
import re

import matplotlib as mpl
import seaborn as sns
from matplotlib.patheffects import withStroke

DEVICE_COLOURS = {"cpu": "#0072B2", "cuda": "#D55E00", "mps": "#D55E00", "xpu": "#D55E00"}
"""Okabe and Ito's palette, safe for colour-blind readers."""
PUBLISHED_COLOUR = "#666666"
CROSSOVER_COLOUR = "#111111"

HALO = [withStroke(linewidth=3, foreground="white")]
"""Keeps a label readable where a line runs behind it."""

DEVICE_WORDS = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU", "xpu": "GPU"}
PROTOCOL_WORDS = {"as_published": "as published", "resident": "data resident on the device"}


def use_style() -> None:
    """Set the style of all figures."""
    mpl.use("agg")
    sns.set_theme(
        context="notebook",
        style="ticks",
        rc={
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 12,
            "axes.labelsize": 11,
            "xtick.labelsize": 10,
            "ytick.labelsize": 10,
            "font.family": "DejaVu Sans",
            "svg.hashsalt": "crossover",
            "savefig.bbox": "tight",
            "savefig.dpi": 160,
        },
    )


def device_label(device: str, name: str | None) -> str:
    """'GPU (NVIDIA H200)'."""
    word = DEVICE_WORDS[device]
    return f"{word} ({short_name(name)})" if name else word


def short_name(name: str) -> str:
    """A device's name without what does not tell it apart: 'AMD EPYC 9D24', 'Intel Xeon Gold 6248'."""
    for noise in (r"\((R|TM|C)\)", r"@.*", r"\b\d+-Core\b", r"\b(CPU|Processor)\b"):
        name = re.sub(noise, " ", name)
    return " ".join(name.split())


def count_text(value: float) -> str:
    """A count to two significant digits, as a reader says it: 6.5, 680, 1,200, 310 k, 2.8 million."""
    if value <= 0:
        return f"{value:g}"
    rounded = round(value, 1 - math.floor(math.log10(value)))
    for limit, scale, unit in ((1e9, 1e9, " billion"), (1e6, 1e6, " million"), (1e4, 1e3, " k")):
        if rounded >= limit:
            return f"{rounded / scale:g}{unit}"
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def seconds_text(seconds: float) -> str:
    """A time with three digits in a fitting unit: 812 µs, 3.50 ms, 12.0 s, 8.43 min."""
    if seconds >= 119.95:
        return f"{seconds / 60:.3g} min"
    scale, unit = next(
        (scale, unit) for scale, unit in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")) if seconds < 999.5 * scale
    )
    value = seconds / scale
    if value < 0.995:
        return f"{value:.2g} {unit}"
    return f"{value:.{2 - math.floor(math.log10(max(value, 1)))}f} {unit}"

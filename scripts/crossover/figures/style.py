"""How figures and sentences look: colours, names and readable numbers."""

from __future__ import annotations

import matplotlib as mpl
import seaborn as sns
from matplotlib.patheffects import withStroke

from crossover.config.words import HALF, threads_of_side
from crossover.tables.labels import DEVICE_WORDS as DEVICE_WORDS
from crossover.tables.labels import PROTOCOL_WORDS as PROTOCOL_WORDS
from crossover.tables.labels import device_label as device_label
from crossover.tables.labels import short_name as short_name
from crossover.tables.labels import side_cores as side_cores
from crossover.tables.labels import side_word as side_word
from crossover.text import bytes_text as bytes_text
from crossover.text import core_count_text as core_count_text
from crossover.text import cores_text as cores_text
from crossover.text import money_text as money_text
from crossover.text import number_text as number_text
from crossover.text import percent_text as percent_text
from crossover.text import rate_text as rate_text
from crossover.text import seconds_text as seconds_text
from crossover.text import share_text as share_text
from crossover.text import small_text as small_text
from crossover.text import spaced as spaced

DEVICE_COLOURS = {"cpu": "#0072B2", "cuda": "#D55E00", "mps": "#D55E00", "xpu": "#D55E00"}
"""Okabe and Ito's palette, safe for colour-blind readers."""
CPU_SIDE_COLOUR = "#56B4E9"
"""The CPU on fewer cores: the CPU's colour, lighter."""
PALETTE = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#111111", "#0072B2", "#D55E00")
"""The same palette for what is told apart within a device: the devices' colours last, its faint yellow not at all."""
PART_COLOURS = {
    "parameter_bytes": "#0072B2",
    "gradient_bytes": "#56B4E9",
    "optimizer_bytes": "#009E73",
    "activation_bytes": "#E69F00",
    "resident_bytes": "#CC79A7",
    "other_bytes": "#999999",
}
"""The same palette for what memory is for."""
PUBLISHED_COLOUR = "#666666"
MISTAKE_COLOUR = "#CC79A7"
GUIDE_COLOUR = "#e3e3e3"
CROSSOVER_COLOUR = "#111111"

HALO = [withStroke(linewidth=3, foreground="white")]
"""Keeps a mark visible where a line runs behind it."""
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
"""Keeps a label readable where a line runs behind it; a halo would turn an SVG's text into shapes."""


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
            # A title, a label or a currency may hold dollars, and is no formula.
            "text.parse_math": False,
            "font.family": "sans-serif",
            # The first is drawn and embedded; an SVG is read where it may be missing, and Verdana is as wide.
            "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
            "svg.fonttype": "none",
            "svg.hashsalt": "crossover",
            "pdf.fonttype": 42,
            "savefig.facecolor": "white",
            "savefig.bbox": "tight",
            "savefig.dpi": 160,
        },
    )


def ink(colour: str) -> str:
    """A colour as it is used for text: darker where it would be faint on white."""
    red, green, blue = mpl.colors.to_rgb(colour)
    share = 0.65 if 0.299 * red + 0.587 * green + 0.114 * blue > 0.4 else 1.0
    return mpl.colors.to_hex((red * share, green * share, blue * share))


def side_look(device: str) -> tuple[str, str]:
    """Colour and dashes of a device's line; the fewer cores a CPU side has, the lighter it looks."""
    threads = threads_of_side(device)
    if threads is None:
        return DEVICE_COLOURS[device], "-"
    return CPU_SIDE_COLOUR, "--" if threads == HALF else ":"

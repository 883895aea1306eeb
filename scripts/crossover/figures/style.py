"""How figures and sentences look: colours, names and readable numbers."""

from __future__ import annotations

import math
import re

import matplotlib as mpl
import seaborn as sns
from matplotlib.patheffects import withStroke

from crossover.answers.wording import count_text, machine_words
from crossover.config.words import HALF, HERE, is_cpu, threads_of_side

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

YEAR_S, DAY_S, HOUR_S = 31_557_600, 86_400, 3_600
LONG_TIMES = ((2 * YEAR_S, YEAR_S, "years"), (2 * DAY_S, DAY_S, "days"), (HOUR_S, HOUR_S, "h"), (0, 60, "min"))
"""From how many seconds on a long time is told in which unit, and the unit's length in s."""

DEVICE_WORDS = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU", "xpu": "GPU"}
PROTOCOL_WORDS = {"as_published": "as published", "resident": "data resident on the device"}


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def side_word(device: str, threads: float | None = None) -> str:
    """'CPU on 8 cores': a device, and of the CPU the cores that it ran on, by their number or a CPU side's name."""
    word = DEVICE_WORDS[device.partition("-")[0]]
    cores = side_cores(device, threads) if is_cpu(device) else ""
    return f"{word} on {cores}" if cores else word


def side_cores(device: str, threads: float | None = None) -> str:
    """'1 core', '8 cores (half)', or 'half of its cores' where their number is not known; empty for all of them."""
    asked = threads_of_side(device)
    if threads is not None:
        return cores_text(threads) + " (half)" * (asked == HALF)
    if asked is None:
        return ""
    return "half of its cores" if isinstance(asked, str) else cores_text(asked)


def cores_text(count: float) -> str:
    """'1 core', '5.6 cores', '16 cores'."""
    words = core_count_text(count)
    return f"{words} core{'' if words == '1' else 's'}"


def core_count_text(count: float) -> str:
    """A number of cores, in whole ones from ten on: 1, 5.6, 16."""
    return f"{count:.2g}" if count < 9.95 else f"{count:,.0f}"


def side_look(device: str) -> tuple[str, str]:
    """Colour and dashes of a device's line; the fewer cores a CPU side has, the lighter it looks."""
    threads = threads_of_side(device)
    if threads is None:
        return DEVICE_COLOURS[device], "-"
    return CPU_SIDE_COLOUR, "--" if threads == HALF else ":"


def device_label(device: str, name: str | None, machine: str = HERE) -> str:
    """'GPU (NVIDIA H200)', and whose it is where machines are named."""
    word = f"{side_word(device)} ({short_name(name)})" if name else side_word(device)
    return word + machine_words("of", machine)


def short_name(name: str) -> str:
    """A device's name without what does not tell it apart: 'AMD EPYC 9D24', 'Intel Xeon Gold 6248'."""
    for noise in (r"\((R|TM|C)\)", r"@.*", r"\b\d+-Core\b", r"\b(CPU|Processor)\b"):
        name = re.sub(noise, " ", name)
    return " ".join(name.split())


def seconds_text(seconds: float) -> str:
    """A time with three digits in a fitting unit: 812 µs, 3.50 ms, 12.0 s, 8.43 min, 1.2 h, 3.4 days."""
    if seconds >= 119.95:
        length_s, name = next((length_s, name) for least_s, length_s, name in LONG_TIMES if seconds >= least_s)
        return f"{count_text(seconds / length_s, 3)} {name}"
    scale, unit = next(
        (scale, unit) for scale, unit in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")) if seconds < 999.5 * scale
    )
    value = seconds / scale
    if value < 0.995:
        return f"{value:.2g} {unit}"
    return f"{value:.{2 - math.floor(math.log10(max(value, 1)))}f} {unit}"


def number_text(value: float, digits: int = 3) -> str:
    """A number with three digits, or as many as are asked for, never as a power: 0.0123, 2.52, 107, 1,240."""
    if value <= 0:
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(float(f"{value:.{digits - 1}e}")))
    return f"{value:,.{max(0, places)}f}"


def percent_text(share: float) -> str:
    """A share in per cents with two digits or all before the point, never as a power: '0.11 %', '9.2 %', '153 %'."""
    return f"{number_text(100 * share, 2)} %"


def share_text(share: float) -> str:
    """A share in whole per cents: '7 %', 'under 1 %'."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def money_text(value: float) -> str:
    """An amount with two digits, never as a power: 0.0012, 0.85, 12, 4,300."""
    return number_text(value, 2)


def rate_text(samples_per_s: float) -> str:
    """A throughput: 12,345/s, 8.25/s."""
    return f"{samples_per_s:,.0f}/s" if samples_per_s >= 99.5 else f"{samples_per_s:.3g}/s"


def bytes_text(value: float) -> str:
    """Memory with three digits in a decimal unit: 512 B, 17.2 kB, 1.35 GB."""
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if value >= 0.9995 * scale), (1, "B")
    )
    return f"{number_text(value / scale)} {unit}" if unit != "B" else f"{value:.0f} B"


def spaced(name: str) -> str:
    """A name of the config as a reader says it: 'channels last'."""
    return name.replace("_", " ")


def small_text(value: float) -> str:
    """A small share with two digits; below a thousandth as a power of ten."""
    if value == 0 or abs(value) >= 1e-3:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"

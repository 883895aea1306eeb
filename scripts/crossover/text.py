"""Numbers with their units, and lists, as text for figures, pages and the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

YEAR_S, DAY_S, HOUR_S = 31_557_600, 86_400, 3_600
LONG_TIMES = ((2 * YEAR_S, YEAR_S, "years"), (2 * DAY_S, DAY_S, "days"), (HOUR_S, HOUR_S, "h"), (0, 60, "min"))
"""For long times: the shortest time in s that takes a unit, the unit's length in s, and its name."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def bytes_text(value: float) -> str:
    """Memory with three digits in a decimal unit: 512 B, 17.2 kB, 1.35 GB."""
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if value >= 0.9995 * scale), (1, "B")
    )
    return f"{number_text(value / scale)} {unit}" if unit != "B" else f"{value:.0f} B"


def number_text(value: float, digits: int = 3) -> str:
    """A number with three (or the given) significant digits, never as a power: 0.0123, 2.52, 107, 1,240."""
    if value <= 0:
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(float(f"{value:.{digits - 1}e}")))
    return f"{value:,.{max(0, places)}f}"


def count_text(value: float, digits: int = 2) -> str:
    """A count with two (or the given) significant digits: 6.5, 680, 1,200, 310 k, 2.8 million."""
    if value <= 0:
        return f"{value:g}"
    rounded = round(value, digits - 1 - math.floor(math.log10(value)))
    for limit, scale, unit in ((1e9, 1e9, " billion"), (1e6, 1e6, " million"), (1e4, 1e3, " k")):
        if rounded >= limit:
            return f"{rounded / scale:g}{unit}"
    return f"{rounded:,g}"


def known_count_text(value: float) -> str:
    """An exact count: all digits below 10 k, three from there on: 1,414, 177 k."""
    return f"{value:,.0f}" if value < 1e4 else count_text(value, 3)


def rate_text(samples_per_s: float) -> str:
    """A throughput: 12,345/s, 8.25/s."""
    return f"{samples_per_s:,.0f}/s" if samples_per_s >= 99.5 else f"{samples_per_s:.3g}/s"


def percent_text(share: float) -> str:
    """A share in per cent with two digits, or all before the point: 0.11 %, 9.2 %, 153 %."""
    return f"{'-' if share < 0 else ''}{number_text(abs(100 * share), 2)} %"


def share_text(share: float) -> str:
    """A share in whole per cent: 7 %, under 1 %."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def money_text(value: float) -> str:
    """An amount of money with two digits, never as a power: 0.0012, 0.85, 12, 4,300."""
    return number_text(value, 2)


def small_text(value: float) -> str:
    """A small share with two digits; below a thousandth as a power of ten."""
    if value == 0 or abs(value) >= 1e-3:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def cores_text(count: float) -> str:
    """A number of cores, with two digits below ten: 1 core, 5.6 cores, 16 cores."""
    words = f"{count:.2g}" if count < 9.95 else f"{count:,.0f}"
    return f"{words} core{'' if words == '1' else 's'}"


def spaced(name: str) -> str:
    """A name of the config with spaces for underscores: 'channels last'."""
    return name.replace("_", " ")


def listed(words: Sequence[str]) -> str:
    """A list as one writes it: 'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""Format numbers with units, and lists, for figures, pages and the terminal; `format.js` must agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal

YEAR_S, DAY_S, HOUR_S = 31_557_600, 86_400, 3_600
LONG_TIMES = ((2 * YEAR_S, YEAR_S, "years"), (2 * DAY_S, DAY_S, "days"), (HOUR_S, HOUR_S, "h"), (0, 60, "min"))
"""Units of long times: the shortest time in s that is given in the unit, the unit's length in s, and its name."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def seconds_text(seconds: float) -> str:
    """A time with at most three significant digits: 812 µs, 3.50 ms, 12.0 s, 8.43 min, 1.2 h, 3.4 days."""
    if seconds >= 119.95:
        length_s, name = next((length_s, name) for least_s, length_s, name in LONG_TIMES if seconds >= least_s)
        return f"{count_text(seconds / length_s)} {name}"
    scale, unit = next(
        (scale, unit) for scale, unit in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")) if seconds < 999.5 * scale
    )
    value = seconds / scale
    return f"{number_text(value, 2 if value < 0.995 else 3)} {unit}"


def bytes_text(value: float) -> str:
    """An amount of memory in a decimal unit: 512 B, 17.2 kB, 1.35 GB."""
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if value >= 0.9995 * scale), (1, "B")
    )
    return f"{number_text(value / scale)} {unit}" if unit != "B" else f"{value:.0f} B"


def number_text(value: float, digits: int = 3) -> str:
    """A positive number with `digits` significant digits, and all before the decimal point: 0.0123, 2.52, 1,243."""
    if value <= 0:
        return f"{value:g}"
    places = digits - 1 - _rounded(value, digits).adjusted()
    return f"{Decimal(repr(float(value))):,.{max(0, places)}f}"


def _rounded(value: float, digits: int) -> Decimal:
    return Context(prec=digits).create_decimal(repr(float(value)))


def count_text(value: float) -> str:
    """A count with at most three significant digits: 6.54, 681, 1,240, 310 k, 2.8 million."""
    if value <= 0:
        return f"{value:g}"
    rounded = _rounded(value, 3)
    scales = ((10**9, 10**9, " billion"), (10**6, 10**6, " million"), (10**4, 10**3, " k"), (0, 1, ""))
    scale, unit = next((scale, unit) for least, scale, unit in scales if rounded >= least)
    return f"{(rounded / scale).normalize():,f}{unit}"


def place_text(value: float, unit: str) -> str:
    """A position on an axis, without its unit: 1,414 or 65,536 or 39.6, but 703 k for parameters."""
    is_exact = math.isclose(value, round(value)) and (unit != "parameters" or value < 1e4)
    return f"{value:,.0f}" if is_exact else count_text(value)


def place_texts(values: Sequence[float], unit: str) -> list[str]:
    """Positions on an axis, each with its unit if some are abbreviated and others are not.

    For example 612 k and 2 million, but 105 parameters and 195 k parameters: '105 to 195 k' would read as 105 k.
    """
    texts = [place_text(value, unit) for value in values]
    scales = {text.partition(" ")[2] for text in texts}
    return [with_unit(text, unit) for text in texts] if "" in scales and len(scales) > 1 else texts


SINGULAR = {
    "parameters": "parameter",
    "CPU cores": "CPU core",
    "tokens of prompt": "token of prompt",
    "tokens of answer": "token of answer",
}


QUANTITIES = {"width": "width", "depth": "depth", "samples per batch": "batch"}
"""Units that are said before the number: 'width 512', 'batch 8'."""

UNITS_OF = "units of "
"""What sizes count if all that is known is the name of an argument in the singular: 'units of hidden'."""


def with_unit(text: str, unit: str) -> str:
    """Add the unit to a position on an axis unless it has it: '8 neurons', '1 token of prompt', 'n = 8', 'width 8'.

    Of units of an argument, only its name is added: 'hidden = 8'.
    """
    name = unit.removeprefix(UNITS_OF)
    quantity = QUANTITIES.get(name)
    if text.endswith(f" {unit}") or text.startswith(f"{quantity or name} "):
        return text
    if quantity:
        return f"{quantity} {text}"
    if len(unit) == 1 or name != unit:
        return f"{name} = {text}"
    return f"{text} {SINGULAR.get(unit, unit) if text == '1' else unit}"


def rate_text(samples_per_s: float) -> str:
    """A throughput: 12,345/s, 8.25/s."""
    return f"{samples_per_s:,.0f}/s" if samples_per_s >= 99.5 else f"{number_text(samples_per_s)}/s"


def percent_text(share: float) -> str:
    """A share in per cent with two significant digits, and all before the decimal point: 0.11 %, 9.2 %, 153 %."""
    return f"{'-' if share < 0 else ''}{number_text(abs(100 * share), 2)} %"


def share_text(share: float) -> str:
    """A share in whole per cent: 7 %, under 1 %."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def money_text(value: float) -> str:
    """An amount of money with two significant digits, and all before the decimal point: 0.0012, 0.85, 12, 4,312."""
    return number_text(value, 2)


def small_text(value: float) -> str:
    """A small share with at most two significant digits; below a thousandth, in scientific notation."""
    if value == 0 or abs(value) >= 1e-3:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def with_noun(count: int, noun: str) -> str:
    """A number of things: 1 trial, 2,000 trials, 3 searches."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return f"{noun}{'es' if noun.endswith('ch') else 's'}"


def cores_text(count: float, unit: str = "core") -> str:
    """A number of cores: 1 core, 5.6 cores, 16 cores."""
    words = f"{count:.2g}" if count < 9.95 else f"{count:,.0f}"
    return f"{words} {unit}{'' if words == '1' else 's'}"


def spaced(name: str) -> str:
    """A name from the config with spaces for underscores: 'channels last'."""
    return name.replace("_", " ")


def listed(words: Sequence[str]) -> str:
    """A list in words: 'a', 'a and b', 'a, b and c'; empty for none."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shortened(names: Sequence[str]) -> str:
    """Names in a few words: 'node1', 'node1 and node2', 'node1 and 3 more'."""
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"

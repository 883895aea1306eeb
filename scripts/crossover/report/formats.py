"""The filters with which the templates write numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crossover.text import (
    bytes_text,
    cores_text,
    count_text,
    known_count_text,
    listed,
    number_text,
    percent_text,
    rate_text,
    seconds_text,
    share_text,
    spaced,
)


def estimate_text(place: float) -> str:
    """An estimated place on an axis, with three digits: 680, 681 k."""
    return count_text(place, 3)


def amount_text(value: float, unit: str) -> str:
    """A value in its unit, without a size's; a whole size was measured and keeps its digits: 1,414, 177 k."""
    if unit in _OF_UNIT:
        return _OF_UNIT[unit](value)
    if not math.isclose(value, round(value)):
        return estimate_text(value)
    return known_count_text(value) if unit == "parameters" else f"{value:,.0f}"


def off_text(ratio: float) -> str:
    """How far a ratio is from 1: under 1 %, 48 %, or as a factor."""
    if abs(ratio - 1) < 0.01:
        return "under 1 %"
    return share_text(abs(ratio - 1)) if 0.5 < ratio < 2 else f"{max(ratio, 1 / ratio):.2g}×"


def signed_text(value: float) -> str:
    """A difference with five places: +0.00012."""
    return f"{value:+.5f}"


def span_text(values: Iterable[float], name: str) -> str:
    """The least and the greatest value by the filter of that name, or one text where they read the same."""
    known = sorted(values)
    return " to ".join(dict.fromkeys(FILTERS[name](value) for value in (known[0], known[-1])))


def escaped_markdown(text: object) -> str:
    """Text as Markdown shows it literally, in a table's cell too."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~@&$])", r"\\\1", str(text)).split())


def in_code(text: str) -> str:
    """Text as code in Markdown, whatever it holds, on one line."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    words = " ".join(text.splitlines())
    return f"{fence} {words} {fence}" if len(fence) > 1 else f"{fence}{words}{fence}"


_OF_UNIT: Mapping[str, Callable[[float], str]] = {
    "times": number_text,
    "share": percent_text,
    "difference": signed_text,
    "samples/s": rate_text,
    "s": seconds_text,
    "B": bytes_text,
    "cores": cores_text,
}

FILTERS: Mapping[str, Callable[..., Any]] = {
    "amount": amount_text,
    "bytes": bytes_text,
    "capitalised": lambda text: text[:1].upper() + text[1:],
    "code": in_code,
    "cores": cores_text,
    "count": lambda value: f"{value:,.0f}",
    "escaped": escaped_markdown,
    "estimate": estimate_text,
    "listed": listed,
    "number": number_text,
    "off": off_text,
    "percent": percent_text,
    "rate": rate_text,
    "seconds": seconds_text,
    "signed": signed_text,
    "spaced": spaced,
    "span": span_text,
}

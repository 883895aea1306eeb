"""The filters with which the templates write numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from crossover.text import (
    bytes_text,
    cores_text,
    listed,
    number_text,
    percent_text,
    place_text,
    place_texts,
    rate_text,
    seconds_text,
    share_text,
    spaced,
)


def amount_text(value: float, unit: str) -> str:
    """A value in its unit; a place on an axis without it."""
    return _OF_UNIT[unit](value) if unit in _OF_UNIT else place_text(value, unit)


def interval_text(values: Sequence[float], unit: str) -> str:
    """Both ends of an interval in their unit; places on an axis as `place_texts` writes them."""
    texts = [_OF_UNIT[unit](value) for value in values] if unit in _OF_UNIT else place_texts(values, unit)
    return " to ".join(dict.fromkeys(texts))


def places_text(values: Sequence[float], unit: str) -> str:
    """Places on an axis as a list with their unit, once or, as `place_texts` has it, each."""
    return _with_unit(listed(place_texts(values, unit)), unit)


def range_text(values: Sequence[float], unit: str) -> str:
    """The smallest and the largest of some places on an axis, with their unit as in `places_text`."""
    return _with_unit(interval_text([min(values), max(values)], unit), unit)


def _with_unit(text: str, unit: str) -> str:
    return text if text.endswith(f" {unit}") else f"{text} {unit}"


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
    "interval": interval_text,
    "places": places_text,
    "range": range_text,
    "bytes": bytes_text,
    "capitalised": lambda text: text[:1].upper() + text[1:],
    "code": in_code,
    "cores": cores_text,
    "count": lambda value: f"{value:,.0f}",
    "escaped": escaped_markdown,
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

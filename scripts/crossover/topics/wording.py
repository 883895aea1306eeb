"""Format the numbers of an answer with their units, and its points on an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    with_unit,
)

HOST_MEMORY = {"from_host": "pinned", "from_pageable": "pageable"}
"""The kind of host memory from which a protocol copies batches."""

MOST_POINTS = 4
"""Maximum number of points that a sentence names; of more, it gives their number and range."""


def signed_text(value: float) -> str:
    """Format a difference: +0.00012."""
    return f"{value:+.5f}"


_OF_UNIT: Mapping[str, Callable[[float], str]] = {
    "times": number_text,
    "share": percent_text,
    "difference": signed_text,
    "samples/s": rate_text,
    "s": seconds_text,
    "B": bytes_text,
    "cores": cores_text,
}


def amount_text(value: float, unit: str) -> str:
    """Format a value with its unit, or a position on an axis without its unit."""
    return _OF_UNIT[unit](value) if unit in _OF_UNIT else place_text(value, unit)


def position_text(value: float, unit: str) -> str:
    """Format a value, or a position on an axis, with its unit."""
    return with_unit(amount_text(value, unit), unit)


def interval_text(values: Sequence[float], unit: str) -> str:
    """Format an interval of values with their units, or of positions on an axis as `place_texts` does."""
    texts = [_OF_UNIT[unit](value) for value in values] if unit in _OF_UNIT else place_texts(values, unit)
    return " to ".join(dict.fromkeys(texts))


def ends_text(low: float | None, high: float | None, unit: str) -> str:
    """Format an interval that may be open at an end: '2.00 to 3.00', 'at least 2.00'; empty without an end."""
    if low is not None and high is not None:
        return interval_text([low, high], unit)
    if low is not None:
        return f"at least {amount_text(low, unit)}"
    return "" if high is None else f"at most {amount_text(high, unit)}"


def confidence_text(low: float | None, high: float | None, unit: str) -> list[str]:
    """The note on a 95 % interval, unless both ends are unknown."""
    return [f"95 % CI {ends_text(low, high, unit)}"] if low is not None else []


def places_text(values: Sequence[float], unit: str) -> str:
    """List positions on an axis, with their unit at the end unless `place_texts` adds it to each."""
    return with_unit(listed(place_texts(values, unit)), unit)


def range_text(values: Sequence[float], unit: str) -> str:
    """Format the smallest and the largest of several positions on an axis, with their unit."""
    return with_unit(interval_text([min(values), max(values)], unit), unit)


def points_text(values: Sequence[float], unit: str) -> str:
    """List points on an axis; of more than MOST_POINTS, their number and range."""
    if len(values) > MOST_POINTS:
        return f"{len(values)} {points_of(unit)} from {range_text(values, unit)}"
    return places_text(values, unit)


def span_text(values: Iterable[float], text: Callable[[float], str]) -> str:
    """Format the smallest and the largest value with `text`."""
    ordered = sorted(values)
    return " to ".join(dict.fromkeys(text(value) for value in (ordered[0], ordered[-1])))


def off_text(ratio: float) -> str:
    """Format the deviation of a ratio from 1: 'under 1 %', '48 %', or as a factor."""
    if abs(ratio - 1) < 0.01:
        return "under 1 %"
    return share_text(abs(ratio - 1)) if 0.5 < ratio < 2 else f"{max(ratio, 1 / ratio):.2g}x"


def point_of(unit: str) -> str:
    """What a point on an axis is called: size, batch size, number of cores, or a letter that names the size."""
    name = unit if len(unit) == 1 else "size"
    return {"samples per batch": "batch size", "CPU cores": "number of cores"}.get(unit, name)


def points_of(unit: str) -> str:
    return {"samples per batch": "batch sizes", "CPU cores": "numbers of cores"}.get(unit, "sizes")


def capitalised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]

"""The size of an SVG in CSS pixels, so that a page can leave room for it before it is drawn."""

from __future__ import annotations

import re
from pathlib import Path

from crossover.reading import read_text

HEAD_CHARACTERS = 4000
"""Within which the root element stands."""

PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
"""CSS pixels of a unit."""

_ROOT = re.compile(r"<svg\b[^>]*>")
_LENGTH = re.compile(r"([0-9.]+)(pt|px|in|)")


def svg_size(path: Path) -> tuple[int, int] | None:
    """Width and height in whole CSS pixels; None where the root element gives neither."""
    root = _ROOT.search(read_text(path, "figure")[:HEAD_CHARACTERS])
    lengths = [re.search(rf'\s{name}="([^"]*)"', root[0]) for name in ("width", "height")] if root else []
    found = [_LENGTH.fullmatch(length[1]) for length in lengths if length]
    width, height = (
        (round(float(one[1]) * PIXELS[one[2]]) for one in found if one) if len(found) == 2 and all(found) else (0, 0)
    )
    return (width, height) if width and height else None


def dimensions(path: Path) -> str:
    """The same as the attributes of an image, and for its style; empty where the size is not known."""
    size = svg_size(path)
    if size is None:
        return ""
    width, height = size
    return f' style="--width: {width}px; --height: {height}px" width="{width}" height="{height}"'

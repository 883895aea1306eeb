"""The figures that a run has drawn, ready to stand in the page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from crossover.figures.registry import FIGURES
from crossover.reading import UnreadableError, read_text

PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
"""CSS pixels of a unit."""


def figures_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Study, kind, caption, data URI and size in CSS pixels of each SVG `{study}/{kind}.svg`.

    The size is None where the file does not say it. Raises UserError for a file that is cut off.
    """
    return [_figure(path) for path in paths if path.suffix == ".svg"]


def _figure(path: Path) -> dict[str, Any]:
    text = read_text(path, "figure")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UnreadableError(path, f"not a readable figure ({error})") from None
    return {
        "study": path.parent.name,
        "kind": path.stem,
        "caption": FIGURES[path.stem].caption,
        "source": f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}",
        "width": _pixels(root.get("width")),
        "height": _pixels(root.get("height")),
    }


def _pixels(length: str | None) -> int | None:
    found = re.fullmatch(r"([0-9.]+)(pt|px|in|)", length or "")
    return round(float(found[1]) * PIXELS[found[2]]) if found else None


def lead_figure(figures: Sequence[dict[str, Any]], answered: Iterable[str]) -> dict[str, Any] | None:
    """The times of the first study with an answer, else the first figure there is."""
    leading = {figure["study"]: figure for figure in figures if figure["kind"] == "times"}
    return next((leading[study] for study in answered if study in leading), figures[0] if figures else None)

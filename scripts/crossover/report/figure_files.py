"""The figures that a run has drawn, ready to stand in the page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crossover.figures.registry import FIGURES
from crossover.reading import read_text


def figures_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Study, kind, caption, data URI and size in CSS pixels of each SVG `{study}/{kind}.svg`.

    The size is None where the file does not say it in points.
    """
    return [_figure(path) for path in paths if path.suffix == ".svg"]


def _figure(path: Path) -> dict[str, Any]:
    text = read_text(path, "figure")
    size = re.search(r'<svg [^>]*?width="([0-9.]+)pt" height="([0-9.]+)pt"', text)
    width, height = (round(float(points) * 4 / 3) for points in size.groups()) if size else (None, None)
    return {
        "study": path.parent.name,
        "kind": path.stem,
        "caption": FIGURES[path.stem].caption,
        "source": f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}",
        "width": width,
        "height": height,
    }


def lead_figure(figures: Sequence[dict[str, Any]], answered: Iterable[str]) -> dict[str, Any] | None:
    """The times of the first study with an answer, else the first figure there is."""
    leading = {figure["study"]: figure for figure in figures if figure["kind"] == "times"}
    return next((leading[study] for study in answered if study in leading), figures[0] if figures else None)

from __future__ import annotations

from pathlib import Path

import pytest
from crossover.figures.svg_size import dimensions, svg_size
from crossover.report.report_figures import FigureFile

from crossover.errors import UserError


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="72pt" height="90.3pt"', (96, 120)),
        ('width="96" height="12.6px"', (96, 13)),
        ('height="1in" viewBox="0 0 1 1" width="2in"', (192, 96)),
        ('width="100%" height="50%"', None),
        ('viewBox="0 0 1 1"', None),
        ('width="0" height="5"', None),
    ],
)
def test_the_size_is_that_of_the_root_in_pixels(attributes: str, size: tuple[int, int] | None, tmp_path: Path) -> None:
    path = tmp_path / "one.svg"
    path.write_text(f'<?xml version="1.0"?>\n<svg {attributes}><svg width="1" height="1"/></svg>')
    assert svg_size(path) == size
    sized = size and f' style="--width: {size[0]}px; --height: {size[1]}px" width="{size[0]}" height="{size[1]}"'
    assert dimensions(path) == (sized or "")


def test_what_is_no_svg_has_no_size(tmp_path: Path) -> None:
    path = tmp_path / "one.svg"
    path.write_text("nothing")
    assert svg_size(path) is None


@pytest.mark.parametrize("content", [b"", b"<svg><g></g>", b"\xff\xfe", b"<html></html"])
def test_a_figure_that_is_cut_off_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "times.svg"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"^{path}: not a readable figure.*; delete it and run again$"):
        _ = FigureFile(path).source


def test_a_takeaway_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"times\.txt: not a readable takeaway; delete it and run again$"):
        _ = FigureFile(tmp_path / "times.svg").takeaway

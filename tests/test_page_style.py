"""The colours of the page: said once for each look, and readable in both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLE = (Path(__file__).parents[1] / "report" / "page" / "style.css").read_text(encoding="utf-8")
NAMES = {"ink", "soft", "line", "paper", "tint", "accent", "good", "bad", "card"}


def colours(selector: str) -> dict[str, str]:
    """The colours that the first block of a selector sets."""
    block = STYLE[STYLE.index(selector) :].partition("}")[0]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))


LIGHT, DARK = colours(":root {"), colours(':root[data-theme="dark"]')


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_both_looks_have_every_colour_whoever_chose_them() -> None:
    assert set(LIGHT) == set(DARK) == NAMES
    assert colours(':root:not([data-theme="light"])') == DARK


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "soft", "accent", "good", "bad"])
@pytest.mark.parametrize("ground", ["paper", "tint"])
def test_text_is_readable_on_every_ground(look: dict[str, str], text: str, ground: str) -> None:
    """At least 4.5 (WCAG 2.2, level AA)."""
    assert contrast(look[text], look[ground]) >= 4.5


def test_black_on_white_is_the_largest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_no_colour_stands_outside_of_the_named_ones() -> None:
    rest = re.sub(r"--\w+: #[0-9a-f]{6}", "", STYLE)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", rest) == []


def test_the_dark_look_is_for_screens_alone() -> None:
    """So that it prints light."""
    for selector in (':root[data-theme="dark"]', ':root:not([data-theme="light"])'):
        assert STYLE[: STYLE.index(selector)].rstrip().splitlines()[-1].startswith("@media screen")

"""The page as a whole: quiet, quick, small, readable in light and dark, and on paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opened_page import Open
from report_pages import TEMPLATES, Page

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(run: Page, open_page: Open, width: int) -> None:
    opened = open_page(run.path)
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.everything()
    opened.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_libraries_wait_until_they_are_wanted(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    assert opened.page.evaluate("[typeof echarts, typeof Tabulator]") == ["undefined", "undefined"]
    opened.explore("widths")
    assert opened.page.evaluate("typeof echarts") == "object"
    opened.table()
    assert opened.page.evaluate("typeof Tabulator") == "function"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_axe_finds_nothing_serious(run: Page, open_page: Open, scheme: str, width: int) -> None:
    opened = open_page(run.path, color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.everything()
    assert opened.serious() == []


def luminance(colour: str) -> float:
    """Relative luminance of 'rgb(r, g, b)' (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_light_and_dark_are_chosen_by_the_system_and_by_hand(run: Page, open_page: Open) -> None:
    opened = open_page(run.path, color_scheme="dark")

    def colours() -> list[float]:
        script = "(name) => getComputedStyle(document.body)[name]"
        return [luminance(opened.page.evaluate(script, name)) for name in ("backgroundColor", "color")]

    paper, ink = colours()
    assert paper < 0.1
    assert (ink + 0.05) / (paper + 0.05) > 7
    opened.page.select_option("#theme select", "light")
    paper, ink = colours()
    assert paper > 0.9
    assert (paper + 0.05) / (ink + 0.05) > 7
    opened.page.reload()
    opened.requests.pop()
    assert colours()[0] > 0.9
    opened.page.select_option("#theme select", "auto")
    assert colours()[0] < 0.1


def test_on_paper_there_are_no_controls(run: Page, open_page: Open) -> None:
    opened = open_page(run.path, color_scheme="dark")
    opened.everything()
    opened.page.emulate_media(media="print")
    for selector in ("#theme", ".explorer", "#size-box", "#cell-table .controls", "#cell-table .tabulator"):
        assert not opened.page.locator(selector).first.is_visible()
    assert opened.page.locator("#cell-table .static tbody tr").count() == len(run.tables.cells)
    assert opened.page.locator("#cell-table .static").is_visible()
    assert luminance(opened.page.evaluate("getComputedStyle(document.body).backgroundColor") or "") in (0.0, 1.0)
    assert len(opened.page.pdf()) > 10_000


def test_on_paper_no_words_run_into_the_next_column(failed_run: Page, open_page: Open) -> None:
    """The width is that of A4 less its margins; nothing is testable where nothing worked."""
    opened = open_page(failed_run.path, viewport={"width": 688, "height": 1000})
    opened.page.emulate_media(media="print")
    assert "not testable here" in opened.page.locator(".claims .verdict").first.inner_text()
    script = "[...document.querySelectorAll('td, th')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1)"
    assert opened.page.evaluate(f"{script}.map((cell) => cell.innerText)") == []


def test_without_scripts_the_cells_are_there(run: Page, open_page: Open) -> None:
    opened = open_page(run.path, java_script_enabled=False)
    assert opened.page.locator("#cell-table .static").is_visible()
    assert not opened.page.locator("#size-box").is_visible()
    assert not opened.page.locator(".explorer").first.is_visible()


def test_a_run_in_which_nothing_worked_has_a_page_too(failed_run: Page, open_page: Open) -> None:
    opened = open_page(failed_run.path)
    opened.page.click('details.explorer[data-study="widths"] summary')
    opened.page.get_by_text("No cell of this study has a value to draw").wait_for()
    opened.page.fill("#size-box [name=amount]", "3000")
    opened.page.click("#size-box button[type=submit]")
    assert "no time was measured" in opened.page.locator("#size-box .answer").inner_text()
    opened.table()
    assert set(opened.column("status")) == {"timeout"}


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("page/**/*.js")) + sorted(TEMPLATES.rglob("page/**/*.css")), ids=lambda p: p.name
)
def test_no_file_of_the_page_asks_for_another_or_ends_its_element(path: Path) -> None:
    text = path.read_bytes()
    assert not text.startswith(b"\xef\xbb\xbf")
    for forbidden in (b"</script", b"<!--", b"</style", b"sourceMappingURL", b"@import"):
        assert forbidden not in text


def test_the_licences_of_the_libraries_are_in_the_page(run: Page) -> None:
    html = run.path.read_text()
    for words in ("Copyright (c) 2015-2026 Oli Folkerd", "Apache License", "Copyright 2010-2016 Mike Bostock"):
        assert words in html

"""The page as a whole: quiet, quick, small, readable in light and dark, and on paper."""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.image import imread

from opened_page import Open
from report_pages import TEMPLATES, Run

pytestmark = pytest.mark.slow

SLOWEST_MS = 3000 if os.environ.get("CI") else 1000
"""First paint; a machine of a CI has other work too."""


def test_the_page_is_on_screen_at_once(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    painted = opened.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    print(f"first paint after {painted:.0f} ms")
    assert painted < SLOWEST_MS


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(run: Run, open_page: Open, width: int) -> None:
    opened = open_page(run.path)
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.everything()
    opened.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_figure_keeps_its_words_readable_on_a_phone(run: Run, open_page: Open) -> None:
    """A figure 1,000 pixels wide is shown at seven tenths of that, and scrolls within the page."""
    opened = open_page(run.path, viewport={"width": 390, "height": 800})
    figure = opened.page.locator("figure img").first
    figure.evaluate("(image) => image.style.setProperty('--width', '1000px')")
    assert figure.evaluate("(image) => image.getBoundingClientRect().width") == pytest.approx(700)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.page.set_viewport_size({"width": 1280, "height": 800})
    assert figure.evaluate("(image) => image.getBoundingClientRect().width") < 100


def test_the_libraries_wait_until_they_are_wanted(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    assert opened.page.evaluate("[typeof echarts, typeof Tabulator]") == ["undefined", "undefined"]
    opened.explore("widths")
    assert opened.page.evaluate("typeof echarts") == "object"
    opened.table()
    assert opened.page.evaluate("typeof Tabulator") == "function"


def test_the_page_is_small(run: Run) -> None:
    assert run.path.stat().st_size < 2e6  # of 5 MB; the rest is for figures


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_axe_finds_nothing_serious(run: Run, open_page: Open, scheme: str, width: int) -> None:
    opened = open_page(run.path, color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.everything()
    assert opened.serious() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_where_a_search_leaves_no_cell(run: Run, open_page: Open, scheme: str) -> None:
    opened = open_page(run.path, color_scheme=scheme)
    opened.table()
    opened.page.fill("#cell-table .search", "disc cuda 11xyz")
    opened.page.get_by_text("no cell is left by the filters").wait_for()
    assert opened.page.locator("#cell-table .tabulator-row").count() == 0
    assert opened.serious() == []


def luminance(colour: str) -> float:
    """Relative luminance of 'rgb(r, g, b)' (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_light_and_dark_are_chosen_by_the_system_and_by_hand(run: Run, open_page: Open) -> None:
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


def test_figures_are_dark_in_the_dark_and_white_on_paper(run: Run, open_page: Open) -> None:
    """A pixel of the figure's white ground, by what is on screen."""
    opened = open_page(run.path, color_scheme="dark")

    def ground() -> float:
        figure = opened.page.locator("figure img").first
        pixels = imread(BytesIO(figure.screenshot()), format="png")
        return luminance(str([round(255 * part) for part in pixels[len(pixels) // 2, 2, :3]]))

    assert ground() < 0.03
    opened.page.select_option("#theme select", "light")
    assert ground() > 0.9
    opened.page.select_option("#theme select", "dark")
    assert ground() < 0.03
    opened.page.emulate_media(media="print")
    assert ground() > 0.9


def test_a_chart_follows_the_theme(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    inks = []
    for theme in ("light", "dark"):
        opened.page.select_option("#theme select", theme)
        inks.append(opened.page.locator(".explorer svg text").first.get_attribute("fill"))
    assert inks[0] != inks[1]


def test_on_paper_there_are_no_controls(run: Run, open_page: Open) -> None:
    opened = open_page(run.path, color_scheme="dark")
    opened.everything()
    opened.page.emulate_media(media="print")
    for selector in ("#theme", ".explorer", "#size-box", "#cell-table .controls", "#cell-table .tabulator"):
        assert not opened.page.locator(selector).first.is_visible()
    assert opened.page.locator("#cell-table .static tbody tr").count() == len(run.cells)
    assert opened.page.locator("#cell-table .static").is_visible()
    assert luminance(opened.page.evaluate("getComputedStyle(document.body).backgroundColor") or "") in (0.0, 1.0)
    assert len(opened.page.pdf()) > 10_000


PAGE_PX = (297 - 2 * 14) * 96 / 25.4
"""Height of A4 less its margins."""


def test_on_paper_the_config_takes_a_page_and_not_five(run: Run, open_page: Open) -> None:
    """Of 250 lines; the width is that of A4 less its margins."""
    opened = open_page(run.path, viewport={"width": 688, "height": 1000})
    opened.page.emulate_media(media="print")
    lines = "key: value\\n" * 250
    opened.page.evaluate(f"document.querySelector('#config pre').textContent = '{lines}'")
    assert opened.page.locator("#config").evaluate("(config) => config.getBoundingClientRect().height") < PAGE_PX


def test_on_paper_two_figures_stand_on_a_page_and_tall_ones_are_not_squeezed(run: Run, open_page: Open) -> None:
    """Figures as the workflow draws them, with a takeaway of two lines and a caption of four."""
    opened = open_page(run.path)
    opened.page.evaluate(
        """(sizes) => {
        const figure = ([width, height]) => {
          const svg = `<svg xmlns='http://www.w3.org/2000/svg' width='${width}' height='${height}'/>`;
          const source = `data:image/svg+xml,${encodeURIComponent(svg)}`;
          const style = `--width: ${width}px; --height: ${height}px`;
          return `<figure><p class="takeaway">${"words ".repeat(30)}</p>
            <div class="scroll"><img src="${source}" style="${style}" width="${width}" height="${height}"></div>
            <figcaption>${"words ".repeat(80)}</figcaption></figure>`;
        };
        // Scripts stay: one may be about to read the data that lies in another.
        document.querySelectorAll("body > :not(script)").forEach((part) => part.remove());
        document.body.insertAdjacentHTML("afterbegin", sizes.map(figure).join(""));
        }""",
        [[779, 472], [847, 673], [779, 472], [1417, 745], [847, 2000]],
    )
    assert len(re.findall(rb"/Type\s*/Page\b", opened.page.pdf(prefer_css_page_size=True))) == 3
    opened.page.set_viewport_size({"width": 688, "height": 1000})
    opened.page.emulate_media(media="print")
    heights = opened.page.locator("img").evaluate_all("(found) => found.map((one) => one.height)")
    assert max(heights[:4]) <= 378  # 100 mm
    assert PAGE_PX / 2 < heights[4] < PAGE_PX


def test_on_paper_the_claims_follow_the_first_screen(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.page.emulate_media(media="print")
    claims = opened.page.locator("section[aria-labelledby=claims]")
    assert claims.evaluate("(section) => getComputedStyle(section).breakBefore") == "auto"


def test_on_paper_no_words_run_into_the_next_column(failed_run: Run, open_page: Open) -> None:
    """The width is that of A4 less its margins; nothing is testable where nothing worked."""
    opened = open_page(failed_run.path, viewport={"width": 688, "height": 1000})
    opened.page.emulate_media(media="print")
    assert "not testable here" in opened.page.locator(".claims .verdict").first.inner_text()
    script = "[...document.querySelectorAll('td, th')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1)"
    assert opened.page.evaluate(f"{script}.map((cell) => cell.innerText)") == []


def test_without_scripts_the_cells_are_there(run: Run, open_page: Open) -> None:
    opened = open_page(run.path, java_script_enabled=False)
    assert opened.page.locator("#cell-table .static").is_visible()
    assert not opened.page.locator("#size-box").is_visible()
    assert not opened.page.locator(".explorer").first.is_visible()


def test_a_run_in_which_nothing_worked_has_a_page_too(failed_run: Run, open_page: Open) -> None:
    opened = open_page(failed_run.path)
    opened.page.click('details.explorer[data-study="widths"] summary')
    opened.page.get_by_text("No cell of this study has a value to draw").wait_for()
    opened.page.fill("#size-box [name=amount]", "3000")
    opened.page.click("#size-box button[type=submit]")
    assert "no time at size 3000" in opened.page.locator("#size-box .answer").inner_text()
    opened.table()
    assert set(opened.column("status")) == {"timeout"}


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("*.js")) + sorted(TEMPLATES.rglob("*.css")), ids=lambda p: p.name
)
def test_no_file_of_the_page_asks_for_another_or_ends_its_element(path: Path) -> None:
    text = path.read_bytes()
    assert not text.startswith(b"\xef\xbb\xbf")
    for forbidden in (b"</script", b"<!--", b"</style", b"sourceMappingURL", b"@import"):
        assert forbidden not in text


def test_the_licences_of_the_libraries_are_in_the_page(run: Run) -> None:
    html = run.path.read_text()
    for words in ("Copyright (c) 2015-2026 Oli Folkerd", "Apache License", "Copyright 2010-2016 Mike Bostock"):
        assert words in html

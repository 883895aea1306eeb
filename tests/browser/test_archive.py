"""What `snakemake --report` packs opens, whatever the number of figures and whoever wrote the words."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from house import House
from opened_page import Opened

TITLE = '<script>alert(1)</script>"\' 🙂 \u202egnippils </script><!--<script>'
QUESTION = "<img src=x onerror=alert(3)>"
FIGURES = ["times", "memory", "comparison", "trade_off"]
RESULTS = "a<!--<script b"
STUDIES = {f"with_{number}": FIGURES[:number] for number in range(1, len(FIGURES) + 1)}


@pytest.fixture(scope="module")
def archive(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in the archive of a CPU's run: studies of one figure to four, with markup for words and in a path."""
    folder = tmp_path_factory.mktemp("archive")
    house = House(folder / "house")
    studies = house.path / "config" / "studies"
    for name, figures in STUDIES.items():
        (studies / f"{name}.yaml").write_bytes((studies / "disc_depth.yaml").read_bytes())
        published = {"statement": TITLE, "source": QUESTION}
        claims = [{"statement": TITLE, "source": QUESTION, "crossover_between": {"range": [100, 1000]}}]
        words = {"title": TITLE, "question": QUESTION, "published": published, "claims": claims}
        house.edit(f"studies/{name}", sizes=[2], figures=figures, **words)
    house.config(studies=list(STUDIES), results=RESULTS)
    for options in ([], ["--report", "report.zip"]):
        done = house.snakemake(*options)
        assert done.returncode == 0, done.stderr
    zipfile.ZipFile(house.path / "report.zip").extractall(folder)
    return folder / "report" / "report.html"


@pytest.fixture
def page(archive: Path, browser: Browser) -> Page:
    context = browser.new_context(offline=True)
    context.set_default_timeout(5000)
    return context.new_page()


def test_every_category_lists_its_results_and_every_figure_is_shown(archive: Path, page: Page) -> None:
    opened = Opened(page)
    opened.watch()
    page.goto(archive.as_uri())
    shown = {}
    for category in ("Report", "Tables", *STUDIES):
        page.click(f"nav li a:has-text('{category}')")
        rows = page.locator("nav tbody tr")
        rows.first.wait_for()
        labels = rows.locator("td:first-child").all_inner_texts()
        shown[category] = len(labels)
        for row, label in zip(rows.all(), labels, strict=True):
            if category in STUDIES:
                row.locator("a").first.click()
                page.wait_for_function("document.querySelector('#app > div > div img')?.naturalWidth > 0")
                assert "Every size" in label or ": " in label
        page.click("nav a:has(svg)")
    page.context.close()
    opened.assert_offline()
    assert [shown[name] for name in STUDIES] == [1, 2, 3, 4]


def test_the_words_of_a_study_are_text(archive: Path, page: Page) -> None:
    opened = Opened(page)
    opened.watch()
    page.goto(archive.as_uri())
    for category in ("Report", "Tables", *STUDIES):
        page.evaluate("(category) => app.showCategory(category)", category)
        page.locator("nav tbody tr").first.wait_for()
    path = page.evaluate("Object.keys(results).find((path) => path.endsWith('with_2/times.svg'))")
    page.evaluate("(path) => app.showResultInfo(path)", path)
    page.locator("nav :text('Job parameters')").wait_for()
    assert page.locator("nav").inner_text().count(QUESTION) >= 2
    assert TITLE.split('"')[0] in page.locator("nav").inner_text()
    assert path.startswith(RESULTS)
    page.context.close()
    opened.assert_offline()

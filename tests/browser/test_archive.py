"""The archive made by `snakemake --report` opens, with any number of figures, and escapes users' text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from opened_page import Opened
from processes import PATIENCE_S
from workflow_copy import WorkflowCopy

pytestmark = pytest.mark.slow

TITLE = "<script>alert(1)</script>\"' 🙂 \u202egnippils </script><!--<script>"
QUESTION = "<img src=x onerror=alert(3)>"
FIGURES = ["times", "memory", "comparison", "trade_off"]
RESULTS = "a, b"
STUDIES = {f"with_{number}": FIGURES[:number] for number in (1, 2, 4)}

SHOWN = """[...document.querySelectorAll("img[src^='data/']")]
  .filter((image) => image.complete && image.naturalWidth > 0).map((image) => image.getAttribute("src"))[0] ?? null"""
"""JavaScript that returns the path of the image on the page, or null."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in the archive of a run on the CPU, with one to four figures per study, and markup in its texts."""
    folder = tmp_path_factory.mktemp("archive")
    workflow = WorkflowCopy(folder / "workflow")
    studies = workflow.path / "config" / "studies"
    for name, figures in STUDIES.items():
        (studies / f"{name}.yaml").write_bytes((studies / "disc_depth.yaml").read_bytes())
        published = {"statement": TITLE, "source": QUESTION}
        claims = [{"statement": TITLE, "source": QUESTION, "crossover_between": {"range": [100, 1000]}}]
        words = {"title": TITLE, "question": QUESTION, "published": published, "claims": claims}
        workflow.edit(f"studies/{name}", sizes=[2], figures=figures, **words)
    workflow.config(studies=list(STUDIES), results=RESULTS)
    for options in ([], ["--report", "report.zip"]):
        done = workflow.snakemake(*options)
        assert done.returncode == 0, done.stderr
    zipfile.ZipFile(workflow.path / "report.zip").extractall(folder)
    return folder / "report" / "report.html"


@pytest.fixture
def opened(archive: Path, browser: Browser) -> Iterator[Opened]:
    """The archive's page, opened; at teardown, fail if it logged errors or made requests."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(1000 * PATIENCE_S)
    opened = Opened(context.new_page())
    opened.watch()
    opened.page.goto(archive.as_uri())
    yield opened
    context.close()
    opened.assert_offline()


def labels_of(page: Page, category: str) -> list[str]:
    """Click a category in the menu, and return the labels of its results."""
    page.locator("nav nav a").first.click()
    page.click(f"nav li span:text-is('{category}')")
    page.locator("nav tbody tr").first.wait_for()
    return page.locator("nav tbody td:first-child").all_inner_texts()


def view(page: Page, index: int) -> str:
    """Open a result, and return the name of its image."""
    before = page.evaluate(SHOWN)
    page.locator("nav tbody tr").nth(index).locator("a").first.click()
    page.wait_for_function(f"before => ![null, before].includes({SHOWN})", arg=before)
    return Path(page.evaluate(SHOWN)).stem


def test_every_figure_of_every_study_is_listed_and_shown(opened: Opened) -> None:
    shown = {}
    for study in STUDIES:
        labels = labels_of(opened.page, study)
        assert set(labels) == {kind.replace("_", " ") for kind in STUDIES[study]}
        shown[study] = {view(opened.page, index) for index in range(len(labels))}
    assert shown == {study: set(figures) for study, figures in STUDIES.items()}

"""The page escapes all texts from users and machines."""

from __future__ import annotations

import pytest

from opened_page import Open
from report_pages import Page

pytestmark = pytest.mark.slow

MARK = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def test_no_text_becomes_an_element(hostile_run: Page, run: Page, open_page: Open) -> None:
    counts = []
    for written in (run, hostile_run):
        opened = open_page(written.path)
        opened.everything()
        opened.page.wait_for_timeout(200)
        counts.append(opened.page.evaluate("['script', 'img'].map((tag) => document.querySelectorAll(tag).length)"))
        opened.assert_quiet()
    assert counts[0] == counts[1]


def test_texts_are_shown_literally(hostile_run: Page, open_page: Open) -> None:
    opened = open_page(hostile_run.path)
    assert MARK in opened.page.locator("#study-widths").first.inner_text()
    assert MARK in opened.chart.locator(".plot svg").inner_html().replace("&lt;", "<").replace("&gt;", ">")
    assert MARK in opened.readout
    opened.table()
    opened.page.fill("#cell-table .search", "onerror")
    opened.page.click("#cell-table .tabulator-row a[href^='#cell=']")
    opened.page.wait_for_selector("#cell-table .cell pre")
    assert MARK in opened.page.locator("#cell-table .cell pre").inner_text()

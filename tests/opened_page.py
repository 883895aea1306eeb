"""A page in a browser: what tests do with it, and what it must not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

POINT = """([study, series, at]) => {
  const plot = document.querySelector(`details.explorer[data-study="${study}"] .plot`);
  const chart = echarts.getInstanceByDom(plot);
  const options = chart.getOption().series;
  const index = options.findIndex((one) => one.name?.startsWith(series));
  const found = options[index].data.find((one) => one.value[0] === at);
  const [x, y] = chart.convertToPixel({ seriesIndex: index }, found.value);
  const box = plot.getBoundingClientRect();
  return [box.x + x, box.y + y];
}"""
"""Where a point of a chart lies on the screen."""


@dataclass
class Opened:
    """A page in the browser, and what it did that it should not have done."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note all requests but those of the file itself, all errors and all dialogs."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def assert_offline(self) -> None:
        """Nothing was asked for but files of this machine, nothing failed, nothing popped up."""
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert (outside, self.errors, self.dialogs) == ([], [], [])

    def assert_quiet(self) -> None:
        """The same, and of files the page itself alone."""
        self.assert_offline()
        assert len([url for url in self.requests if url.startswith("file:")]) == 1

    def explore(self, study: str) -> None:
        """Open a study's chart."""
        self.page.click(f'details.explorer[data-study="{study}"] summary')
        self.page.wait_for_selector(f'details.explorer[data-study="{study}"] svg text')

    def table(self) -> None:
        """Have the table of cells drawn."""
        self.page.locator("#cell-table .table").scroll_into_view_if_needed()
        self.page.wait_for_selector("#cell-table .tabulator-row")

    def everything(self) -> None:
        """Have all parts of the page drawn."""
        self.explore("widths")
        self.page.fill("#size-box [name=amount]", "3000")
        self.page.click("#size-box button[type=submit]")
        self.table()
        self.page.click("#cell-table .tabulator-row a[href^='#cell=']")
        self.page.wait_for_selector("#cell-table .cell pre")

    def hover(self, study: str, series: str, at: float) -> str:
        """The text beside a point of a series, by the beginning of its name, when the mouse is on it."""
        chart = self.page.locator(f'details.explorer[data-study="{study}"]')
        chart.locator(".plot").scroll_into_view_if_needed()
        self.page.mouse.move(*self.page.evaluate(POINT, [study, series, at]))
        chart.locator(".tip").wait_for()
        return str(chart.locator(".tip").inner_text())

    def serious(self) -> list[tuple[str, list[str]]]:
        """What axe finds serious or critical, each with the first elements concerned."""
        found = Axe().run(self.page).response["violations"]
        return [
            (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def column(self, key: str) -> list[str]:
        """Texts of a column of the table, as far as it is drawn."""
        return self.page.locator(f'#cell-table .tabulator-row [tabulator-field="{key}"]').all_inner_texts()


Open = Callable[..., Opened]
"""Opens the page of a path, at an anchor; keywords are those of a browser context."""

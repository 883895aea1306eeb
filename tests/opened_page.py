"""A page in a browser: what tests do with it, and what it must not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page


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

    @property
    def chart(self) -> Locator:
        """The page's chart with its controls."""
        return self.page.locator("#chart")

    @property
    def readout(self) -> str:
        """What the chart says of the size."""
        return self.chart.locator(".readout").inner_text()

    @property
    def texts(self) -> list[str]:
        """All words in the chart's picture."""
        return self.chart.locator("svg text").all_text_contents()

    def choices(self, title: str) -> bool:
        """Whether the chart has a choice of that title."""
        return self.chart.locator(f"[name={title}]").is_visible()

    def choose(self, title: str, value: str) -> None:
        """Choose a study, what is shown, a line or an axis."""
        self.chart.locator(f"[name={title}]").select_option(value)

    def table(self) -> None:
        """Have the table of cells drawn."""
        self.page.evaluate("document.getElementById('data').open = true")
        self.page.locator("#cell-table .table").scroll_into_view_if_needed()
        self.page.wait_for_selector("#cell-table .tabulator-row")

    def everything(self) -> None:
        """Have all parts of the page drawn."""
        self.chart.get_by_role("slider").focus()
        self.page.keyboard.press("End")
        self.table()
        self.page.click("#cell-table .tabulator-row a[href^='#cell=']")
        self.page.wait_for_selector("#cell-table .cell pre")

    def serious(self) -> list[tuple[str, list[str]]]:
        """What axe finds serious or critical, each with the first elements concerned."""
        violations = Axe().run(self.page).response["violations"]
        return [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]

    def column(self, key: str) -> list[str]:
        """Texts of a column of the table, as far as it is drawn."""
        return self.page.locator(f'#cell-table .tabulator-row [tabulator-field="{key}"]').all_inner_texts()


Open = Callable[..., Opened]
"""Opens the page of a path, at an anchor; keywords are those of a browser context."""

"""A page opened in a browser, with actions and checks for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page


@dataclass
class Opened:
    """A page opened in the browser, with its requests, errors and dialogs."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def assert_offline(self) -> None:
        """Assert that the page requested only local files, and raised no error or dialog."""
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert (outside, self.errors, self.dialogs) == ([], [], [])

    def assert_quiet(self) -> None:
        """Assert the same, and that the page is the only file requested."""
        self.assert_offline()
        assert len([url for url in self.requests if url.startswith("file:")]) == 1

    @property
    def chart(self) -> Locator:
        return self.page.locator("#chart")

    @property
    def readout(self) -> str:
        return self.chart.locator(".readout").inner_text()

    @property
    def texts(self) -> list[str]:
        return self.chart.locator("svg text").all_text_contents()

    def has_control(self, title: str) -> bool:
        return self.chart.locator(f"[name={title}]").is_visible()

    def choose(self, title: str, value: str) -> None:
        self.chart.locator(f"[name={title}]").select_option(value)

    def table(self) -> None:
        """Scroll to the table of cells, which is drawn when it is seen."""
        self.page.evaluate("document.getElementById('data').open = true")
        self.page.locator("#cell-table .table").scroll_into_view_if_needed()
        self.page.wait_for_selector("#cell-table .tabulator-row")

    def everything(self) -> None:
        self.chart.get_by_role("slider").focus()
        self.page.keyboard.press("End")
        self.table()
        self.page.click("#cell-table .tabulator-row a[href^='#cell=']")
        self.page.wait_for_selector("#cell-table .cell pre")

    def serious(self) -> list[tuple[str, list[str]]]:
        """The serious and critical findings of axe, each with the first elements concerned."""
        violations = Axe().run(self.page).response["violations"]
        return [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]

    def column(self, key: str) -> list[str]:
        """The texts in a column of the drawn part of the table."""
        return self.page.locator(f'#cell-table .tabulator-row [tabulator-field="{key}"]').all_inner_texts()


Open = Callable[..., Opened]
"""Opens a page by path, at an anchor; keywords are passed to the browser context."""

"""Fixtures: an offline browser, and pages of made-up runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, sync_playwright

from opened_page import Open, Opened
from processes import PATIENCE_S
from report_pages import Page, trial_command, write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \'quoted\' "too" 🙂 \u202egnippils {{ 7 * 7 }}'
GPU_S = {"as_published": 5e-4, "resident": 4e-4}
Row = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = os.environ.get("CROSSOVER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        reason = f"no browser: install one of {', '.join(NAMES)}, or name it in CROSSOVER_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a page offline; at teardown, fail if it logged errors or made requests."""
    contexts, pages = [], []

    def act(path: Path, anchor: str = "", **options: Any) -> Opened:
        context = browser.new_context(**{"offline": True, "viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE_S)
        opened = Opened(context.new_page())
        pages.append(opened)
        opened.watch()
        opened.page.goto(f"{path.as_uri()}{anchor}")
        return opened

    yield act
    for context in contexts:
        context.close()
    for opened in pages:
        opened.assert_quiet()


@pytest.fixture(scope="session")
def rows(row: Row) -> pd.DataFrame:
    """The trials of two studies.

    In `widths`, the CPU takes 1 us per neuron, the GPU 0.5 ms or, with resident data, 0.4 ms; three trials are 1 %
    apart. With resident data, the GPU runs out of memory at the largest size. In `depths`, three sizes have one trial
    each; the CPU's first cell is flagged.
    """
    widths = [
        row(
            study="widths",
            size=n,
            parameters=10 * n,
            size_name="neurons",
            protocol=protocol,
            device=device,
            trial=trial,
            step_time_s=(n * 1e-6 if device == "cpu" else GPU_S[protocol]) * 1.01 ** (trial - 2),
            peak_allocated_bytes=1e6 * n if device == "cuda" else None,
            timed_steps=100 * trial,
            command=trial_command(
                trial, device, f"results/a b/trial-{trial}.parquet", study="widths", protocol=protocol, size=n
            ),
        )
        for n in (100, 200, 400, 800, 1600)
        for protocol in ("as_published", "resident")
        for device in ("cpu", "cuda")
        for trial in (1, 2, 3)
    ]
    for trial in widths:
        if (trial["size"], trial["device"], trial["protocol"]) == (1600, "cuda", "resident"):
            trial |= {"status": "oom", "reason": "8 GB wanted", "step_time_s": None, "peak_allocated_bytes": None}
    depths = [
        row(study="depths", size=n, parameters=10**n, device=device, step_time_s=2.0**n * unit_s, flag_names=flags)
        for n in (2, 3, 4)
        for device, unit_s, flags in (("cpu", 1e-5, ["quota"] if n == 2 else []), ("cuda", 1.5e-5, []))
    ]
    return pd.DataFrame(widths + depths)


@pytest.fixture(scope="session")
def run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return write_page(rows, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="session")
def failed_run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    failed = rows.assign(status="timeout", reason="not done after 300 s", step_time_s=None, peak_allocated_bytes=None)
    return write_page(failed, tmp_path_factory.mktemp("failed"))


@pytest.fixture(scope="session")
def hostile_run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of `run` with markup and scripts in all texts from users and machines."""
    words = {"device_name": HOSTILE, "hostname": HOSTILE, "size_name": HOSTILE, "command": f"measure {HOSTILE}"}
    changed = rows.assign(**words).assign(reason=rows["reason"].where(rows["reason"].isna(), f"={HOSTILE}"))
    return write_page(changed, tmp_path_factory.mktemp(f"{HOSTILE[:8]}#?".replace("/", "")), HOSTILE)

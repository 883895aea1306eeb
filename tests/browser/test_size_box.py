"""The box for your own size: interpolated between measured sizes, and nothing outside."""

from __future__ import annotations

import pytest

from opened_page import Open, Opened
from report_pages import Page

pytestmark = pytest.mark.slow


def ask(opened: Opened, study: str, amount: str, unit: str = "size") -> list[str]:
    """The lines of the box's answer."""
    box = opened.page.locator("#size-box")
    box.scroll_into_view_if_needed()
    box.locator("[name=study] option").first.wait_for(state="attached")
    box.locator("[name=study]").select_option(study)
    box.locator("[name=unit]").select_option(unit)
    box.locator("[name=amount]").fill(amount)
    box.locator("button[type=submit]").click()
    return [line for line in box.locator(".answer").inner_text().splitlines() if line]


@pytest.mark.parametrize(
    ("amount", "unit", "cpu", "ahead"),
    [
        # The CPU takes 1 us a neuron; the GPU 0.5 ms, whatever the size.
        ("400", "size", "400 µs a step, measured.", "CPU (Brand C1) is 1.25 times as fast as GPU (Brand G1)."),
        ("0.6 k", "size", "600 µs a step, interpolated between 400 and 800.", "GPU (Brand G1) is 1.20 times as fast"),
        ("6,000", "parameters", "600 µs a step, interpolated between 4,000 and 8,000.", "GPU (Brand G1) is 1.20 times"),
    ],
)
def test_a_size_within_the_range_is_interpolated(
    run: Page, open_page: Open, amount: str, unit: str, cpu: str, ahead: str
) -> None:
    lines = ask(open_page(run.path), "widths", amount, unit)
    assert lines[:3] == ["as published, batch 100", f"CPU (Brand C1): {cpu}", lines[2]]
    assert lines[2].startswith("GPU (Brand G1): 500 µs a step, ")
    assert lines[3].startswith(ahead)


def test_outside_of_what_a_device_measured_nothing_is_said(run: Page, open_page: Open) -> None:
    """With resident data the GPU has no time at 1,600."""
    opened = open_page(run.path)
    resident = ask(opened, "widths", "1000")[4:]
    assert resident[1].startswith("CPU (Brand C1): 1.00 ms a step")
    assert resident[2] == "GPU (Brand G1): measured from 100 to 800 neurons only; nothing is said outside."
    assert len(resident) == 3  # nor is it said which is faster
    assert all("nothing is said outside" in line for line in ask(opened, "depths", "5")[1:])


@pytest.mark.parametrize("typed", ["", "0", "1 to 2"])
def test_what_is_no_size_is_said_to_be_none(run: Page, open_page: Open, typed: str) -> None:
    assert ask(open_page(run.path), "widths", typed) == [
        f"“{typed}” is no size; type a number above 0, such as 2,000 or 703 k."
    ]


def test_a_line_can_be_chosen(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    ask(opened, "widths", "400")
    opened.page.locator("#size-box [name=line]").select_option(index=2)
    headings = opened.page.locator("#size-box .answer h3").all_inner_texts()
    assert headings == ["data resident on the device, batch 100"]

"""The page's JavaScript formats numbers as the Python code does."""

from __future__ import annotations

import random

import pytest

from crossover import text
from crossover.topics.wording import range_text
from opened_page import Open
from report_pages import Page

pytestmark = pytest.mark.slow

FUNCTIONS = {
    "seconds": text.seconds_text,
    "bytes": text.bytes_text,
    "number": text.number_text,
    "rate": text.rate_text,
}


def values() -> list[float]:
    """Numbers of all magnitudes, whole numbers, and numbers close to a change of unit or of rounding."""
    draw = random.Random(0)
    spread = [10 ** draw.uniform(-9, 13) for _ in range(1000)]
    ends = [factor * 10.0**power for power in range(-9, 13) for factor in (0.995, 0.9995, 0.99949, 1, 1.125, 1.115)]
    units = [59.95, 119.94, 119.95, 3599, 7200.5, 172_800, 63_115_200, 11_250, 11_350]
    return [*spread, *map(round, spread), *ends, *units]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_have_the_same_format_in_python_and_on_the_page(run: Page, open_page: Open, name: str) -> None:
    texts = open_page(run.path).page.evaluate(f"(values) => values.map(Crossover.format.{name})", values())
    assert texts == [FUNCTIONS[name](value) for value in values()]


@pytest.mark.parametrize("unit", ["parameters", "neurons"])
def test_positions_have_the_same_format_in_python_and_on_the_page(run: Page, open_page: Open, unit: str) -> None:
    script = "([values, unit]) => values.map((value) => Crossover.format.place(value, unit))"
    texts = open_page(run.path).page.evaluate(script, [values(), unit])
    assert texts == [text.place_text(value, unit) for value in values()]


def test_units_are_added_in_python_as_on_the_page(run: Page, open_page: Open) -> None:
    units = ["neurons", "n", "units of hidden", "units of width", *text.QUANTITIES]
    page = open_page(run.path).page
    texts = page.evaluate("(units) => units.map((unit) => Crossover.format.withUnit('64', unit))", units)
    assert texts == [text.with_unit("64", unit) for unit in units]
    ranges = page.evaluate("(units) => units.map((unit) => Crossover.format.range([105, 195278.5], unit))", units)
    assert ranges == [range_text([105, 195_278.5], unit) for unit in units]

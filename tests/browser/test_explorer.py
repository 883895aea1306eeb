"""A study's chart in a browser: values on hover, lines on and off, scales, metrics, crossovers."""

from __future__ import annotations

import pandas as pd
import pytest

from opened_page import Open, Opened
from report_pages import Page, write_page

pytestmark = pytest.mark.slow


def texts(opened: Opened, study: str) -> list[str]:
    return list(opened.page.locator(f'details.explorer[data-study="{study}"] svg text').all_text_contents())


def test_a_point_tells_its_value_with_the_interval(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    tip = opened.hover("widths", "GPU (Brand G1), as published", 400)
    # Three trials with a standard deviation of ln(1.01): t = 4.303, so 500 us x exp(±4.303 ln(1.01) / sqrt(3)).
    assert tip.splitlines() == [
        "GPU (Brand G1), as published",
        "400 neurons",
        "time per step: 500 µs",
        "95 % interval: 488 µs to 513 µs",
        "trials: 3; status: ok",
    ]


@pytest.fixture(scope="module")
def deep_run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Layers that each make the parameters four times as many, up to some 11 million."""
    plain = rows[(rows["study"] == "widths") & (rows["protocol"] == "resident") & (rows["size"] == 800)]
    layers = [
        plain.assign(size=n, size_name="layers", parameters=3 * 4**n, step_time_s=plain["step_time_s"] * n / 5)
        for n in range(2, 12)
    ]
    return write_page(pd.concat(layers), tmp_path_factory.mktemp("deep"))


# Words that touch, that lie within fewer pixels than a digit is wide beside each other, or that leave the chart.
CROWDED = """() => {
  const plot = document.querySelector('details.explorer[data-study="widths"] .plot');
  const boxes = [...plot.querySelectorAll('svg text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
  const { left, right } = plot.getBoundingClientRect();
  const beside = (a, b) => a.right + 7 <= b.left || b.right + 7 <= a.left;
  const apart = (a, b) => beside(a, b) || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
  const over = boxes.filter(([, a]) => boxes.some(([, b]) => a !== b && !apart(a, b)));
  const out = boxes.filter(([, a]) => a.left < left - 1 || a.right > right + 1);
  return [over, out].map((found) => found.map(([text]) => text));
}"""


@pytest.mark.parametrize("width", [390, 1000])
@pytest.mark.parametrize("which", ["run", "deep_run"])
def test_no_words_of_the_chart_touch(which: str, width: int, request: pytest.FixtureRequest, open_page: Open) -> None:
    opened = open_page(request.getfixturevalue(which).path, viewport={"width": width, "height": 800})
    opened.explore("widths")
    controls = opened.page.locator('details.explorer[data-study="widths"] .controls')
    for axis in ("parameters", None):
        if axis:
            controls.get_by_label("over").select_option(label=axis)
        else:
            controls.get_by_label("over").select_option(index=0)
        assert opened.page.evaluate(CROWDED) == [[], []], axis


def test_a_cell_without_a_time_is_a_cross_that_says_why(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    script = "echarts.getInstanceByDom(document.querySelector('[data-study=\"widths\"] .plot')).getOption().series"
    lost = [one for one in opened.page.evaluate(f"{script}.filter((one) => one.type === 'scatter')") if one["data"]]
    assert [point["row"]["reason"] for one in lost for point in one["data"]] == ["8 GB wanted"]


def test_the_crossover_is_marked_with_its_interval(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    marks = [text for text in texts(opened, "widths") if text.startswith("crossover: ")]
    assert len(marks) == 2
    assert all(" to " in text for text in marks)
    assert any(text.endswith("as published") for text in marks)


def test_scales_and_axes_are_switched(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    controls = opened.page.locator('details.explorer[data-study="widths"] .controls')
    plot = "document.querySelector('[data-study=\"widths\"] .plot')"
    scripts = f"(axis) => echarts.getInstanceByDom({plot}).getOption()[axis][0]"
    assert [opened.page.evaluate(scripts, axis)["type"] for axis in ("xAxis", "yAxis")] == ["log", "log"]
    controls.get_by_text("log y").click()
    assert [opened.page.evaluate(scripts, axis)["type"] for axis in ("xAxis", "yAxis")] == ["log", "value"]
    controls.get_by_label("over").select_option(label="parameters")
    assert opened.page.evaluate(scripts, "xAxis")["name"] == "parameters"
    # 500 neurons have 5,000 parameters.
    (mark,) = [text for text in texts(opened, "widths") if text.endswith("as published")]
    assert mark.startswith("crossover: 5,000 (4,")

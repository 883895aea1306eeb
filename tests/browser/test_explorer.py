"""A study's chart in a browser: values on hover, lines on and off, scales, metrics, crossovers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from opened_page import Open, Opened
from report_pages import Run, write_page

pytestmark = pytest.mark.slow

POINT = """([study, series, at]) => {
  const plot = document.querySelector(`details.explorer[data-study="${study}"] .plot`);
  const chart = echarts.getInstanceByDom(plot);
  const options = chart.getOption().series;
  const index = options.findIndex((one) => one.name === series);
  const found = options[index].data.find((one) => one.value[0] === at);
  const [x, y] = chart.convertToPixel({ seriesIndex: index }, found.value);
  const box = plot.getBoundingClientRect();
  return [box.x + x, box.y + y];
}"""


def hover(opened: Opened, study: str, series: str, at: float) -> str:
    """The text beside a point when the mouse is on it."""
    opened.page.locator(f'details.explorer[data-study="{study}"] .plot').scroll_into_view_if_needed()
    opened.page.mouse.move(*opened.page.evaluate(POINT, [study, series, at]))
    tip = opened.page.locator(f'details.explorer[data-study="{study}"] .tip')
    tip.wait_for()
    return str(tip.inner_text())


def texts(opened: Opened, study: str) -> list[str]:
    return list(opened.page.locator(f'details.explorer[data-study="{study}"] svg text').all_text_contents())


def test_a_point_tells_its_value_with_the_interval(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    tip = hover(opened, "widths", "GPU (Brand G1), as published", 400)
    # Three trials with a standard deviation of ln(1.01): t = 4.303, so 500 us x exp(±4.303 ln(1.01) / sqrt(3)).
    assert tip.splitlines() == [
        "GPU (Brand G1), as published",
        "400 neurons",
        "time per step: 500 µs",
        "95 % interval: 488 µs to 513 µs",
        "trials: 3; status: ok",
    ]


@pytest.fixture(scope="module")
def deep_run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Layers that each make the parameters four times as many, up to some 11 million."""
    plain = rows[(rows["study"] == "widths") & (rows["protocol"] == "resident") & (rows["size"] == 800)]
    layers = [
        plain.assign(size=n, size_name="layers", parameters=3 * 4**n, step_time_s=plain["step_time_s"] * n / 5)
        for n in range(2, 12)
    ]
    fewer = [plain.assign(study="few", size=n, parameters=10 * n) for n in (100, 200)]
    return write_page(pd.concat([*layers, *fewer]), tmp_path_factory.mktemp("deep") / "report.html")


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


@pytest.mark.parametrize("width", [390, 700, 1000, 1200])
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
        controls.get_by_text("log x").click()
        assert opened.page.evaluate(CROWDED) == [[], []], (axis, "linear")
        controls.get_by_text("log x").click()


def test_an_interval_of_many_decades_leaves_the_lines_their_room(
    rows: pd.DataFrame, tmp_path: Path, open_page: Open
) -> None:
    """Two trials that differ by a factor of 10 have an interval of ten decades and more."""
    two = rows[(rows["study"] == "widths") & (rows["trial"] < 3)]
    odd = (two["size"] == 100) & (two["trial"] == 2)
    run = write_page(
        two.assign(step_time_s=two["step_time_s"].where(~odd, 10 * two["step_time_s"])), tmp_path / "r.html"
    )
    opened = open_page(run.path)
    opened.explore("widths")
    script = "echarts.getInstanceByDom(document.querySelector('[data-study=\"widths\"] .plot')).getOption().yAxis[0]"
    scale = opened.page.evaluate(script)
    assert scale["max"] / scale["min"] < 1e4
    opened.page.locator('details.explorer[data-study="widths"] .controls').get_by_text("log y").click()
    linear = opened.page.evaluate(script)
    assert linear["max"] < 10 * scale["max"]
    assert linear["max"] % linear["interval"] == pytest.approx(0, abs=1e-9)


def test_a_tick_has_its_own_number(deep_run: Run, open_page: Open) -> None:
    """Not one that is rounded: a linear axis has ticks such as 1,250."""
    opened = open_page(deep_run.path)
    opened.explore("widths")
    shown = opened.page.evaluate(
        """() => echarts.getInstanceByDom(document.querySelector('[data-study="widths"] .plot'))
        .getOption().xAxis[0].axisLabel.formatter(1250)"""
    )
    assert shown == "1,250"


def test_two_sizes_are_nothing_to_explore(deep_run: Run, open_page: Open) -> None:
    opened = open_page(deep_run.path)
    assert opened.page.locator("#study-few").count() == 1
    studies = opened.page.locator("details.explorer").evaluate_all("(found) => found.map((one) => one.dataset.study)")
    assert studies == ["widths"]


def test_flags_and_single_trials_are_told(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("depths")
    tip = hover(opened, "depths", "CPU (Brand C1)", 2)
    assert "no interval: one trial" in tip
    assert "flags: quota" in tip


def test_a_rate_has_the_interval_of_the_time_turned_over(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    opened.page.select_option('details.explorer[data-study="widths"] select >> nth=0', label="samples per second")
    tip = hover(opened, "widths", "GPU (Brand G1), as published", 400)
    # 100 samples in 500 us, times exp(±0.02472).
    assert "samples per second: 200,000/s" in tip
    assert "95 % interval: 195,117/s to 205,005/s" in tip


def test_a_cell_without_a_time_is_a_cross_that_says_why(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    script = "echarts.getInstanceByDom(document.querySelector('[data-study=\"widths\"] .plot')).getOption().series"
    lost = [one for one in opened.page.evaluate(f"{script}.filter((one) => one.type === 'scatter')") if one["data"]]
    assert [point["row"]["reason"] for one in lost for point in one["data"]] == ["8 GB wanted"]


def test_the_crossover_is_marked_with_its_interval(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    marks = [text for text in texts(opened, "widths") if text.startswith("crossover: ")]
    assert len(marks) == 2
    assert all(" to " in text for text in marks)
    assert any(text.endswith("as published") for text in marks)


def test_lines_are_switched_by_mouse_and_keyboard(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    count = (
        "echarts.getInstanceByDom(document.querySelector('[data-study=\"widths\"] .plot')).getOption().series.length"
    )
    before = opened.page.evaluate(count)
    button = opened.page.locator('details.explorer[data-study="widths"] .lines button').first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert opened.page.evaluate(count) == before * 3 / 4
    button.focus()
    opened.page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    assert opened.page.evaluate(count) == before


def test_scales_and_axes_are_switched(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    controls = opened.page.locator('details.explorer[data-study="widths"] .controls')
    plot = "document.querySelector('[data-study=\"widths\"] .plot')"
    scripts = f"(axis) => echarts.getInstanceByDom({plot}).getOption()[axis][0]"
    assert [opened.page.evaluate(scripts, axis)["type"] for axis in ("xAxis", "yAxis")] == ["log", "log"]
    controls.get_by_text("log y").click()
    assert [opened.page.evaluate(scripts, axis)["type"] for axis in ("xAxis", "yAxis")] == ["log", "value"]
    controls.get_by_text("log x").click()
    assert opened.page.evaluate(scripts, "xAxis")["type"] == "value"
    controls.get_by_label("over").select_option(label="parameters")
    assert opened.page.evaluate(scripts, "xAxis")["name"] == "parameters"
    # 500 neurons have 5,000 parameters.
    (mark,) = [text for text in texts(opened, "widths") if text.endswith("as published")]
    assert mark.startswith("crossover: 5,000 (4,")


def test_each_metric_of_the_cells_can_be_shown(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    choice = opened.page.locator('details.explorer[data-study="widths"] select').first
    names = choice.locator("option").all_text_contents()
    assert names == ["time per step", "samples per second", "peak memory of tensors"]
    choice.select_option(label="peak memory of tensors")
    assert "peak memory of tensors: 400 MB" in hover(opened, "widths", "GPU (Brand G1), as published", 400)


def test_lines_without_a_value_of_the_metric_say_so(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("widths")
    explorer = opened.page.locator('details.explorer[data-study="widths"]')
    said, plot = explorer.locator(".nothing"), explorer.locator(".plot")
    assert (said.inner_text(), plot.is_visible()) == ("", True)
    explorer.locator("select").first.select_option(label="peak memory of tensors")
    for button in explorer.locator(".lines button", has_text="GPU").all():
        button.click()
    assert said.inner_text() == "The chosen lines have no value of: peak memory of tensors."
    assert not plot.is_visible()
    explorer.locator("select").first.select_option(label="time per step")
    assert (said.inner_text(), plot.is_visible()) == ("", True)
    explorer.get_by_text("none", exact=True).click()
    assert said.inner_text() == "No line is chosen."

"""A study's chart in a browser: values on hover, lines on and off, scales, metrics, crossovers."""

from __future__ import annotations

from opened_page import Open, Opened
from report_pages import Run

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


def test_on_a_phone_no_words_of_the_chart_overlap(run: Run, open_page: Open) -> None:
    opened = open_page(run.path, viewport={"width": 390, "height": 800})
    opened.explore("widths")
    script = """() => {
      const plot = document.querySelector('details.explorer[data-study="widths"] .plot');
      const boxes = [...plot.querySelectorAll('svg text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
      const { left, right } = plot.getBoundingClientRect();
      const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
      const over = boxes.filter(([, a]) => boxes.some(([, b]) => a !== b && !apart(a, b)));
      const out = boxes.filter(([, a]) => a.left < left - 1 || a.right > right + 1);
      return [over, out].map((found) => found.map(([text]) => text));
    }"""
    assert opened.page.evaluate(script) == [[], []]


def test_flags_and_single_trials_are_told(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("depths")
    tip = hover(opened, "depths", "CPU (Brand C1)", 2)
    assert "no interval: one trial" in tip
    assert "flags: noisy" in tip


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

"""The box for your own size says what scripts/predict_time.py says."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest

from crossover.answers.wording import count_text, known_count_text
from crossover.errors import UserError
from crossover.figures.style import (
    bytes_text,
    number_text,
    percent_text,
    rate_text,
    seconds_text,
)
from crossover.statistics.predictions import prediction_text
from opened_page import Open, Opened
from report_pages import Run, write_page

pytestmark = pytest.mark.slow


def command_says(run: Run, study: str, size: int) -> list[str]:
    """The lines of the command's answer."""
    text = prediction_text(run.cells, run.models, study, size)
    return [line.strip() for line in text.splitlines() if line.strip()]


def ask(opened: Opened, study: str, amount: object, unit: str = "size") -> list[str]:
    """The lines of the box's answer."""
    box = opened.page.locator("#size-box")
    box.scroll_into_view_if_needed()
    box.locator("[name=study] option").first.wait_for(state="attached")
    box.locator("[name=study]").select_option(study)
    box.locator("[name=unit]").select_option(unit)
    box.locator("[name=amount]").fill(str(amount))
    box.locator("button[type=submit]").click()
    text = box.locator(".answer").inner_text()
    return [line.strip() for line in text.splitlines() if line.strip()]


ASKED = (
    ("widths", 400, "measured, 95 % interval"),
    ("widths", 600, "by the cost model of 5 sizes"),
    ("widths", 505, "ahead: open"),
    ("widths", 1600, "no time: measured, oom, 8 GB wanted"),
    ("widths", 19_600, "by a factor of 12.2"),  # 19,600 / 1,600 = 12.25, which Python rounds to the even digit
    ("widths", 60_000, "so this one may have no time at all"),
    ("widths", 2_000_000, "too far outside of what was measured (100 to 1,600 neurons) to say"),
    ("widths", 160_001, "too far outside of what was measured (100 to 800 neurons) to say"),
    ("widths", 6_500, "ahead: not told more than 4"),
    ("widths", 6_300, "perhaps ahead"),
    ("widths", 7, "below the smallest (100)"),
    ("depths", 3, "measured, one trial"),
    ("depths", 2, "flagged quota"),
)


def test_the_box_and_the_command_say_the_same(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    for study, size, told in ASKED:
        got = ask(opened, study, size)
        assert got == command_says(run, study, size)
        assert any(told in line for line in got), (size, told)


def test_the_box_names_nobody_where_the_command_names_nobody(
    rows: pd.DataFrame, tmp_path: Path, open_page: Open
) -> None:
    """Layers whose times triple, or grow with their fourth power; neurons where a model misses one by a factor of 3.

    On a GPU, on all cores of a CPU, and on one of them, which takes twice as long.
    """
    plain = rows[(rows["study"] == "widths") & (rows["protocol"] == "as_published") & (rows["size"] == 800)]
    tables = [
        plain.assign(study=study, size=size, step_time_s=plain["device"].map({"cpu": cpu_s, "cuda": 1.2e-3}))
        for study, sizes, times in (
            ("tripled", range(2, 13), lambda n: 1e-6 * 3**n),
            ("fourth", range(2, 13), lambda n: 1e-6 * n**4),
            ("missed", (100, 200, 400, 800, 1600), lambda n: n * 1e-6 * (3 if n == 400 else 1)),
            ("knee", range(2, 13), lambda n: 1e-6 * n**2 * (5 if n == 12 else 0.2 if n == 2 else 1)),
        )
        for size in sizes
        for cpu_s in [times(size)]
    ]
    slower = [one[one["device"] == "cpu"].assign(device="cpu-1") for one in tables]
    tables += [one.assign(step_time_s=2 * one["step_time_s"]) for one in slower]
    steps = dict.fromkeys(("tripled", "fourth", "missed", "knee"), 10_000_000)
    run = write_page(pd.concat(tables), tmp_path / "report.html", steps_per_run=steps)
    opened = open_page(run.path)
    for study, size, told in (
        ("tripled", 13, "with the exponent of CPU (Brand C1) at a limit"),
        ("tripled", 1, "below the smallest (2)"),
        ("tripled", 20, "not told more than 4 times"),
        ("fourth", 17, "from size 12 to 17 the model's time changes by a factor of 4.03"),
        ("fourth", 16, "perhaps ahead"),
        ("missed", 2000, "no more than the models miss"),
        ("fourth", 38, "CPU (Brand C1): no time: too far outside"),
        ("knee", 13, "carried on from the time measured at 12"),
        ("knee", 1, "carried on from the time measured at 2"),
        ("missed", 60_000, "days for 10,000,000 steps"),
    ):
        wanted = command_says(run, study, size)
        assert ask(opened, study, size) == wanted
        assert any(told in line for line in wanted), (study, size, wanted)


def test_the_box_and_the_command_refuse_alike(run: Run, open_page: Open) -> None:
    with pytest.raises(UserError, match="no model to expect one by") as raised:
        prediction_text(run.cells, run.models, "depths", 9)
    assert ask(open_page(run.path), "depths", 9) == [str(raised.value)]


def test_what_is_no_size_is_refused(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    for unit, kind in (("size", "size"), ("parameters", "number of parameters")):
        for typed, said in (("0", "0"), ("-3", "-3"), ("1.5", "1.5"), ("", "what is typed")):
            assert len(ask(opened, "widths", 4000 if unit == "parameters" else 400, unit)) > 1
            assert ask(opened, "widths", typed, unit) == [f"{said} is no {kind}; allowed: whole numbers from 1 on"]
    opened.page.locator("#size-box [name=amount]").press_sequentially("1e")
    opened.page.locator("#size-box button[type=submit]").click()
    answer = opened.page.locator("#size-box .answer")
    assert answer.inner_text() == "what is typed is no number of parameters; allowed: whole numbers from 1 on"


def test_no_answer_stands_beside_another_number(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    assert ask(opened, "widths", 400)
    opened.page.locator("#size-box [name=amount]").fill("500")
    assert opened.page.locator("#size-box .answer").inner_text() == ""


def test_an_absurd_size_has_no_time(run: Run, open_page: Open) -> None:
    lines = ask(open_page(run.path), "widths", "1e30")
    times = [line for line in lines if line.startswith(("CPU", "GPU"))]
    assert len(times) == 4
    assert all("no time: too far outside of what was measured (100 to " in line for line in times)
    assert not any("ahead" in line for line in lines)


def test_one_line_can_be_asked_for(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    every = ask(opened, "widths", 600)
    opened.page.locator("#size-box [name=line]").select_option(label="as published, batch 100")
    shown = opened.page.locator("#size-box .answer").inner_text()
    assert "as published, batch 100" in shown
    assert "resident" not in shown
    assert any("resident" in line for line in every)


def test_parameters_lead_to_the_size_that_has_them(run: Run, open_page: Open) -> None:
    """Ten parameters a neuron; between the measured sizes by interpolation, and outside of them not at all."""
    opened = open_page(run.path)
    assert ask(opened, "widths", 6000, "parameters")[1:] == ask(opened, "widths", 600)
    assert ask(opened, "widths", 6000, "parameters")[0] == "The size nearest to 6,000 parameters:"
    (refused,) = ask(opened, "widths", 160_000, "parameters")
    assert refused.startswith("160 k parameters lie outside of the measured range")


def test_parameters_that_no_size_has_lead_to_a_warning(run: Run, open_page: Open) -> None:
    """Depths of 2, 3 and 4 have 100, 1,000 and 10,000 parameters; the logarithm of 400 lies nearest to 1,000's."""
    opened = open_page(run.path)
    off = ask(opened, "depths", 400, "parameters")
    size_name = opened.page.locator("#size-box [name=unit] option").first.inner_text()
    assert off[0] == (
        f"the nearest size, 3 {size_name}, has 1,000 parameters, 150 % more: what follows is of that size, "
        "and who is ahead at 400 parameters is not told"
    )
    measured = ask(opened, "depths", 3)
    assert any("ahead" in line for line in measured)
    assert off[1:] == [line for line in measured if "ahead" not in line]
    fewer = ask(opened, "depths", 1053, "parameters")
    assert fewer[0].startswith(f"the nearest size, 3 {size_name}, has 1,000 parameters, 5.0 % fewer: ")
    assert opened.page.locator("#size-box .answer .warning").count() == 1
    near = ask(opened, "depths", 1050, "parameters")
    assert near == ["The size nearest to 1,050 parameters:", *measured]


def test_the_browser_writes_numbers_as_the_report_does(run: Run, open_page: Open) -> None:
    """On what hypothesis would try, in one call: ties, powers of ten, and what lies right beside them."""
    chosen = random.Random(7)
    plain = [10 ** chosen.uniform(-9, 11) for _ in range(2000)]
    edges = [
        0,
        1,
        2.5,
        0.125,
        12.25,
        0.995,
        9.995,
        99.5,
        999.5,
        9995,
        9999.5,
        1e4,
        10050,
        119.95,
        3600,
        172800,
        63115200,
        1234.5,
        2500,
        1e6,
        1e9,
    ]
    values = plain + [edge * factor for edge in edges for factor in (1, 0.9999999, 1.0000001, 1e-3, 1e-6)]
    ways = {
        "seconds": seconds_text,
        "number": number_text,
        "count": count_text,
        "known": known_count_text,
        "percent": percent_text,
        "bytes": bytes_text,
        "rate": rate_text,
        "whole": lambda value: f"{value:,.0f}",
    }
    opened = open_page(run.path)
    for name, python in ways.items():
        got = opened.page.evaluate(f"(values) => values.map((value) => Crossover.format.{name}(value))", values)
        wanted = [python(value) for value in values]
        assert [pair for pair in zip(values, got, wanted, strict=True) if pair[1] != pair[2]] == []
    got = opened.page.evaluate("(values) => values.map((value) => Crossover.format.count(value, 3))", values)
    assert got == [count_text(value, 3) for value in values]


def test_what_was_typed_before_the_box_was_ready_stays(run: Run, open_page: Open) -> None:
    opened = open_page(run.path, viewport={"width": 1200, "height": 200})
    box = opened.page.locator("#size-box")
    assert box.locator("[name=study] option").count() == 0
    opened.page.evaluate("document.querySelector('#size-box [name=amount]').value = '600'")
    box.scroll_into_view_if_needed()
    box.locator("[name=study] option").first.wait_for(state="attached")
    assert box.locator("[name=amount]").input_value() == "600"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.answers.sentences import answer, answer_at_one_size, line_words, merged, missing_half
from crossover.statistics.comparisons import compare_lines
from crossover.tables.frames import records

PowerLaws = Callable[..., pd.DataFrame]


def sentence(rows: pd.DataFrame, x_axis: str = "parameters") -> str:
    return answer(records(compare_lines(rows, {"disc_depth": x_axis}))[0])


def test_a_bracketed_crossover_is_said_with_what_was_measured(power_laws: PowerLaws) -> None:
    text = said(power_laws, crossover_low=None, crossover_high=None)
    assert "the GPU (Brand G1) beats the CPU (Brand C1) from about 1,000 parameters on" in text
    assert "interpolated, without an interval" in text
    assert "measured on either side: 100 and 100,000 parameters, 2 and 4 linear layers" in text
    assert "indicative" not in text


def said(power_laws: PowerLaws, **changes: Any) -> str:
    """The answer of a line that crosses at 1000 parameters, with a made-up interval and other changes."""
    (row,) = records(compare_lines(power_laws({2: 100, 4: 100_000}, trials=3), {"disc_depth": "parameters"}))
    return answer(row | {"crossover_low": 902.4, "crossover_high": 1108.6} | changes)


def test_the_interval_stands_beside_the_crossover(power_laws: PowerLaws) -> None:
    text = said(power_laws)
    assert "beats the CPU (Brand C1) from about 1,000 (902 to 1,110) parameters on (measured on either side" in text
    assert "with the 95 % interval over trials" in text
    assert "only below about 1,000 (902 to 1,110) parameters (measured" in said(power_laws, status="reversed")


def test_an_open_end_and_what_is_in_doubt_are_said(power_laws: PowerLaws) -> None:
    text = said(power_laws, crossover_high=None, message="it is ahead; near 5 they may cross again")
    assert "from about 1,000 (at least 902) parameters on" in text
    assert text.endswith("with the 95 % interval over trials). Near 5 they may cross again.")
    above = said(power_laws, status="below_range", message="it is ahead; not beyond doubt at 100")
    assert above.endswith("if they cross at all, it is at smaller sizes. Not beyond doubt at 100.")


def test_several_crossings_are_all_named(power_laws: PowerLaws) -> None:
    text = said(
        power_laws, status="multiple", roots=[120.0, 3400.0], trials=1, message="they cross; size 9 lacks a side"
    )
    assert "they cross near 120, 3,400 parameters. Size 9 lacks a side. One trial a cell: indicative only." in text


@pytest.mark.parametrize(
    ("open_end", "words"),
    [
        ("crossover_high", "at the largest size measured on both: they cross not before 902 parameters, if at all."),
        ("crossover_low", "at the smallest size measured on both: they cross at the latest by 1,110 parameters, if"),
    ],
)
def test_a_tie_at_the_edge_bounds_one_end(power_laws: PowerLaws, open_end: str, words: str) -> None:
    text = said(power_laws, status="edge_tie", crossover=None, **{open_end: None})
    assert words in text
    assert "about" not in text
    no_end = {"crossover_low": None, "crossover_high": None, "message": "a tie"}
    assert said(power_laws, status="edge_tie", **no_end).startswith("No crossover of the GPU (Brand G1)")


def test_one_trial_is_indicative(power_laws: PowerLaws) -> None:
    assert sentence(power_laws({2: 100, 4: 100_000})).endswith("One trial a cell: indicative only.")


@pytest.mark.parametrize(
    ("gpu_s", "text"),
    [
        (1e-6, "the GPU (Brand G1) beats the CPU (Brand C1) at every size measured"),
        (1e3, "the CPU (Brand C1) beats the GPU (Brand G1) at every size measured"),
    ],
)
def test_no_crossing_claims_no_size(power_laws: PowerLaws, gpu_s: float, text: str) -> None:
    found = sentence(power_laws({2: 100, 4: 100_000}, gpu_s=gpu_s, trials=3))
    assert text in found
    assert "from about" not in found


def test_where_nothing_gave_a_time_no_half_of_an_answer_is_claimed(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}).assign(status="timeout", step_time_s=None)
    found = sentence(rows[rows["device"] == "cpu"])
    assert found == "No cell of the CPU (Brand C1) gave a time, and no GPU was measured: there is no answer."


def test_without_accelerator_the_missing_half_is_named(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    found = sentence(rows[rows["device"] == "cpu"])
    assert "Only the CPU (Brand C1) was measured" in found
    assert "half of the answer is missing" in found


@pytest.mark.parametrize(
    ("devices", "said"),
    [(["cpu"], True), (["cpu", "cpu-1", "cpu-half"], True), (["cpu", "cuda"], False), (["mps"], False)],
)
def test_a_run_without_accelerator_says_how_to_get_one(devices: list[str], said: bool) -> None:
    found = missing_half(devices)
    assert (found is not None) is said
    assert not said or "run the same command on a machine that has a GPU" in str(found)


def test_an_incomplete_search_says_why(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 3000, 4: 100_000})
    rows.loc[(rows["size"] == 3) & (rows["device"] == "cuda"), "step_time_s"] = None
    assert "No crossover" in sentence(rows)
    assert "3,000 between 100 and 100,000 lacks a side" in sentence(rows)


@pytest.mark.parametrize(
    ("cpu_s", "gpu_s", "text"),
    [
        (
            0.3,
            0.0008,
            "the GPU (Brand G1) is 375 times as fast as the CPU (Brand C1) (a step takes 800 µs, not 300 ms).",
        ),
        (
            0.002,
            0.003,
            "the CPU (Brand C1) is 1.50 times as fast as the GPU (Brand G1) (a step takes 2.00 ms, not 3.00 ms).",
        ),
    ],
)
def test_at_one_size_the_speedup_is_the_answer(power_laws: PowerLaws, cpu_s: float, gpu_s: float, text: str) -> None:
    (row,) = records(compare_lines(power_laws({4: 100}, trials=3), {"disc_depth": "size"}))
    assert answer_at_one_size(row, {"cpu": cpu_s, "cuda": gpu_s}) == f"On this machine {text}"
    assert answer_at_one_size(row, {"cpu": cpu_s}) is None
    assert str(answer_at_one_size({**row, "trials": 1}, {"cpu": 1.0, "cuda": 1.0})).endswith("indicative only.")


def test_a_line_is_named_by_what_is_special(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 1000}, precision="tf32", protocol="as_published")
    assert line_words(records(compare_lines(rows, {"disc_depth": "size"}))[0]) == "as published, batch 100, tf32"


def test_what_a_study_has_several_of_is_named_on_every_line(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 1000}, variant="channels_last")
    line = records(compare_lines(rows, {"disc_depth": "size"}))[0]
    resident = "data resident on the device, batch 100"
    assert line_words(line) == f"{resident}, channels last"
    assert line_words(line, ["precision", "execution"]) == f"{resident}, channels last, fp32, eager"
    assert line_words(line | {"variant": "plain"}, ["variant"]) == f"{resident}, plain"


def test_an_answer_of_several_lines_is_said_once() -> None:
    lines = [("resident, batch 8, fp32", "x"), ("resident, batch 8, tf32", "y"), ("resident, batch 8, amp-fp16", "x")]
    assert merged(lines) == [("resident, batch 8, fp32 / amp-fp16", "x"), ("resident, batch 8, tf32", "y")]
    assert merged([("as published, batch 8", "x"), ("resident, batch 8", "x"), ("other", "y")])[0] == (
        "as published, batch 8 / resident, batch 8",
        "x",
    )
    assert merged([("resident, batch 8", "x"), ("resident, batch 16", "x")]) == [("", "x")]
    assert merged([("resident, batch 8", "x")]) == [("", "x")]
    assert merged([]) == []

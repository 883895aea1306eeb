"""How far cold calls move the crossover of repeated calls, from made-up trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.config.words import COLD
from crossover.report.study_rows import main_answers, row_of
from crossover.topics.answer import summed
from crossover.topics.answers import read_answers
from crossover.topics.cold import Cold
from report_pages import tables_of

Row = Callable[..., dict[str, Any]]
SIZES = (100, 1000, 10_000)


@pytest.fixture(scope="module")
def series(row: Row) -> Callable[..., list[dict[str, Any]]]:
    """Trials, 1 % apart, in which the CPU takes 1 us x size and the GPU `gpu_s`."""

    def build(gpu_s: float, count: int = 3, slowdown: float = 1, **values: Any) -> list[dict[str, Any]]:
        return [
            row(size=size, device=device, trial=trial, step_time_s=slowdown * seconds * 1.01**trial, **values)
            for size in SIZES
            for device, seconds in (("cpu", size * 1e-6), ("cuda", gpu_s))
            for trial in range(count)
        ]

    return build


def answers(rows: list[dict[str, Any]]) -> list[Any]:
    return read_answers(tables_of(pd.DataFrame(rows)).answers)


def cold_of(rows: list[dict[str, Any]]) -> Cold:
    (answer,) = (answer for answer in answers(rows) if answer.kind == "cold")
    assert isinstance(answer, Cold)
    return answer


def test_a_cold_call_moves_the_crossover(series: Row) -> None:
    """It takes 4 times as long on the GPU and twice on the CPU; the CPU needs 2 ms for 2,000 layers.

    The interval is that of Zou and Donner (2008), from those of both crossovers.
    """
    rows = series(2e-3) + series(4e-3, slowdown=2, protocol=COLD)
    main = main_answers(answers(rows))
    cold, *crossovers = main
    assert isinstance(cold, Cold)
    assert cold.sentence() == (
        "A cold call moves the crossover of GPU and CPU from 2,000 to 4,000 linear layers, 2.00 times"
    )
    by_series = {answer.series: answer for answer in crossovers}
    before, after = (by_series[protocol] for protocol in ("resident", COLD))
    low = math.hypot(math.log(4000 / after.crossover_low), math.log(before.crossover_high / 2000))
    high = math.hypot(math.log(after.crossover_high / 4000), math.log(2000 / before.crossover_low))
    assert (cold.factor_low, cold.factor_high) == pytest.approx((2 * math.exp(-low), 2 * math.exp(high)), rel=1e-3)
    assert cold.slowdowns == {"GPU": pytest.approx([4] * 3), "CPU": pytest.approx([2] * 3)}
    interval = f"95 % CI {cold.factor_low:.2f} to {cold.factor_high:.2f}"
    slower = "a cold call takes 4.00x as long on the GPU and 2.00x as long on the CPU"
    assert row_of(main, ()).text() == f"{cold.sentence()} ({interval}; {slower})"
    assert summed([cold, cold]).startswith("Cold calls: GPU faster above 4,000 linear layers")


def test_a_move_may_be_insignificant(series: Row) -> None:
    assert cold_of(series(2e-3) + series(2.001e-3, protocol=COLD)).sentence().endswith(", but not significantly")


def test_the_ratio_counts_among_the_comparisons_of_its_study(series: Row) -> None:
    rows = series(2e-3) + series(4e-3, protocol="from_host")
    assert {answer.corrected_for for answer in answers(rows)} == {1}
    assert {answer.corrected_for for answer in answers(rows + series(4e-3, protocol=COLD))} == {2}


@pytest.mark.parametrize(
    ("gpu_s", "count", "known"),
    [
        (50e-6, 3, "GPU faster at every size measured, 2.00 to 200x"),
        (20e-3, 3, "CPU faster at every size measured, 2.00 to 200x"),
        (4e-3, 1, "GPU faster above ~4,000 linear layers (between 1,000 and 10,000)"),
    ],
)
@pytest.mark.parametrize("is_cold", [True, False])
def test_without_both_intervals_it_says_what_is_known_of_both_crossovers(
    series: Row, gpu_s: float, count: int, known: str, is_cold: bool
) -> None:
    protocols = (COLD, "resident") if is_cold else ("resident", COLD)
    cold = cold_of(series(gpu_s, count, protocol=protocols[0]) + series(2e-3, protocol=protocols[1]))
    assert cold.factor is None
    told = cold.sentence().removeprefix("Cold calls: ").split("; repeated calls: ")
    assert told[0 if is_cold else 1] == known
    assert told[1 if is_cold else 0].startswith("GPU faster above 2,000 linear layers (95 % CI ")


def test_crossovers_in_opposite_directions_have_no_ratio(series: Row) -> None:
    """In cold calls the GPU takes size^2 / 4 ns: it is faster below 4,000 layers."""
    rows = series(2e-3) + series(1.0, protocol=COLD)
    for trial in rows:
        if trial.get("protocol") == COLD and trial["device"] == "cuda":
            trial["step_time_s"] *= (trial["size"] * 1e-6) ** 2 / 4e-3
    told = cold_of(rows).sentence()
    assert told.startswith("Cold calls: GPU faster only below 4,000 linear layers (95 % CI ")
    assert "; repeated calls: GPU faster above 2,000 linear layers" in told


def test_a_series_is_compared_with_its_own_repeated_calls(series: Row) -> None:
    rows = series(2e-3) + series(4e-3, protocol=COLD)
    rows += series(1e-3, precision="bf16") + series(8e-3, protocol=COLD, precision="bf16")
    factors = [answer.factor for answer in answers(rows) if answer.kind == "cold"]
    assert sorted(factors) == pytest.approx([2, 8], rel=1e-3)


def test_caveats_of_repeated_calls_that_are_about_places_are_left_out(series: Row) -> None:
    """The GPU leads with repeated calls, inconclusively at 1,000 layers, and its times drift."""
    rows = series(5e-5)
    for trial in rows:
        if trial["device"] == "cuda":
            trial["flag_names"] = ["drift"]
            trial["step_time_s"] *= 19.98 if trial["size"] == 1000 else 1
    repeated = next(answer for answer in answers(rows) if answer.kind == "crossover")
    assert [*repeated.caveats] == ["unsure_sizes", "drift"]
    assert [*cold_of(rows + series(4e-3, protocol=COLD)).caveats] == ["drift"]


@pytest.mark.parametrize("left_out", [{"protocol": "resident"}, {"device": "cuda"}])
def test_without_repeated_calls_or_a_gpu_there_is_no_such_answer(series: Row, left_out: dict[str, str]) -> None:
    ((axis, value),) = left_out.items()
    rows = [trial for trial in series(2e-3) + series(4e-3, protocol=COLD) if trial.get(axis, "resident") != value]
    answered = answers(rows)
    assert answered
    assert "cold" not in {answer.kind for answer in answered}

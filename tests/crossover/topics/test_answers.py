"""Answers from made-up trials, and their wording."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import PchipInterpolator

from crossover.compare.best import CANDIDATE_AXES
from crossover.compare.cells import summarise
from crossover.config.statuses import FLAGS
from crossover.config.study import Study
from crossover.report.study_rows import bar_of, row_of
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.run_tables import TABLES
from crossover.topics.answer import KINDS, Answer, group_alike, summed
from crossover.topics.answers import read_answers
from crossover.topics.candidates import candidate_names
from crossover.topics.caveats import CAVEATS, by_importance, flags_of
from crossover.topics.comparisons import StepTime
from crossover.topics.crossovers.answers import crossover_answers
from crossover.topics.crossovers.sides import reach_of_lead as _reach
from crossover.topics.largest_batch import LargestBatch
from crossover.topics.memory.answers import memory_answers
from crossover.topics.quality.answers import Quality, quality_answer
from crossover.topics.quality.table import quality_table
from crossover.topics.wording import position_text
from report_pages import study, tables_of

Row = Callable[..., dict[str, Any]]
SIZES = (100, 1000, 10_000)
STUDY = "disc_depth"


def answers(rows: Any, spec: Study | None = None, **more: Any) -> list[Any]:
    """The answers of a study with these trials, whose statuses and caveats are checked to be in the vocabulary."""
    table = tables_of(pd.DataFrame(rows), {STUDY: spec or study()}, **more).answers
    assert list(table.columns) == list(TABLES["answers"])
    answered = read_answers(table)
    assert [answer.text() for answer in answered] == table["sentence"].tolist()
    for answer in answered:
        assert answer.status in answer.statuses
        assert set(answer.caveats) <= CAVEATS.keys()
    return answered


AT_AN_END = "no significant difference at an end of the measured sizes"


def of_kind(answered: list[Any], kind: str) -> list[Any]:
    return [answer for answer in answered if answer.kind == kind]


def only(answered: list[Any], kind: str) -> Any:
    (answer,) = of_kind(answered, kind)
    return answer


def trials(row: Row, seconds: float, count: int = 3, **values: Any) -> list[dict[str, Any]]:
    """The trials of a cell, whose times are 1 % apart."""
    middle = (count + 1) / 2
    return [row(trial=trial, step_time_s=seconds * 1.01 ** (trial - middle), **values) for trial in range(1, count + 1)]


def gpu_cells(row: Row, *cells: tuple[float, dict[str, Any]]) -> list[dict[str, Any]]:
    """The trials of cells on a GPU, each given by its time in seconds and its axes."""
    return [trial for seconds, axes in cells for trial in trials(row, seconds, device="cuda", **axes)]


def test_a_kind_of_answer_has_one_class() -> None:
    """Or classes that inherit from it."""
    with pytest.raises(TypeError, match="Second: the kind 'quality' is that of Quality; give it another"):
        type("Second", (Answer,), {"kind": "quality"})
    type("Detail", (Quality,), {})
    assert KINDS["quality"] is Quality


@pytest.fixture(scope="module")
def series(row: Row) -> Callable[..., list[dict[str, Any]]]:
    """Trials at SIZES in which the CPU takes 1 us x size and the GPU `gpu_s`."""

    def build(gpu_s: float = 1e-3, count: int = 3, **values: Any) -> list[dict[str, Any]]:
        return [
            trial
            for size in SIZES
            for device, seconds in (("cpu", size * 1e-6), ("cuda", gpu_s))
            for trial in trials(row, seconds, count, size=size, parameters=7 * size, device=device, **values)
        ]

    return build


def test_a_crossover_has_an_interval_a_bracket_and_sides(series: Row) -> None:
    answer = only(answers(series(2e-3)), "crossover")
    assert (answer.status, answer.winner, answer.loser, answer.main) == ("bracketed", "GPU", "CPU", True)
    assert answer.crossover == pytest.approx(2000)
    assert 1000 < answer.crossover_low < 2000 < answer.crossover_high < 10_000
    assert (answer.bracket_low, answer.bracket_high) == (1000, 10_000)
    assert (answer.unit, answer.cost, answer.trials, answer.caveats) == ("linear layers", "time", 3, [])


def with_startups(rows: list[dict[str, Any]]) -> Any:
    """The trials with a start-up of 0.5 s on the CPU and 2.5 s on the GPU; first steps take as long as others."""
    builds_s = {"cpu": 0.4, "cuda": 2.4}
    return [
        trial
        | {"spent_s": json.dumps({"context": 0.1, "build": builds_s[trial["device"]]})}
        | {"first_step_s": trial["step_time_s"]}
        for trial in rows
    ]


def test_without_an_accelerator_all_numbers_of_cores_are_one_series(row: Row) -> None:
    rows = [row(device=device, threads=count, step_time_s=8e-3 / count) for device, count in (("cpu-1", 1), ("cpu", 8))]
    spec = study(x_axis="cpu_threads", cpu_threads=[1], sizes=[4])
    both = of_kind(answers(rows, spec), "step_time")
    assert [(answer.device, answer.place) for answer in both] == [("CPU", "1 CPU core"), ("CPU", "8 CPU cores")]
    first = row_of(both, ())
    assert first.text() == (
        "CPU takes 8.00 ms per step at 1 CPU core (single trial), 1.00 ms at 8 CPU cores (single trial)"
    )
    assert first.series == 1


@pytest.mark.parametrize(
    ("x_axis", "smallest", "largest"),
    [("size", "100 linear layers", "10,000 linear layers"), ("parameters", "700 parameters", "70 k parameters")],
)
def test_a_place_is_told_in_the_unit_of_the_crossover(series: Row, x_axis: str, smallest: str, largest: str) -> None:
    rows, spec = with_startups(series(2e-3)), study(x_axis=x_axis, steps_per_run=1000)
    answered = answers(rows, spec)
    crossover = next(answer for answer in of_kind(answered, "crossover") if answer.cost == "time")
    assert largest.endswith(crossover.unit)
    assert only(answered, "payback").place == largest
    alone = answers([row for row in rows if row["device"] == "cpu"], spec)
    assert [answer.place for answer in of_kind(alone, "step_time")] == [smallest, largest]


@pytest.mark.parametrize(
    ("steps_per_run", "steps", "status", "sentence"),
    [
        (None, None, None, None),
        (1000, 1000, "bracketed", "GPU faster above 4,"),
        # Batches have 100 samples.
        ({"epochs": 20, "samples": 999}, 200, "above_range", "CPU faster at every size measured"),
    ],
)
def test_longer_start_up_is_paid_back_and_moves_the_crossover_of_whole_runs(
    series: Row, steps_per_run: Any, steps: int | None, status: str, sentence: str
) -> None:
    """The GPU takes 2.5 s + 2 ms per step; the CPU 0.5 s + 0.1, 1 and 10 ms: step times cross at size 2,000, and at the
    largest size payback is 2 s / 8 ms = 250 steps.
    """
    answered = answers(with_startups(series(2e-3)), study(steps_per_run=steps_per_run))
    payback = only(answered, "payback")
    assert (payback.main, payback.winner) == (steps is not None, "GPU")
    assert payback.steps == pytest.approx(250, rel=1e-3)
    assert payback.steps_low < 250 < payback.steps_high
    statement = payback.statement()
    assert statement.startswith("GPU ahead after 250 steps at 10,000 linear layers (95 % CI 24")
    assert statement.endswith(": 2.00 s more start-up")

    of_runs = [answer for answer in of_kind(answered, "crossover") if answer.cost == "run"]
    assert len(of_runs) == (steps is not None)
    for answer in of_runs:
        assert (answer.status, answer.main, answer.steps_of_run) == (status, True, steps)
        assert answer.scope() == f"in a run of {steps:,} steps, start-up included"
        assert replace(answer, steps_of_run=None).scope() == "in a whole run, start-up included"
        assert answer.statement().startswith(sentence)
        if status == "bracketed":
            ratios = (0.5 + steps * np.array(SIZES) * 1e-6) / (2.5 + steps * 2e-3)
            curve = PchipInterpolator(np.log(SIZES), np.log(ratios))
            assert answer.crossover == pytest.approx(float(np.exp(curve.roots(extrapolate=False)[0])), rel=0.01)
            assert answer.crossover_low < answer.crossover < answer.crossover_high


@pytest.mark.parametrize("gpu_s", [2e-3, 50e-6])
def test_a_crossover_of_runs_that_is_that_of_steps_is_said_once(series: Row, gpu_s: float) -> None:
    """In a million steps, a start-up of 2 s more is at most 2 % of the shortest run, of 100 s."""
    answered = answers(with_startups(series(gpu_s)), study(steps_per_run=10**6))
    steps, run = of_kind(answered, "crossover")
    assert (steps.cost, steps.main, steps.holds_in_runs, steps.steps_of_run) == ("time", True, True, 10**6)
    assert (run.cost, run.main, run.holds_in_runs) == ("run", False, False)
    assert "the same in a run of 1,000,000 steps, start-up included" in steps.notes()
    shorter = answers(with_startups(series(2e-3)), study(steps_per_run=10**4))
    assert [(answer.main, answer.holds_in_runs) for answer in of_kind(shorter, "crossover")] == [(True, False)] * 2


@pytest.mark.parametrize(
    ("column", "factor", "is_same"),
    [
        ("crossover", 1.01, True),
        ("crossover", 1.03, False),
        ("crossover_low", 0.97, False),
        ("crossover_high", 1.03, False),
    ],
)
def test_crossovers_are_the_same_if_they_and_both_ends_are(
    series: Row, column: str, factor: float, is_same: bool
) -> None:
    """Of a crossover of runs that is that of steps, one number is changed."""
    rows = pd.DataFrame(with_startups(series(2e-3)))
    tables = tables_of(rows, {STUDY: study(steps_per_run=10**6)})
    crossovers = tables.crossovers.copy()
    crossovers.loc[crossovers["cost"] == "run", column] *= factor
    steps, _ = crossover_answers(replace(tables, crossovers=crossovers), 10**6)
    assert (steps.cost, steps.holds_in_runs) == ("time", is_same)


@pytest.mark.parametrize(
    ("gpu_s", "status", "sides", "reach", "ratios"),
    [
        # The CPU takes 100 us to 10 ms per step.
        (50e-6, "below_range", ("GPU", "CPU"), 100, (2, 200)),
        (20e-3, "above_range", ("CPU", "GPU"), 10_000, (2, 200)),
    ],
)
def test_a_side_that_leads_at_all_sizes_has_its_range_of_speedups(
    series: Row, gpu_s: float, status: str, sides: tuple[str, str], reach: float, ratios: tuple[float, float]
) -> None:
    """The name of sizes may be that of a method of mappings."""
    answer = only(answers(series(gpu_s, size_name="items")), "crossover")
    assert (answer.status, answer.winner, answer.loser) == (status, *sides)
    assert answer.statement().startswith(f"{sides[0]} faster at every size measured, ")
    assert answer.reach == reach
    assert (answer.smallest, answer.largest) == (100, 10_000)
    assert (answer.ratio_low, answer.ratio_high) == pytest.approx(ratios)


def test_a_side_that_leads_throughout_leads_not_where_no_difference_is_significant(series: Row, row: Row) -> None:
    """The GPU takes half, about all and a hundredth of the CPU's time. The middle size is in no range of speed-ups."""
    gpu = gpu_cells(
        row,
        *(
            (seconds, {"size": size, "parameters": 7 * size})
            for size, seconds in zip(SIZES, (5e-5, 9.99e-4, 1e-4), strict=True)
        ),
    )
    cpu = [trial for trial in series() if trial["device"] == "cpu"]
    answer = only(answers(cpu + gpu), "crossover")
    assert (answer.status, answer.caveats) == ("below_range", ["unsure_sizes"])
    assert (
        answer.text() == "GPU faster at every size measured but one, 2.00 to 100x (inconclusive at 1,000 linear layers)"
    )
    assert (
        replace(answer, caveat_at=[10.0, 1000.0]).sentence() == "GPU faster at every size measured but 2, 2.00 to 100x"
    )


@pytest.mark.parametrize(
    ("gpu_s", "sides", "low", "high", "tied", "ratios", "words"),
    [
        (9.99e-3, ("CPU", "GPU"), 1000, None, 10_000, (9.99, 99.9), "CPU faster up to 1,000 linear layers, "),
        (1.001e-4, ("GPU", "CPU"), None, 1000, 100, (9.99, 99.9), "GPU faster from 1,000 linear layers on, "),
    ],
)
def test_with_a_tie_at_one_end_a_side_leads_up_to_the_last_significant_size(
    series: Row,
    gpu_s: float,
    sides: tuple[str, str],
    low: float | None,
    high: float | None,
    tied: float,
    ratios: tuple[float, float],
    words: str,
) -> None:
    """The bound is the last size with a significant difference."""
    answer = only(answers(series(gpu_s)), "crossover")
    assert (answer.status, answer.winner, answer.loser) == ("edge_tie", *sides)
    assert (answer.crossover_low, answer.crossover_high) == (low, high)
    assert (answer.reach, answer.caveat_at) == (low or high, [tied])
    assert (answer.ratio_low, answer.ratio_high) == pytest.approx(ratios, rel=0.01)
    assert "unsure_sizes" not in answer.caveats
    sentence = answer.statement()
    assert sentence.startswith(words)
    assert sentence.endswith(f"x; no significant difference at {tied:,} linear layers")
    assert answer.notes() == "more trials, or a quieter machine, may decide"
    assert summed([answer, answer]) == f"{sides[0]} faster, but {AT_AN_END}"


def test_with_ties_at_both_ends_no_side_leads(series: Row) -> None:
    """The GPU takes as long as the CPU at both ends, and a fifth of its time in the middle."""
    rows = series(1e-3)
    for trial in rows:
        if trial["device"] == "cuda":
            trial["step_time_s"] *= 0.2 if trial["size"] == 1000 else trial["size"] / 1000
    answer = only(answers(rows), "crossover")
    assert (answer.status, answer.caveat_at, answer.reach) == ("edge_tie", [100, 10_000], None)
    tied = "No significant difference between GPU and CPU at 100 and 10,000 linear layers"
    assert answer.statement() == f"{tied}; GPU faster at 1,000 linear layers"
    assert answer.notes() == "more trials, or a quieter machine, may decide"
    assert summed([answer, answer]) == AT_AN_END
    many = replace(answer, caveat_at=[1, 2, 3, 4, 1000])
    assert " at 5 sizes from 1 to 1,000 linear layers; " in many.statement()


def test_ties_of_a_run_at_its_ends_do_not_hide_who_is_ahead_between_or_beyond(series: Row) -> None:
    """Of the cost of a run no speed-ups of a step are told; the signs tell who is ahead."""
    tie = only(answers(series(1.001e-4)), "crossover")
    row = {"status": "edge_tie", "cost": "run", "crossover_low": None, "crossover_high": 1000.0} | {
        "bracket_low": None, "bracket_high": None, "caveat_at": [100.0], "slower_up_to": None, "faster_from": 1000.0
    }  # fmt: skip
    speedups = pd.Series([0.5, 0.6, 0.7], [100.0, 1000.0, 10_000.0])
    no_speedups = {"ratio_low": None, "ratio_high": None}
    answer = replace(tie, **no_speedups | _reach(row, speedups, "GPU", "CPU") | {"cost": "run"})
    expected = "GPU faster from 1,000 linear layers on; no significant difference at 100 linear layers"
    assert answer.statement() == expected


def test_of_several_crossings_the_side_ahead_beyond_the_last_is_named(series: Row) -> None:
    """The GPU is ahead at the smallest and at the largest size."""
    rows = series(1e-3)
    for trial in rows:
        if trial["device"] == "cuda":
            trial["step_time_s"] *= {100: 0.03, 1000: 10, 10_000: 1}[trial["size"]]
    answer = only(answers(rows), "crossover")
    assert (answer.status, answer.winner) == ("multiple", "GPU")
    assert answer.statement().endswith("; GPU faster above the last")
    place = position_text(answer.roots[-1], answer.unit)
    once = replace(answer, trials=1)
    assert once.statement() == f"GPU faster above about {place}; undecided below"
    assert replace(once, reach=None).statement() == f"GPU and CPU: undecided up to about {place}"
    thrice = pd.Series([0.5, 2.0, 0.5, 2.0], [1.0, 2.0, 3.0, 4.0])
    for speedups, winner in ((thrice, "GPU"), (1 / thrice, "CPU")):
        assert _reach({"status": "multiple", "cost": "time"}, speedups, "GPU", "CPU")["winner"] == winner


def test_caveats_are_flags_in_the_bracket_and_lost_cells_of_the_series(series: Row) -> None:
    rows = series(2e-3)
    for trial in rows:
        if trial["device"] == "cuda" and trial["size"] == 100:
            trial["flag_names"] = ["drift"]
        if trial["device"] == "cuda" and trial["size"] == 10_000:
            trial["flag_names"] = ["throttled"]
    assert only(answers(rows), "crossover").caveats == ["throttled"]
    lost = [trial | {"status": "oom", "step_time_s": None} if trial["size"] == 100 else trial for trial in rows]
    assert "lost_cells" in only(answers(lost), "crossover").caveats


def test_a_flag_is_a_caveat_if_a_quarter_of_the_cells_have_it() -> None:
    flags = [["drift"], ["drift"], ["quota"], *[[]] * 5]
    cells = pd.DataFrame({"flag_names": flags, "machine": "here", "device": "cpu"})
    assert flags_of(cells) == ["drift"]
    assert flags_of(cells[:4]) == ["drift", "quota"]
    assert flags_of(cells[3:]) == []


IN_ORDER = ("busy_host", "one_trial", "lost_cells", "unsure_sizes", "trials_differ", "drift")


def test_caveats_are_in_order_of_importance_and_a_sentence_has_the_first(series: Row) -> None:
    """Each caveat is said alone once those before it are gone, in at most six words."""
    assert set(by_importance([*FLAGS, *reversed(IN_ORDER), *IN_ORDER])) == {*FLAGS, *IN_ORDER}
    assert by_importance(sorted(IN_ORDER)) == list(IN_ORDER)
    answer = replace(only(answers(series(2e-3)), "crossover"), caveat_at=[1000.0])
    interval = answer.notes()
    told = [
        replace(answer, caveats=IN_ORDER[first:]).notes().removeprefix(f"{interval}; ")
        for first in range(len(IN_ORDER))
    ]
    assert told == [
        "busy machine",
        "single trial",
        "some of its cells have no result",
        "inconclusive at 1,000 linear layers",
        "widely spread trials",
        "drifting times",
    ]
    further = replace(answer, caveats=IN_ORDER, told=IN_ORDER[:1]).further_caveats()
    assert further == "; ".join([told[0], *told[2:]])


def test_crossovers_of_precisions_are_main_answers_only_without_a_cpu(series: Row) -> None:
    rows = series(2e-3) + [trial for trial in series(1e-3, precision="tf32") if trial["device"] == "cuda"]
    pairs = [answer for answer in of_kind(answers(rows), "crossover") if answer.loser == "fp32 on the GPU"]
    assert [(answer.winner, answer.status, answer.main) for answer in pairs] == [
        ("tf32 on the GPU", "below_range", False)
    ]
    (alone,) = of_kind(answers([trial for trial in rows if trial["device"] == "cuda"]), "crossover")
    assert (alone.winner, alone.main) == ("tf32 on the GPU", True)


def test_a_study_that_refines_variants_is_answered_by_them(row: Row) -> None:
    """On the CPU, variant `b` has a longer start and a faster rate than `a`; their lines cross at n = 500."""
    times = {"a": lambda n: 1e-3 * n, "b": lambda n: 0.25 + 5e-4 * n}
    rows = [
        row(size=n, size_name="n", parameters=n, variant=variant, trial=trial, step_time_s=time(n) * 1.01**trial)
        for n in SIZES
        for variant, time in times.items()
        for trial in range(3)
    ]
    spec = study(variants=("a", "b"), refinement={"pairs": ["variant"]})
    main = [answer for answer in answers(rows, spec) if answer.main and answer.kind == "crossover"]
    (answer,) = main
    assert answer.sentence().startswith("b on the CPU faster than a on the CPU above n = 4")
    assert "No GPU" not in " ".join(each.sentence() for each in answers(rows, spec) if each.kind == "crossover")
    assert "No GPU" in " ".join(each.sentence() for each in answers(rows) if each.main)


def test_crossovers_of_settings_have_speedups_bars_and_paybacks_where_both_axes_vary(series: Row) -> None:
    """On a GPU alone: fp32 takes 2 ms, bf16 1 ms, as a CUDA graph 0.8 and 0.2 ms, at each of three sizes."""
    times_s = {("fp32", "eager"): 2e-3, ("bf16", "eager"): 1e-3, ("fp32", "cuda-graph"): 8e-4}
    times_s[("bf16", "cuda-graph")] = 2e-4
    rows = [
        trial
        for (precision, execution), time_s in times_s.items()
        for trial in series(time_s, precision=precision, execution=execution)
        if trial["device"] == "cuda"
    ]
    answered = answers(with_startups(rows), study(steps_per_run=10**6))
    crossovers = of_kind(answered, "crossover")
    assert {answer.status for answer in crossovers} == {"below_range"}
    of_steps = [answer for answer in crossovers if answer.cost == "time"]
    assert {(row.series, row.winner): row.ratio_low for row in of_steps} == {
        ("eager", "bf16 on the GPU"): pytest.approx(2),
        ("cuda-graph", "bf16 on the GPU"): pytest.approx(4),
        ("fp32", "cuda-graph on the GPU"): pytest.approx(2.5),
        ("bf16", "cuda-graph on the GPU"): pytest.approx(5),
    }
    assert [part["label"] for part in bar_of(of_steps[0])] == ["bf16"]
    paybacks = [(answer.series, answer.winner, answer.steps) for answer in of_kind(answered, "payback")]
    assert paybacks == [(answer.series, answer.winner, 0) for answer in of_steps]
    assert not any("CPU" in answer.text() for answer in answered)
    cpu = [trial for trial in series(4e-3) if trial["device"] == "cpu"]
    asked = answers(with_startups([*rows, *cpu]), study(steps_per_run=10**6, refinement={"pairs": ["execution"]}))
    winners = {answer.winner for answer in of_kind(asked, "payback")}
    assert winners == {"cuda-graph on the GPU"}


@pytest.mark.parametrize("protocol", ["resident", "as_published"])
def test_the_series_of_the_published_crossover_comes_first(series: Row, protocol: str) -> None:
    rows = series(4e-3, protocol="as_published") + series(2e-3)
    unpublished = "resident" if protocol == "as_published" else "as_published"
    claims = [
        {"statement": source, "source": source, "crossover_between": {"range": [1, 9], "where": {"protocol": pinned}}}
        for source, pinned in (("ours", unpublished), ("A", protocol))
    ]
    main = [row for row in answers(rows, study(claims=claims)) if row.main and row.kind == "crossover"]
    assert main[0].series == protocol.replace("_", " ")
    assert len(main) == 2


def test_transfers_shift_the_crossover(series: Row) -> None:
    tied = series(2.001e-3, protocol="as_published")
    rows = tied + series(4e-3, protocol="from_host") + series(8e-3, protocol="from_pageable") + series(2e-3)
    tie, pinned, pageable = of_kind(answers(rows), "transfers")
    assert (tie.status, tie.ratio_low < 1 < tie.ratio_high) == ("inconclusive", True)
    assert (pinned.status, pinned.ratio) == ("differ", pytest.approx(2))
    assert 1 < pinned.ratio_low < 2 < pinned.ratio_high
    assert [answer.statement() for answer in (pinned, pageable)] == [
        f"Crossover of GPU over CPU with transfers from {memory} host memory and back in each step: at {times} times "
        "its size on resident data"
        for times, memory in (("2.00", "pinned"), ("4.00", "pageable"))
    ]
    once = only(answers(series(4e-3, 1, protocol="as_published") + series(2e-3, 1)), "transfers")
    assert once.status == "single_trial"


def test_times_of_a_row_are_of_one_series_the_plain_one_first(row: Row) -> None:
    rows = [
        trial
        for precision, batch, factor in (("bf16", 8, 1), ("fp32", 8, 4), ("fp32", 16, 16))
        for size in (64, 256)
        for trial in trials(row, factor * size * 1e-5, size=size, precision=precision, batch_size=batch, device="cpu")
    ]
    main = [answer for answer in answers(rows) if answer.kind == "step_time"]
    text = re.sub(r"95 % CI [\d.]+ ms to [\d.]+ ms", "CI", row_of(main, []).text())
    times = "CPU takes 2.56 ms per step at 64 linear layers (CI), 10.2 ms at 256 linear layers (CI)"
    assert text == f"batch 8, fp32: {times}; first of 3 series"


TIME: dict[str, Any] = {"device": "CPU", "step_time_s": 1e-3, "main": True}
BUSY = ["busy_machine", "busy_host"]


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ([], [], "CPU takes 1.00 ms per step at n = 8 (95 % CI 900 µs to 1.20 ms), 1.00 ms at n = 64"),
        (
            ["trials_differ"],
            ["one_trial"],
            "CPU takes 1.00 ms per step at n = 8 (95 % CI 900 µs to 1.20 ms; widely spread trials), "
            "1.00 ms at n = 64 (single trial)",
        ),
        (
            BUSY,
            BUSY,
            "On a busy machine: CPU takes 1.00 ms per step at n = 8 (95 % CI 900 µs to 1.20 ms), 1.00 ms at n = 64",
        ),
        (
            BUSY,
            [],
            "CPU takes 1.00 ms per step at n = 8 (95 % CI 900 µs to 1.20 ms; busy machine), 1.00 ms at n = 64",
        ),
        (
            [],
            BUSY,
            "CPU takes 1.00 ms per step at n = 8 (95 % CI 900 µs to 1.20 ms), 1.00 ms at n = 64 (busy machine)",
        ),
    ],
)
def test_each_of_two_times_has_its_own_notes(first: list[str], last: list[str], text: str) -> None:
    ends = [
        StepTime(**TIME, step_time_low_s=9e-4, step_time_high_s=1.2e-3, place="n = 8", caveats=first),
        StepTime(**TIME, step_time_low_s=None, step_time_high_s=None, place="n = 64", caveats=last),
    ]
    assert row_of(ends, []).text() == text


@pytest.mark.parametrize(
    ("caveats", "text"),
    [
        ((BUSY, BUSY), "On a busy machine: CPU takes 1.00 ms per step"),
        ((BUSY, []), "CPU takes 1.00 ms per step (1 of 2 on a busy machine)"),
        (([], BUSY), "CPU takes 1.00 ms per step (1 of 2 on a busy machine)"),
        (([], []), "CPU takes 1.00 ms per step"),
    ],
)
def test_a_busy_machine_is_said_only_of_the_answers_that_it_disturbed(
    caveats: tuple[list[str], ...], text: str
) -> None:
    found = [StepTime(**TIME, step_time_low_s=None, step_time_high_s=None, place="", caveats=each) for each in caveats]
    assert summed(found) == text


@pytest.mark.parametrize(
    ("count", "status", "words"),
    [
        (1, "single_trial", "Single trials cannot tell {} apart"),
        (3, "inconclusive", "No significant difference between {}"),
    ],
)
def test_single_trials_cannot_tell_machines_apart(row: Row, count: int, status: str, words: str) -> None:
    rows = [trial for machine in ("a", "b") for trial in trials(row, 4e-3, count, device="cpu", machine=machine)]
    ranking = only(answers(rows), "ranking")
    assert (ranking.status, ranking.compares) == (status, count > 1)
    assert ranking.sentence() == words.format("CPU of a and CPU of b")
    many = replace(ranking, sides=[f"CPU of {name}" for name in "abcde"])
    assert many.sentence() == words.format("5 devices of all machines")


def test_a_ranking_names_the_places_of_two_devices_together(row: Row) -> None:
    rows = [trial for machine in ("a", "b") for trial in trials(row, 4e-3, device="cpu", machine=machine)]
    both = "CPU of a and CPU of b"
    ranges = [(both, "GPU", 10, 10), ("CPU of a", "GPU", 20, 40), (both, "GPU", 50, 90)]
    ranking = replace(only(answers(rows), "ranking"), status="changes", ranges=ranges, unit="rows")
    assert ranking.sentence() == (
        f"GPU is slower than each of {both} at 10 rows and from 50 to 90 rows; "
        "GPU is slower than CPU of a from 20 to 40 rows"
    )


@pytest.mark.parametrize(
    ("gpu_s", "status", "winner", "ratio"),
    [(1e-3, "faster", "GPU", 4), (8e-3, "faster", "CPU", 2), (4.001e-3, "inconclusive", "CPU", 1.00025)],
)
def test_two_devices_at_one_size_have_a_ratio(row: Row, gpu_s: float, status: str, winner: str, ratio: float) -> None:
    rows = trials(row, 4e-3, device="cpu") + trials(row, gpu_s, device="cuda")
    answer = only(answers(rows, study(figures=["comparison"])), "ratio")
    assert (answer.status, answer.winner, answer.main) == (status, winner, True)
    assert answer.ratio == pytest.approx(ratio)
    assert answer.ratio_low < answer.ratio < answer.ratio_high
    assert (answer.winner_s, answer.loser_s) == pytest.approx((min(gpu_s, 4e-3), max(gpu_s, 4e-3)))


@pytest.mark.parametrize(
    ("published_s", "status"),
    # Loading takes 80 %, 20 %, 0.1 % (inconclusive) and, due to noise, a negative share of a step.
    [(5e-3, "bounds"), (1.25e-3, "slower"), (1.001e-3, "inconclusive"), (0.8e-3, "faster")],
)
def test_loading_is_the_share_of_a_step_that_resident_data_saves(row: Row, published_s: float, status: str) -> None:
    rows = trials(row, published_s, protocol="as_published", device="cuda")
    rows += trials(row, 1e-3, protocol="resident", device="cuda")
    answer = only(answers(rows, study(figures=["comparison"])), "loading")
    assert (answer.status, answer.device, answer.main) == (status, "GPU", True)
    assert answer.share == pytest.approx(1 - 1e-3 / published_s)
    assert answer.share_low < answer.share < answer.share_high


def test_transfers_have_answers_of_their_own_and_none_on_a_cpu(row: Row) -> None:
    """A step takes 2 ms on the GPU and 1 ms with resident data; on the CPU both are equal."""
    rows = [
        trial
        for device, times_s in (("cuda", (1e-3, 2e-3, 4e-3)), ("cpu", (5e-3, 5e-3, 5e-3)))
        for protocol, time_s in zip(("resident", "from_host", "from_pageable"), times_s, strict=True)
        for trial in trials(row, time_s, protocol=protocol, device=device)
    ]
    made = answers(rows, study(figures=["comparison"]))
    speedups = [(answer.series, answer.winner, answer.ratio) for answer in of_kind(made, "ratio")]
    assert [value for *_, value in speedups] == pytest.approx([5, 2.5, 1.25])  # the study's own question is another one
    assert {winner for _, winner, _ in speedups} == {"GPU"}
    copying = of_kind(made, "copying")
    assert [(answer.device, answer.protocol, answer.share) for answer in copying] == [
        ("GPU", "from_host", pytest.approx(0.5)),
        ("GPU", "from_pageable", pytest.approx(0.75)),
    ]
    beginning = "Transfer from pageable host memory and back, not the network, is the bottleneck on the GPU: "
    assert copying[1].statement() == f"{beginning}it takes 75 % of a step"
    from_pageable = [copying[1], replace(copying[1], share=0.8)]
    assert summed(from_pageable) == f"{beginning}it takes 75 % to 80 % of a step"
    assert len(group_alike([*copying, *from_pageable])) == 2


def latencies(row: Row, cold: float, **values: Any) -> list[dict[str, Any]]:
    """Three trials on a GPU; without warm-up, the first step takes `cold` times as long as others."""
    return [
        row(
            device="cuda",
            trial=trial,
            latencies_s=[1e-3, 1.02e-3],
            latencies_cold_s=[cold * 1e-3 * 1.001**trial] + [1e-3] * 3,
            latencies_transfer_s=[1.01e-3 * 1.1 ** (trial - 2)] * 2,
            latencies_unsynchronised_s=[1.01e-3 * 1.01 ** (trial - 2)] * 2,
            **values,
        )
        for trial in (1, 2, 3)
    ]


def test_the_effects_of_mistakes_on_a_latency(row: Row) -> None:
    """The largest significant effect comes first; for each other mistake, the largest effect that its interval allows.

    The ratio of the transfers is 1, with a standard deviation of ln 1.1: its interval reaches up to 1.1 to the power of
    6.205347 / sqrt(3), that of the missing synchronisation up to 1.01 to that power: the quantile of Student's
    t with two degrees of freedom, corrected for the two comparisons that are not significant.
    """
    spec = study(figures=["latency"])
    found = of_kind(answers(latencies(row, 5), spec), "latency")
    assert [(answer.status, answer.mistake) for answer in found] == [
        ("error", "no warm-up"),
        ("none_found", "transfer in the loop"),
        ("none_found", "no synchronisation"),
    ]
    assert found[0].ratio == pytest.approx(5, rel=0.01)
    assert found[0].statement() == "Without warm-up, the first step takes 5.01x the median on the GPU"
    power = 6.205347 / math.sqrt(3)
    assert found[1].detectable == pytest.approx(1.1**power - 1)
    assert found[2].detectable == pytest.approx(1.01**power - 1)
    expected = "“transfer in the loop” has no significant effect on the GPU (none larger than 41 %)"
    assert found[1].statement() == expected
    assert {answer.status for answer in of_kind(answers(latencies(row, 1), spec), "latency")} == {"none_found"}


def test_mistakes_on_many_machines_are_summarised_by_mistake(row: Row) -> None:
    """Each line has the range of its effect, or the largest effect that the interval of any machine allows."""
    found = of_kind(answers(latencies(row, 5), study(figures=["latency"])), "latency")
    larger = [replace(answer, series="b", ratio=2 * answer.ratio, detectable=0.9) for answer in found]
    assert [summed(group) for group in group_alike(found + larger)] == [
        "Without warm-up, the first step takes 5.01 to 10.0x the median on the GPU",
        "“transfer in the loop” has no significant effect on the GPU (none larger than 90 %)",
        "“no synchronisation” has no significant effect on the GPU (none larger than 90 %)",
    ]


def test_a_single_trial_cannot_show_the_effect_of_a_mistake(row: Row) -> None:
    answer = only(answers(latencies(row, 5)[:1], study(figures=["latency"])), "latency")
    assert answer.statement() == "A single trial cannot show the effect of mistakes on the GPU"


def test_on_a_cpu_only_the_mistakes_that_exist_there_are_named(row: Row) -> None:
    rows = [trial | {"device": "cpu", "latencies_transfer_s": None} for trial in latencies(row, 1)]
    for trial in rows:
        trial["latencies_unsynchronised_s"] = None
    assert only(answers(rows, study(figures=["latency"])), "latency").mistake == "no warm-up"


def test_the_fastest_setting_per_sample_is_compared_with_the_plain_one(row: Row) -> None:
    rows = gpu_cells(
        row,
        (4e-3, {"precision": "fp32", "batch_size": 8}),
        (3e-3, {"precision": "tf32", "batch_size": 8}),
        (8e-3, {"precision": "bf16", "batch_size": 64}),
    )
    answer = only(answers(rows, study(figures=["comparison"])), "setting")
    # 4 ms / 8 samples over 8 ms / 64 samples.
    assert (answer.winner, answer.loser) == ("batch 64, bf16", "batch 8, fp32")
    assert (answer.status, answer.ratio) == ("faster", pytest.approx(4))


def test_the_highest_throughput_is_inconclusive_among_equals_and_corrected_for_selection(row: Row) -> None:
    rates = {8: 1000, 16: 1001, 32: 999}
    rows = gpu_cells(row, *((batch / rate, {"batch_size": batch}) for batch, rate in rates.items()))
    answer = only(answers(rows, study(figures=["throughput"])), "throughput")
    assert (answer.status, answer.place) == ("inconclusive", "batch 16")
    assert answer.samples_per_s_low < answer.samples_per_s < 999
    assert answer.statement().endswith("at batch 16; not significantly more than other cells")


def test_asks_are_answered_even_if_another_precision_is_faster(row: Row) -> None:
    """At the largest size tf32 takes a fifth of the time with 50 times the error; bf16 is even faster."""
    rows = [
        trial
        for size in (10, 1000)
        for precision, seconds, error in (("fp32", 5e-3, 1e-6), ("tf32", 1e-3, 5e-5), ("bf16", 1e-4, 1e-2))
        for trial in trials(row, seconds, device="cuda", precision=precision, size=size, max_relative_error=error)
    ]
    tf32 = {
        "of": {"precision": "tf32"},
        "over": {"precision": "fp32"},
        "metrics": ["step_time_s", "max_relative_error"],
    }
    answered = answers(rows, study(figures=["comparison"], asks=tf32))
    main = [answer for answer in answered if answer.main and answer.kind not in ("memory", "bottleneck")]
    assert [(answer.kind, answer.status, answer.quantity) for answer in main] == [
        ("asked", "faster", "step_time_s"),
        ("asked", "worse", "max_relative_error"),
    ]
    time, error = main
    assert (time.winner, time.loser, time.place) == ("tf32", "fp32", "1,000 linear layers")
    assert time.ratio == pytest.approx(5)
    assert time.ratio_low < 5 < time.ratio_high
    assert (error.ratio, error.ratio_low, error.caveats) == (pytest.approx(50), None, [])
    assert row_of(main, []).sentence() == (
        "GPU, 1,000 linear layers: tf32 5.00x faster than fp32; largest relative error of tf32 50.0x that of fp32"
    )


def test_asks_are_answered_in_the_order_of_their_metrics(row: Row) -> None:
    """With amp-fp16, a step needs nine tenths of the memory of fp32, and takes twice the time."""
    rows = [
        trial
        for variant, factor in (("plain", 1), ("adafactor", 0.1))
        for precision, seconds, count in (("fp32", 1e-3, 10_000_000_000), ("amp-fp16", 2e-3, 9_000_000_000))
        for trial in trials(
            row,
            seconds * factor,
            device="cuda",
            precision=precision,
            variant=variant,
            device_used_bytes=round(count * factor),
        )
    ]
    sides = {side: {"precision": name, "variant": "plain"} for side, name in (("of", "amp-fp16"), ("over", "fp32"))}
    asks = {**sides, "metrics": ["device_used_bytes", "step_time_s"]}
    answered = answers(rows, study(figures=["comparison"], asks=asks))
    memory, time = [answer for answer in answered if answer.kind == "asked"]
    assert (memory.quantity, memory.ratio, memory.winner) == (
        "device_used_bytes",
        pytest.approx(0.9),
        "amp-fp16",
    )
    assert (memory.status, time.status) == ("better", "faster")
    assert (time.winner, time.ratio) == ("fp32", pytest.approx(2))
    assert memory.statement() == "GPU, plain: amp-fp16 takes 10 % less memory than fp32"


def test_without_both_sides_asks_have_no_answer(row: Row) -> None:
    rows = trials(row, 1e-3, device="cuda") + trials(row, 1e-4, device="cuda", precision="bf16")
    asks = {"of": {"precision": "tf32"}, "over": {"precision": "fp32"}, "metrics": ["step_time_s"]}
    answered = answers(rows, study(figures=["comparison"], asks=asks))
    main = [answer for answer in answered if answer.main and answer.kind not in ("memory", "bottleneck")]
    assert [(answer.kind, answer.status, answer.of) for answer in main] == [("missing", "not_both", "tf32")]


def test_memory_is_a_limit_if_a_cell_ran_out_of_it(row: Row) -> None:
    on_gpu = {"device": "cuda", "device_memory_bytes": 100, "peak_allocated_bytes": 95}
    of_larger = {"peak_allocated_bytes": 50, "device_memory_bytes": 120}
    rows = [row(size=2, **on_gpu), row(size=3, **on_gpu | of_larger)]
    (full,) = memory_answers(summarise(pd.DataFrame(rows)))
    assert (full.status, full.peak_bytes, full.capacity_bytes) == ("nearly_full", 95, 100)
    assert (full.device, full.place) == ("GPU (Brand G1)", "2 linear layers")
    assert only(answers(rows[1:]), "memory").status == "no_limit"
    lost = row(size=4, status="oom", step_time_s=None, **on_gpu | {"peak_allocated_bytes": None})
    limit = only(answers([*rows, lost]), "memory")
    assert (limit.status, limit.lost, limit.lost_place) == ("limit", 1, "4 linear layers")


def test_the_memory_of_a_function_on_the_cpu_is_what_it_adds_to_its_data(row: Row) -> None:
    """The process holds the data before the step, so only its growth is known."""
    rows = [row(size=2, memory_bytes=1000, base_rss_bytes=500, peak_rss_bytes=620)]
    answer = only(answers(rows), "memory")
    assert (answer.status, answer.peak_bytes, answer.capacity_bytes) == ("unknown_capacity", 120, None)
    assert answer.statement() == "Memory of the CPU (Brand C1): a step adds up to 120 B to its data"
    on_gpu = row(size=2, device="cuda", device_memory_bytes=1000, peak_allocated_bytes=0)
    assert not of_kind(answers([*rows, on_gpu]), "memory")


@pytest.mark.parametrize(
    ("model", "batches", "series_of_answer"),
    [
        ({"takes": []}, [8], "batch 8"),
        ({"takes": []}, [32], ""),
        ({"takes": []}, [8, 16], ""),
        ({"takes": ["device", "batch_size"]}, [1], "batch 1"),
        ({"takes": ["device"]}, [1], ""),
        (None, [8], ""),
    ],
)
def test_the_answer_on_a_users_model_names_the_batch_that_was_asked_for(
    series: Row, model: dict[str, Any] | None, batches: list[int], series_of_answer: str
) -> None:
    spec = study(user_model=model and {"origin": "net.py", "name": "build", **model}, batch_sizes=batches)
    answer = only(answers(series(batch_size=batches[0]), spec), "crossover")
    assert (answer.series or "") == series_of_answer
    sentence = row_of([answer], ()).text()
    assert sentence.startswith(f"{series_of_answer}: GPU faster above" if series_of_answer else "GPU faster above")


@pytest.mark.parametrize(("bf16", "status", "winner"), [(20, "better", "bf16"), (40, "equivalent", "fp32")])
def test_settings_are_compared_in_memory_at_the_largest_common_size(
    row: Row, bf16: int, status: str, winner: str
) -> None:
    rows = [
        row(device="cuda", size=size, precision=precision, peak_allocated_bytes=peak * size)
        for size in (2, 3)
        for precision, peak in (("fp32", 40), ("bf16", bf16), ("tf32", 40))
    ] + [row(device="cuda", size=9, peak_allocated_bytes=999)]
    answer = only(answers(rows), "memory_setting")
    assert (answer.status, answer.lowest, answer.lowest_bytes) == (status, winner, 3 * bf16)
    assert answer.highest_bytes == 120
    assert answer.place == "3 linear layers, batch 100"


def test_the_largest_batch(row: Row) -> None:
    cases: list[tuple[dict[str, Any], str, float | None]] = [
        ({"status": "ok", "largest_batch": 64, "smallest_failing": 65}, "fits", 64),
        ({"status": "ok", "largest_batch": 64}, "all_fit", 64),
        ({"status": "oom", "smallest_failing": 1}, "none_fits", 1),
        ({"status": "timeout", "largest_fitting": 32}, "stopped", 32),
        ({"status": "timeout"}, "not_found", None),
    ]
    axes = {name: row()[name] for name in ("study", "workload", "variant", "protocol", "precision", "execution")}
    on_gpu = {"machine": "here", "device": "cuda", "device_name": "Brand G1", "memory_limit_bytes": 8_000_000_000}
    searches = [axes | on_gpu | {"size": size} | search for size, (search, _, _) in enumerate(cases, 1)]
    answered = of_kind(answers([row(device="cuda")], searches=searches), "largest_batch")
    assert [(answer.status, answer.batch_size, answer.limit_bytes) for answer in answered] == [
        (status, value, 8e9) for _, status, value in cases
    ]


@pytest.mark.parametrize(
    ("status", "memory_limit", "sentence"),
    [
        ("fits", 8e9, "Largest batch that fits: 2,048 on the GPU, memory limit 8.00 GB"),
        ("fits", None, "Largest batch that fits: 2,048 on the GPU, limited by its memory"),
        (
            "all_fit",
            8e9,
            "Largest batch tried, which fits: 2,048 on the GPU, the limit of the search; memory limit 8.00 GB",
        ),
        ("all_fit", None, "Largest batch tried, which fits: 2,048 on the GPU, the limit of the search"),
        ("stopped", None, "Largest batch: at least 2,048, where the search was stopped on the GPU"),
    ],
)
def test_the_largest_batch_is_told_with_what_limits_it(status: str, memory_limit: float | None, sentence: str) -> None:
    answer = LargestBatch(status=status, device="GPU", batch_size=2048, limit_bytes=memory_limit, reason=None)
    assert answer.sentence() == sentence


def trainings(row: Row, accuracies: dict[str, float], seeds: int = 4, rows: int = 1000) -> list[dict[str, Any]]:
    """Trainings with the accuracy given by `device_precision`, the same for all seeds; on the CPU in fp32 it is 0.5."""
    numbers = np.arange(rows)
    labels = numbers % 2
    trained = []
    for name, accuracy in {"cpu_fp32": 0.5, **accuracies}.items():
        device, precision = name.split("_")
        values = row(device=device, precision=precision) | {"labels": labels, "generated_data": False, "loss": 0.5}
        predictions = np.where(numbers < round(rows * accuracy), labels, 1 - labels)
        trained += [values | {"seed": seed, "predictions": predictions} for seed in range(seeds)]
    return trained


def quality_of(trained: list[dict[str, Any]]) -> Quality:
    """The answer on these trainings."""
    table = quality_table(pd.DataFrame(trained, columns=arrow_schema(Training).names), {})
    return quality_answer(table)


@pytest.mark.parametrize(
    ("accuracies", "status", "winner", "loser", "value"),
    [
        ({"cuda_fp32": 0.6}, "better", "GPU in fp32", "", 0.1),
        ({"cuda_fp32": 0.4, "cuda_bf16": 0.7}, "both", "GPU in bf16", "GPU in fp32", 0.2),
        ({"cuda_fp32": 0.503}, "equivalent", "", "", 0.003),
        # Five rows of 1,000 differ, ± 1.96 x sqrt(5 + 4): the interval is not within 0.01, and includes 0.
        ({"cuda_fp32": 0.505}, "inconclusive", "GPU in fp32", "", 0.005),
        # The CPU's other precisions say nothing about the GPU.
        ({"cpu_bf16": 0.4, "cuda_fp32": 0.5}, "equivalent", "", "", 0.0),
    ],
)
def test_quality_is_decided_by_the_whole_interval(
    row: Row, accuracies: dict[str, float], status: str, winner: str, loser: str, value: float
) -> None:
    answer = quality_of(trainings(row, accuracies))
    assert [answer.status, answer.better or answer.undecided, answer.worse] == [status, winner, loser]
    assert (answer.quantity, answer.data) == ("accuracy", "1,000 rows of disc")
    assert answer.difference == pytest.approx(value, abs=1e-9)
    assert answer.trials == 4


def test_quality_needs_two_seeds_a_baseline_a_gpu_and_several_predicted_classes(row: Row) -> None:
    trained = trainings(row, {"cuda_fp32": 0.6})
    cases = {
        "single_trial": trainings(row, {"cuda_fp32": 0.6}, seeds=1),
        "only_cpu": trained[:4],
        "no_baseline": trained[4:],
        "nothing_learnt": [values | {"predictions": np.zeros(1000, int)} for values in trained],
    }
    for status, rows in cases.items():
        assert quality_of(rows).status == status


def test_failed_trainings_are_a_caveat(row: Row) -> None:
    trained = trainings(row, {"cuda_fp32": 0.5, "cuda_bf16": 0.5})
    assert not quality_of(trained).caveats
    failed = [*trained[:-4], *(values | {"status": "oom"} for values in trained[-4:])]
    generated = [values | {"generated_data": True} for values in failed]
    answer = only(answers([row()], study(figures=["utilisation"]), trainings=generated), "quality")
    assert (answer.status, answer.caveats) == ("equivalent", ["lost_cells"])
    assert answer.data == "1,000 generated rows"


def test_a_study_without_results_has_a_reason(row: Row) -> None:
    studies = {STUDY: study(), "gone": study(), "other": study(devices=["mps"])}
    none = read_answers(tables_of(pd.DataFrame([row()]), studies).answers)
    assert [answer.statement() for answer in none if answer.study != STUDY] == [
        "Not measured here",
        "Not measured here: the study is for mps only",
    ]
    lost = only(answers([row(status="timeout", reason="too slow", step_time_s=None)]), "missing")
    assert (lost.status, lost.main, lost.reason) == ("no_result", True, "too slow")


def graphs(row: Row, seconds: float) -> list[dict[str, Any]]:
    axes = {"execution": "cuda-graph"}
    return gpu_cells(row, *((seconds, {"size": size, "parameters": 7 * size, **axes}) for size in SIZES))


def with_candidates(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    candidates = {"executions": ["cuda-graph"], "sizes": list(sizes)}
    return study(candidates=candidates, precisions=["fp32"], executions=["eager"], cpu_threads=[])


def test_an_answer_on_tuned_devices_names_the_sizes_at_which_they_are_compared(series: Row, row: Row) -> None:
    """Graphs of 50 us, measured at two of three sizes, at which the CPU takes 1 and 10 ms."""
    at_two = [trial for trial in graphs(row, 5e-5) if trial["size"] != 1000]
    best = only(answers([*series(5e-3), *at_two], with_candidates((100, 10_000))), "best")
    assert (best.status, best.compared_at) == ("below_range", [100, 10_000])
    assert "GPU faster at 100 and 10,000 linear layers, 2.00 to 200x" in best.statement()
    other = replace(best, series="batch 8", compared_at=[100, 1000])
    (group,) = group_alike([best, other, replace(best, compared_at=[])])[:1]
    assert summed(group) == (
        "Tuned: GPU faster at every size compared (compared at 100, 1,000 and 10,000 linear layers)"
    )
    assert "compared at 100 and 10,000 linear layers" in replace(best, status="edge_tie").notes()
    unsure = replace(best, caveats=["unsure_sizes"], caveat_at=[100.0])
    assert "GPU faster at 10,000 linear layers, 2.00 to 200x" in unsure.statement()
    everywhere = only(answers([*series(5e-3), *graphs(row, 5e-5)], with_candidates()), "best")
    assert everywhere.compared_at == []
    assert "GPU faster at every size measured" in everywhere.statement()


def test_tuned_devices_have_configurations_and_a_shifted_crossover(series: Row, row: Row) -> None:
    answered = answers([*series(5e-3), *graphs(row, 5e-4)], with_candidates())
    best = only(answered, "best")
    assert (best.status, best.winner, best.loser, best.main) == ("bracketed", "GPU", "CPU", True)
    assert (best.winner_configurations, best.loser_configurations) == (["cuda-graph"], ["eager"])
    assert (best.crossover, best.moved_from) == (pytest.approx(500, rel=0.02), pytest.approx(5000, rel=0.02))
    assert (best.factor, best.moved_status) == (pytest.approx(0.1, rel=0.05), "bracketed")
    assert best.crossover_low < 500 < best.crossover_high
    assert (best.trials, best.caveats, best.unit) == (3, [], "linear layers")
    assert only(answered, "crossover") == only(answers(series(5e-3)), "crossover")


def test_a_configuration_on_fewer_cores_is_told_from_one_on_all() -> None:
    shown = [{"execution": "eager", "side": side} for side in ("cpu-1", "cpu")]
    candidates = pd.DataFrame(shown).assign(**dict.fromkeys(CANDIDATE_AXES, "alike"))
    assert candidate_names(shown, candidates) == ["eager on 1 core", "eager on all cores"]
    assert candidate_names(shown[1:], candidates) == ["eager"]


def test_a_series_with_a_side_ahead_comes_first(row: Row) -> None:
    """Without a published crossover."""
    rows = [
        row(size=size, batch_size=batch, device=device, trial=trial, step_time_s=seconds * (1 + 0.05 * trial))
        for size in SIZES
        for batch, times in ((8, (1e-3, 1e-3)), (64, (1e-3, 1e-4)))
        for device, seconds in zip(("cpu", "cuda"), times, strict=True)
        for trial in (1, 2, 3)
    ]
    main = [(answer.series, answer.status) for answer in of_kind(answers(rows), "crossover") if answer.main]
    assert main == [("batch 64", "below_range"), ("batch 8", "undecided")]


def of_builder(row: Row, work: Callable[[int], dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Trials of a user's model at SIZES, with the work of a step by size; the GPU overtakes the CPU within them."""
    own = {"workload": "model", "size_name": "units of width", "parameters": 7, "flops_per_step": 100, **more}
    own |= {"products_bytes_by_working_set": [8.0, 0.0], "others_bytes_by_working_set": [0.0, 4.0]}
    return [
        trial | work(size) | ({} if trial["trial"] == 1 else {"products_bytes_by_working_set": None})
        for size in SIZES
        for device, seconds in (("cpu", size * 1e-6), ("cuda", 1e-3))
        for trial in trials(row, seconds, size=size, device=device, **own)
    ]


def test_a_size_that_a_model_does_not_use_is_no_axis(row: Row) -> None:
    """The times differ, for example since other programs ran; the work of a step does not."""
    rows = of_builder(row, lambda _size: {})
    answered = answers(rows)
    idle, *others = [answer for answer in answered if answer.main]
    assert idle.statement() == (
        "No crossover over the size: the model has the same parameters and operations at width 100, 1,000 and 10,000. "
        "Use the size in the model, or give one size"
    )
    assert {(answer.kind, answer.winner, round(answer.ratio, 1)) for answer in others if answer.kind == "ratio"} == {
        ("ratio", "CPU", 10.0)
    }
    assert not {"crossover", "payback", "best", "ranking"} & {answer.kind for answer in answered}
    tables = tables_of(pd.DataFrame(rows), {STUDY: study()})
    assert tables.crossovers.empty
    assert tables.machines.empty


@pytest.mark.parametrize(
    "work",
    [
        lambda size: {"parameters": size},
        lambda size: {"flops_per_step": size},
        lambda size: {"others_bytes_by_working_set": [0.0, 4.0 * size]},
        lambda _size: {"products_bytes_by_working_set": None, "others_bytes_by_working_set": None},
        lambda size: {"others_bytes_by_working_set": None} if size == SIZES[-1] else {},
        lambda _size: {"workload": "disc_mlp"},
    ],
)
def test_a_size_that_changes_a_step_or_is_not_counted_is_an_axis(row: Row, work: Any) -> None:
    assert only(answers(of_builder(row, work)), "crossover").status == "bracketed"


def test_over_batch_sizes_an_unused_size_is_only_told(row: Row) -> None:
    rows = [
        trial | {"step_time_s": trial["step_time_s"] * factor, "flops_per_step": batch}
        for batch, factor in ((1, 1e-3), (8, 1.0))
        for trial in of_builder(row, lambda _size: {}, batch_size=batch)
    ]
    answered = answers(rows, study(x_axis="batch_size"))
    assert len(of_kind(answered, "crossover")) == len(SIZES)
    assert only(answered, "idle_size").main


def test_names_of_unused_sizes_are_shown(row: Row) -> None:
    rows = of_builder(row, lambda size: {"size_label": f"net{size}"})
    assert "at net100, net1000 and net10000. Use" in only(answers(rows), "idle_size").statement()

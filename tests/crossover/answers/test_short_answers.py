from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.answers.short_answers import MOST_LINES, crossover_answers, short_answer
from crossover.statistics.comparisons import compare_lines
from crossover.statistics.summary import summarise

PowerLaws = Callable[..., pd.DataFrame]
NO_CELLS = pd.DataFrame(columns=["step_time_s", "device"])


def answers_of(rows: pd.DataFrame, **options: Any) -> list[tuple[str, str]]:
    return crossover_answers(compare_lines(rows, {"disc_depth": "parameters"}, **options), summarise(rows))


def crossover(status: str, **values: Any) -> dict[str, Any]:
    """A row of the crossovers' table."""
    return {
        "pair": "device",
        "cost": "time",
        "device": "cuda",
        "baseline": "cpu",
        "contender": "cuda",
        "baseline_name": "Brand C1",
        "contender_name": "Brand G1",
        "x_axis": "parameters",
        "size_name": "linear layers",
        "status": status,
        "message": "the trials do not tell which side is ahead",
        "trials": 3,
        "roots": [],
        "crossover": None,
        "crossover_low": None,
        "crossover_high": None,
        "bracket_low": 100_000.0,
        "bracket_high": 1_000_000.0,
    } | values


FOUND = {"crossover": 681_234.0, "crossover_low": 612_000.0, "crossover_high": 763_400.0}
OPEN = {"crossover": 681_234.0}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (crossover("bracketed", **FOUND), "GPU from 681 k parameters on (95 %: 612 k to 763 k)"),
        (
            crossover("bracketed", **FOUND | {"crossover_high": None}),
            "GPU from 681 k parameters on (95 %: at least 612 k)",
        ),
        (
            crossover("bracketed", **OPEN),
            "GPU from about 681 k parameters on (between 100 k and 1 million; no interval)",
        ),
        (
            crossover("bracketed", **OPEN, trials=1),
            "GPU from about 681 k parameters on (between 100 k and 1 million; one trial a cell: indicative)",
        ),
        (
            crossover("bracketed", **FOUND, message="it crosses; near 9 they may cross again"),
            "GPU from 681 k parameters on; near 9 they may cross again (95 %: 612 k to 763 k)",
        ),
        (crossover("reversed", **FOUND), "GPU only below 681 k parameters (95 %: 612 k to 763 k)"),
        (crossover("multiple", roots=[1234.0, 56_789.0]), "No single answer: they cross near 1,230, 56.8 k parameters"),
        (
            crossover("edge_tie", crossover_low=612_000.0),
            "Undecided at the largest size measured: they cross not before 612 k parameters, if at all",
        ),
        (
            crossover("edge_tie", crossover_high=612_000.0),
            "Undecided at the smallest size measured: they cross at the latest by 612 k parameters, if at all",
        ),
        (crossover("edge_tie"), "Undecided at the smallest or largest size measured"),
        (
            crossover("undecided"),
            "Undecided: the trials do not tell which side is ahead; more trials, or a quieter machine, may",
        ),
        (
            crossover("undecided", trials=1),
            "Undecided: the trials do not tell which side is ahead; more trials, or a quieter machine, may "
            "(one trial a cell: indicative)",
        ),
        (crossover("incomplete", message="size 8 lacks a side"), "No answer: size 8 lacks a side"),
        (crossover("bracketed", **FOUND, contender="xpu"), "GPU from 681 k parameters on (95 %: 612 k to 763 k)"),
    ],
)
def test_each_ending_in_a_few_words(row: dict[str, Any], said: str) -> None:
    assert short_answer(row, NO_CELLS) == said


def test_several_accelerators_are_told_apart_by_their_names() -> None:
    said = short_answer(crossover("bracketed", **FOUND), NO_CELLS, labelled=True)
    assert said.startswith("GPU (Brand G1) from 681 k")


def test_who_is_ahead_everywhere_how_far_and_by_how_much(power_laws: PowerLaws) -> None:
    """The CPU takes 0.1 ms and 0.1 s; a GPU of 10 us is ahead at both sizes, one of 1 s at none."""
    sizes = {2: 100, 4: 100_000}
    assert answers_of(power_laws(sizes, gpu_s=1e-5, trials=3)) == [
        ("", "GPU at every size measured, from 100 parameters: 10.0 to 10,000 times as fast")
    ]
    assert answers_of(power_laws(sizes, gpu_s=1.0, trials=3)) == [
        ("", "CPU at every size measured, up to 100 k parameters: 10.0 to 10,000 times as fast")
    ]


def test_a_size_that_one_side_lacks_is_not_claimed(power_laws: PowerLaws) -> None:
    """Ahead at 100 and at 1000 parameters; at 10,000 the CPU has no time."""
    rows = power_laws({2: 100, 4: 1000, 6: 10_000}, gpu_s=1e-5, trials=3)
    lost = (rows["size"] == 6) & (rows["device"] == "cpu")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    assert answers_of(rows) == [("", "GPU at every size measured, from 100 parameters: 10.0 to 100 times as fast")]
    lost = (rows["size"] == 2) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    assert answers_of(rows) == [("", "No answer: size 100 beyond the measured range lacks a side")]


def test_lines_that_agree_are_one_answer_and_others_are_named(power_laws: PowerLaws) -> None:
    def line(protocol: str, gpu_s: float) -> pd.DataFrame:
        return power_laws({2: 100, 4: 100_000}, gpu_s=gpu_s, protocol=protocol)

    same = answers_of(pd.concat([line("as_published", 1e-3), line("resident", 1e-3)]))
    assert same == [("", "GPU from about 1,000 parameters on (between 100 and 100 k; one trial a cell: indicative)")]
    assert answers_of(pd.concat([line("as_published", 2e-3), line("resident", 1e-3)])) == [
        ("as published", "GPU from about 2,000 parameters on (between 100 and 100 k; one trial a cell: indicative)"),
        ("resident", "GPU from about 1,000 parameters on (between 100 and 100 k; one trial a cell: indicative)"),
    ]


def test_more_lines_than_a_card_holds_are_summed_up(power_laws: PowerLaws) -> None:
    """Crossovers at 1 ms, 2 ms, ... over 1 us a parameter; a GPU of 1 s never wins."""
    batches = range(1, MOST_LINES + 2)
    lines = [power_laws({2: 100, 4: 100_000}, gpu_s=1e-3 * batch, batch_size=batch) for batch in batches]
    lost = power_laws({2: 100, 4: 100_000}, gpu_s=1.0, batch_size=99)
    assert answers_of(pd.concat([*lines, lost])) == [
        ("5 of 6 lines", "GPU from 1,000 to 5,000 parameters on, by line (one trial a cell: indicative)"),
        ("1 of 6 lines", "CPU at every size measured (one trial a cell: indicative)"),
    ]


def test_without_a_gpu_the_cpus_half_is_told(power_laws: PowerLaws) -> None:
    """1 us a parameter."""
    rows = power_laws({2: 100, 4: 100_000}, trials=3)
    assert answers_of(rows[rows["device"] == "cpu"]) == [
        ("", "No GPU measured (CPU: 100 µs a step at 100, 100 ms a step at 100 k parameters)")
    ]


def test_where_the_cpu_did_not_run_precisions_are_compared(power_laws: PowerLaws) -> None:
    """fp32 takes 1 ms at any size, bf16 as many us as there are parameters: it is ahead below 1000."""
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    bf16 = rows[rows["device"] == "cpu"].assign(device="cuda", precision="bf16")
    own = pd.concat([rows[rows["device"] == "cuda"], bf16])
    ((_, text),) = answers_of(own)
    assert text.startswith("bf16 on the GPU only below 1,000 parameters (95 %: ")


def test_energy_and_money_stand_beside_the_time_by_name(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    assert [words for words, _ in answers_of(rows, price_per_hour={"cpu": 0.8, "cuda": 4.0})] == ["in time", "in money"]
    rows.loc[rows["device"] == "cuda", "energy_per_step_j"] = 1.0
    assert [words for words, _ in answers_of(rows)] == ["in time"]

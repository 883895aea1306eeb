from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.answers.other_crossovers import found_sentence, other_crossovers, price_words, transfers
from crossover.statistics.comparisons import compare_lines
from crossover.tables.frames import records

PowerLaws = Callable[..., pd.DataFrame]
SIZES = {2: 100, 4: 100_000}
INTERVAL = {"crossover_low": 902.0, "crossover_high": 1103.7}


def row_of(power_laws: PowerLaws, **changes: Any) -> dict[str, Any]:
    rows = power_laws(SIZES, trials=3)
    return records(compare_lines(rows, {"disc_depth": "parameters"}))[0] | INTERVAL | changes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "The GPU takes less time than the CPU from about 1,000 (902 to 1,100) parameters on."),
        (
            {"cost": "energy", "crossover_low": None, "crossover_high": None, "trials": 1},
            "The GPU takes less energy than the CPU from about 1,000 parameters on; one trial a cell, indicative only.",
        ),
        (
            {"cost": "money", "baseline": "cpu-half", "status": "reversed"},
            "The GPU costs less than the CPU on half of its cores only below about 1,000 (902 to 1,100) parameters.",
        ),
        (
            {"status": "below_range", "baseline": "cpu-1"},
            "The GPU takes less time than the CPU on 1 core at every size measured on both.",
        ),
        (
            {"crossover_low": None, "message": "it is ahead; near 5 they may cross again"},
            "The GPU takes less time than the CPU from about 1,000 (at most 1,100) parameters on; near 5 they may "
            "cross again.",
        ),
        ({"status": "above_range", "cost": "money"}, "The GPU costs more than the CPU at every size measured on both."),
        (
            {"pair": "precision", "baseline": "fp32", "contender": "amp-fp16"},
            "On the GPU amp-fp16 takes less time than fp32 from about 1,000 (902 to 1,100) parameters on.",
        ),
        (
            {"status": "edge_tie", "crossover_high": None},
            "The GPU and the CPU cross not before 902 parameters, if at all.",
        ),
        (
            {"status": "edge_tie", "crossover_low": None},
            "The GPU and the CPU cross at the latest by 1,100 parameters, if at all.",
        ),
        ({"status": "multiple", "message": "they cross twice"}, "No crossover can be given: they cross twice."),
        ({"status": "incomplete", "message": "a lack"}, "No crossover can be given: a lack."),
    ],
)
def test_each_status_in_a_sentence(power_laws: PowerLaws, changes: dict[str, Any], sentence: str) -> None:
    assert found_sentence(row_of(power_laws, **changes)) == sentence


def test_the_table_holds_what_the_headline_does_not(power_laws: PowerLaws) -> None:
    """Of money only that between devices: on one device it crosses where time does."""
    rows = pd.concat([power_laws(SIZES), power_laws(SIZES, precision="tf32")])
    table = other_crossovers(compare_lines(rows, {"disc_depth": "parameters"}, {"cpu": 1.0, "cuda": 2.0}))
    assert [(row["compared"], row["cost"], row["line"].rpartition(", ")[2]) for row in table] == [
        ("GPU (Brand G1) against CPU", "money", "fp32"),
        ("GPU (Brand G1) against CPU", "money", "tf32"),
        ("tf32 against fp32, on the CPU (Brand C1)", "time", "batch 100"),
        ("tf32 against fp32, on the GPU (Brand G1)", "time", "batch 100"),
    ]
    assert [table[0][column] for column in ("status", "size", "parameters")] == ["bracketed", "2.7", "2,000"]
    assert [table[2][column] for column in ("size", "parameters")] == ["–", "–"]


def both_ways(power_laws: PowerLaws, published_s: float, **interval: float) -> list[dict[str, str]]:
    rows = [
        power_laws(SIZES, gpu_s=gpu_s, protocol=protocol, trials=3)
        for protocol, gpu_s in (("as_published", published_s), ("resident", 1e-3))
    ]
    crossovers = compare_lines(pd.concat(rows), {"disc_depth": "parameters"})
    for column in ("crossover", "crossover_size", "crossover_parameters"):
        for end in ("low", "high"):
            crossovers[f"{column}_{end}"] = crossovers[column] * interval[end] if interval else None
    return transfers(crossovers)


def test_transfers_are_told_by_both_crossovers(power_laws: PowerLaws) -> None:
    """2 ms with transfers and 1 ms without, so twice the parameters."""
    (found,) = both_ways(power_laws, 2e-3)
    assert found["line"] == "batch 100"
    assert found["moved"] == "2.7 linear layers, 2,000 parameters"
    assert found["resident"] == "2.52 linear layers, 1,000 parameters"
    assert (
        found["difference"]
        == "2.00 times as many parameters with transfers; without both intervals, so indicative only."
    )
    (apart,) = both_ways(power_laws, 2e-3, low=0.8, high=1.25)
    assert apart["moved"] == "2.7 (2.16 to 3.38) linear layers, 2,000 (1,600 to 2,500) parameters"
    assert apart["difference"].endswith("; the 95 % intervals do not overlap.")
    (close,) = both_ways(power_laws, 2e-3, low=0.6, high=1.25)
    assert close["difference"].endswith("; the 95 % intervals overlap, so this may be chance.")


def test_without_both_crossovers_there_is_no_difference(power_laws: PowerLaws) -> None:
    (found,) = both_ways(power_laws, 10.0)
    assert found["moved"] == "The GPU takes more time than the CPU at every size measured on both."
    assert found["difference"] == "Not given: not both have a crossover."
    rows = power_laws(SIZES)
    assert transfers(compare_lines(rows, {"disc_depth": "size"})) == []
    both = pd.concat([rows, power_laws(SIZES, protocol="as_published")])
    assert transfers(compare_lines(both[both["device"] == "cpu"], {"disc_depth": "size"})) == []


def test_prices_are_named_with_their_currency() -> None:
    assert price_words({"cpu": 0.8, "cuda": 4}, "USD") == (
        "0.8 USD an hour without an accelerator, 4 USD an hour with one (cuda)"
    )
    assert price_words({"cpu": 0.8}, None) == "0.8 an hour without an accelerator"
    assert price_words(None, "USD") is price_words({}, None) is None

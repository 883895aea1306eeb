from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from crossover.checks.beside import Timed, beside_table, pair_of, turned
from crossover.errors import UserError


def timed(gpu: str, step_time_s: float, seconds: float, beside: int) -> Timed:
    facts = {"workload": "disc_mlp", "size": 10, "device_uuid": gpu}
    return Timed({**facts, "step_time_s": step_time_s, "leased_beside": beside}, seconds)


def test_each_gpu_comes_first_in_turn() -> None:
    assert [turned("abc", pair) for pair in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]


def test_a_pair_is_of_one_gpu_and_the_seconds_are_of_all() -> None:
    at_once = [timed("GPU-1", 1.1, 5, 2), timed("GPU-2", 1.2, 6, 2), timed("GPU-3", 1.3, 7, 2)]
    assert pair_of(timed("GPU-2", 1.0, 4, 0), at_once) == {
        "cell": "disc_mlp 10",
        "gpu": "GPU-2",
        "alone_s": 1.0,
        "beside_s": 1.2,
        "trial_alone_s": 4,
        "trial_beside_s": 6,
    }


@pytest.mark.parametrize(
    ("alone", "at_once"),
    [
        (timed("GPU-1", 1, 1, 1), [timed("GPU-1", 1, 1, 1), timed("GPU-2", 1, 1, 1)]),
        (timed("GPU-1", 1, 1, 0), [timed("GPU-1", 1, 1, 0), timed("GPU-2", 1, 1, 0)]),
        (timed("GPU-1", 1, 1, 0), [timed("GPU-1", 1, 1, 2), timed("GPU-2", 1, 1, 2)]),
        (timed("GPU-1", 1, 1, 0), [timed("GPU-2", 1, 1, 1), timed("GPU-3", 1, 1, 1)]),
    ],
    ids=["not alone", "one after the other", "a third", "its GPU was taken"],
)
def test_a_pair_that_others_disturbed_is_none(alone: Timed, at_once: list[Timed]) -> None:
    with pytest.raises(UserError, match=r"^GPU-1: .*other trials are at work on this machine"):
        pair_of(alone, at_once)


def samples(ratios: list[float], **facts: Any) -> pd.DataFrame:
    times = {"alone_s": 2.0, "beside_s": [2.0 * ratio for ratio in ratios]}
    return pd.DataFrame({"cell": "a 1", "gpus": 4, "trial_alone_s": 4.0, "trial_beside_s": 4.4, **times, **facts})


def test_the_table_has_ratio_spread_and_throughput_of_each_cell_and_of_all() -> None:
    table = beside_table(pd.concat([samples([1.0, 1.0, 1.21, 1.21]), samples([0.9, 1.0, 1.0, 1.1], cell="b 2")]))
    assert table["cell"].tolist() == ["a 1", "b 2", "all"]
    first, second, both = table.to_dict("records")
    assert (first["ratio"], first["alone_s"], first["pairs"], both["pairs"]) == (pytest.approx(1.1), 2.0, 4, 8)
    spread = 3.182446 * math.log(1.1) * math.sqrt(4 / 3) / 2  # t of 3 degrees of freedom; four logs, half apart
    assert (first["low"], first["high"]) == pytest.approx((1.1 / math.exp(spread), 1.1 * math.exp(spread)))
    assert [first[name] for name in ("smallest", "largest")] == [1.0, 1.21]
    assert [both[name] for name in ("smallest", "lower_quartile", "upper_quartile", "largest")] == pytest.approx(
        [0.9, 1.0, 1.1275, 1.21]
    )
    assert (second["trials_per_s_alone"], second["trials_per_s_beside"]) == pytest.approx((0.25, 4 / 4.4))
    assert second["throughput_ratio"] == pytest.approx(4 / 1.1)


@pytest.mark.parametrize(
    ("ratios", "within"), [([0.98, 1.0, 1.03], True), ([1.09, 1.1, 1.11], False), ([0.89, 0.9, 0.91], False)]
)
def test_within_is_to_hold_one(ratios: list[float], within: bool) -> None:
    assert beside_table(samples(ratios))["within"].tolist() == [within, within]

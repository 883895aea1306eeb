from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.statistics.loading import loading_answers, short_loading

Row = Callable[..., dict[str, Any]]

RUN = {"epochs": 20, "samples": 60000}


def table(row: Row, *times: tuple[str, float], **values: Any) -> pd.DataFrame:
    """Trials of a protocol and a step time each, numbered in their order."""
    return pd.DataFrame(
        [
            row(**{"device": "cuda", "protocol": protocol, "step_time_s": seconds, "trial": trial} | values)
            for trial, (protocol, seconds) in enumerate(times, 1)
        ]
    )


def test_the_share_is_of_a_step_and_the_time_of_an_epoch(row: Row) -> None:
    """1 - 2.4 / 20 = 88 %; an epoch of 60,000 samples is 118 steps of at most 512: 2.36 s, and 0.2832 s."""
    steps = [("as_published", 0.02), ("as_published", 0.02), ("resident", 0.0024), ("resident", 0.0024)]
    assert loading_answers(table(row, *steps, batch_size=512), RUN) == [
        "On the GPU (Brand G1) the loader, not the network, bounds the run: it takes 88 % of a step (95 % intervals "
        "from 88 % to 88 %). An epoch takes 2.36 s with the loader, and 283 ms with the data on the device."
    ]


def test_several_cells_give_a_range(row: Row) -> None:
    """1 - 2 / 20 = 90 % and 1 - 5 / 20 = 75 %; without a run given by its epochs the times are of a step."""
    first = table(row, *[("as_published", 0.02), ("resident", 0.002)] * 2)
    second = table(row, *[("as_published", 0.02), ("resident", 0.005)] * 2, precision="amp-fp16")
    (text,) = loading_answers(pd.concat([first, second]), 2360)
    assert "it takes 75 % to 90 % of a step (95 % intervals from 75 % to 90 %)" in text
    assert text.endswith("A step takes 20.0 ms with the loader, and 2.00 ms to 5.00 ms with the data on the device.")


def test_what_the_intervals_leave_open_is_not_claimed(row: Row) -> None:
    """Trials a factor of 4 apart, two of them: Welch's interval reaches far over a half, and over nothing."""
    wide = table(row, ("as_published", 0.01), ("as_published", 0.04), ("resident", 0.005), ("resident", 0.005))
    (text,) = loading_answers(wide, None)
    assert "it is not certain that the loader slows every step down: it takes 75 % of a step" in text
    assert "bounds" not in text
    third = table(row, *[("as_published", 0.03), ("resident", 0.02)] * 2)
    (text,) = loading_answers(third, None)
    assert "the loader takes 33 % of a step" in text
    assert "bounds" not in text


def test_one_trial_is_indicative_and_bounds_nothing(row: Row) -> None:
    (text,) = loading_answers(table(row, ("as_published", 0.02), ("resident", 0.002)), None)
    assert text.startswith("On the GPU (Brand G1) the loader takes 90 % of a step. A step takes")
    assert text.endswith("One trial a cell: indicative only.")


def test_each_device_has_a_sentence_and_a_cell_without_its_pair_none(row: Row) -> None:
    both = [("as_published", 0.02), ("resident", 0.002)] * 2
    rows = pd.concat([table(row, *both), table(row, *both, device="cpu", device_name="Brand C1")])
    assert [text[:10] for text in loading_answers(rows, None)] == ["On the CPU", "On the GPU"]
    lost = rows["device"].eq("cuda") & rows["protocol"].eq("resident")
    assert len(loading_answers(rows.assign(step_time_s=rows["step_time_s"].mask(lost)), None)) == 1
    assert loading_answers(rows[rows["protocol"] == "resident"], None) == []
    other = rows.assign(batch_size=rows["batch_size"].where(rows["protocol"] == "resident", 7))
    assert loading_answers(other, None) == []


def test_a_pair_of_one_trial_leaves_the_others_their_intervals(row: Row) -> None:
    """Two of 90 % twice, exactly; one of 1 - 5 / 20 = 75 % once: nothing certain is said of all three."""
    twice = [
        table(row, *[("as_published", 0.02), ("resident", 0.002)] * 2, precision=name) for name in ("fp32", "bf16")
    ]
    once = table(row, ("as_published", 0.02), ("resident", 0.005), precision="fp16")
    (text,) = loading_answers(pd.concat([*twice, once]), None)
    assert "the loader takes 75 % to 90 % of a step (95 % intervals from 90 % to 90 %)" in text
    assert text.endswith("The intervals leave out 1 of 3 cells, which have one trial only.")
    assert "indicative" not in text


def test_a_resident_step_that_is_surely_slower_is_said_to_be(row: Row) -> None:
    """24 for 20 ms: 20 % longer; beside a cell in which the loader takes a half, from -20 % to 50 %."""
    slower = table(row, *[("as_published", 0.02), ("resident", 0.024)] * 2)
    (text,) = loading_answers(slower, None)
    assert text.startswith(
        "On the GPU (Brand G1) the loader does not slow a step down: on resident data a step takes 20 % longer (95 % "
        "intervals from 20 % to 20 %). A step takes 20.0 ms with the loader"
    )
    half = table(row, *[("as_published", 0.02), ("resident", 0.01)] * 2, precision="bf16")
    (text,) = loading_answers(pd.concat([slower, half]), None)
    assert "the loader does not slow every step down: it takes -20 % to 50 % of a step (95 % intervals" in text


def test_a_small_share_is_not_nothing(row: Row) -> None:
    """1 - 19.96 / 20 = 0.2 %."""
    (text,) = loading_answers(table(row, *[("as_published", 0.02), ("resident", 0.01996)] * 2), None)
    assert "the loader takes 0.2 % of a step (95 % intervals from 0.2 % to 0.2 %)" in text


def test_the_share_in_a_few_words(row: Row) -> None:
    """1 - 2 / 20 = 90 % and 1 - 5 / 20 = 75 %; 24 for 20 ms is no loss."""
    twice = table(row, *[("as_published", 0.02), ("resident", 0.002)] * 2)
    once = table(row, ("as_published", 0.02), ("resident", 0.005), precision="fp16")
    slower = table(row, *[("as_published", 0.02), ("resident", 0.024)] * 2)
    assert short_loading(twice) == ["Loading takes 90 % of a step on the GPU (95 %: 90 % to 90 %)"]
    assert short_loading(once) == ["Loading takes 75 % of a step on the GPU (one trial a cell: indicative)"]
    assert short_loading(pd.concat([twice, once])) == [
        "Loading takes 75 % to 90 % of a step on the GPU "
        "(95 %: 90 % to 90 %, without 1 of 2 cells, which have one trial)"
    ]
    assert short_loading(slower) == ["Loading does not slow a step down on the GPU"]
    assert short_loading(twice[twice["protocol"] == "resident"]) == []

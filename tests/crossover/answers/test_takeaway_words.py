"""The words that takeaways share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crossover.answers.takeaway_words import at_place, between, indicative, on_device, resting_on, where, who
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def test_an_interval_is_given_only_where_both_ends_are_known() -> None:
    assert between(1, 2.5) == " (95 %: 1.00 to 2.50)"
    assert between(None, 2.5) == between(1, float("nan")) == ""


@pytest.mark.parametrize(("trials", "words"), [(1, "It is so. One trial a cell: indicative."), (2, "It is so.")])
def test_one_trial_is_indicative(trials: int, words: str) -> None:
    assert indicative("It is so", trials) == words
    assert indicative("", trials) == ""


def test_where_and_on_what(row: Row, view_of: Views) -> None:
    cell = row(device="cuda", size=2000, precision="bf16", protocol="resident") | {"x": 2000.0}
    view = view_of([cell | {"x": None}])
    assert at_place(view, 2000, "neurons") == "2,000 neurons"
    assert who(cell, ["precision", "size"]) == "bf16 on the GPU"
    assert on_device(cell, ["precision", "protocol"]) == "on the GPU (resident, bf16)"
    assert where(view, cell, []) == "at 2,000 linear layers on the GPU"
    assert at_place(view_of([row()], x_axis="parameters"), 680_000, "neurons") == "680 k parameters"


def test_flags_are_named_each_once_and_of_many_the_first() -> None:
    assert resting_on([[], []]) == ""
    assert resting_on([["drift"], []]) == " It rests on a cell with times that drift."
    assert resting_on([["drift"], ["drift"]]) == " It rests on cells with times that drift."
    many = [["drift", "warmup_capped"], ["throttled", "diverged", "quota"]]
    first = "with times that drift, with a warm-up that was cut short, on a GPU that clocked down"
    assert resting_on([many[0], many[1][:2]]) == f" It rests on cells {first} and with 1 other flag."
    assert resting_on(many) == f" It rests on cells {first} and with 2 other flags."

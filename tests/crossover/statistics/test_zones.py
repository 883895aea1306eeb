"""Zones of advice, against arithmetic on made-up lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from report_pages import study, tables_of

Row = Callable[..., dict[str, Any]]
MODELS = {1: 100, 2: 1000, 3: 10_000, 4: 100_000, 5: 1_000_000}
"""Sizes with their parameters."""


@pytest.fixture
def line(row: Row) -> Callable[..., list[dict[str, Any]]]:
    """A line of a study: a CPU of 1 us a parameter beside a GPU that takes what `gpu_s` says."""

    def build(name: str, gpu_s: float | None, sizes: tuple[int, ...] = (1, 2, 3, 4), trials: int = 1) -> Any:
        times = {"cpu": lambda size: 1e-6 * MODELS[size], "cuda": lambda _: gpu_s}
        return [
            row(study=name, device=device, size=size, parameters=MODELS[size], trial=trial)
            | {"step_time_s": time(size) * 1.01 ** (trial - 2)}
            for device, time in times.items()
            if time(1) is not None
            for size in sizes
            for trial in range(1, trials + 1)
        ]

    return build


def zone(*lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The one row of table `zones`, what is missing left out."""
    rows = pd.DataFrame([row for own in lines for row in own])
    found = tables_of(rows, {name: study(x_axis="parameters") for name in rows["study"].unique()}).zones
    assert len(found) == 1
    return {
        name: value for name, value in found.iloc[0].items() if not (pd.api.types.is_scalar(value) and pd.isna(value))
    }


def test_between_the_brackets_of_all_lines_neither_is_named(line: Any) -> None:
    # One crosses at 500 parameters, between 100 and 1,000; the other at 5,000, between 1,000 and 10,000.
    found = zone(line("a", 5e-4), line("b", 5e-3))
    assert (found["smallest"], found["cpu_until"], found["gpu_from"], found["largest"]) == (100, 100, 10_000, 100_000)
    assert (found["cpu_ratio_low"], found["cpu_ratio_high"]) == pytest.approx((5, 50))
    assert (found["between_ratio_low"], found["between_ratio_high"]) == pytest.approx((0.2, 2))
    assert (found["gpu_ratio_low"], found["gpu_ratio_high"]) == pytest.approx((2, 200))
    assert (list(found["studies"]), found["lines"], found["trials"]) == (["a", "b"], 2, 1)
    assert (list(found["precisions"]), list(found["batch_sizes"])) == (["fp32"], [100])


def test_with_several_trials_the_interval_is_between(line: Any) -> None:
    found = zone(line("a", 5e-4, trials=3))
    assert 100 < found["cpu_until"] < 500 < found["gpu_from"] < 1000
    assert "between_ratio_low" not in found


@pytest.mark.parametrize(("gpu_s", "until", "since"), [(1e-5, None, 100), (1.0, 100_000, None)])
def test_one_side_may_be_ahead_everywhere(line: Any, gpu_s: float, until: Any, since: Any) -> None:
    found = zone(line("a", gpu_s))
    assert (found.get("cpu_until"), found.get("gpu_from")) == (until, since)


def test_one_trial_says_nothing_where_its_lead_does_not_count(line: Any) -> None:
    """The GPU takes 0.9 ms: at 1,000 parameters it is 1.11 times as fast as the CPU."""
    found = zone(line("a", 9e-4))
    assert (found["cpu_until"], found["gpu_from"]) == (100, 10_000)
    rows = line("a", 9e-4)
    for one in rows:  # and where it is ahead at 10,000 parameters, behind at 100,000
        if one["device"] == "cuda" and one["size"] == 4:
            one["step_time_s"] = 0.5
    assert (zone(rows)["cpu_until"], zone(rows).get("gpu_from")) == (100, None)


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize(
    ("ratios", "end", "between"),
    [
        ((0.2, 0.3, 0.5, 1.0), "cpu_until", (10_000, 100_000)),
        ((1.0, 2, 3, 4), "gpu_from", (100, 1000)),
        ((4, 3, 2, 1.0), None, None),  # the GPU is ahead up to 10,000 parameters, and beyond nobody knows
        ((1.0, 0.5, 0.3, 0.2), None, None),
    ],
)
def test_of_a_line_with_a_tie_the_side_ahead_has_the_zone(
    line: Any, ratios: tuple[float, ...], end: str | None, between: Any, trials: int
) -> None:
    rows = line("a", 1.0, trials=trials)
    for one in rows:
        if one["device"] == "cuda":
            one["step_time_s"] *= 1e-6 * MODELS[one["size"]] / ratios[one["size"] - 1]
    found = zone(rows)
    assert {"cpu_until", "gpu_from"} & found.keys() == ({end} if end else set())
    if end:
        assert between[0] <= found[end] <= between[1]
        assert found[f"{end[:3]}_ratio_low"] > 1


def test_a_tie_at_an_end_leaves_the_other_end(line: Any) -> None:
    """The GPU takes 9 ms, and the CPU 10 ms at its largest size, give or take 1 %: they cross there or beyond."""
    rows = line("a", 9.99e-3, sizes=(1, 2, 3), trials=3)
    found = zone(rows)
    assert found["cpu_until"] == pytest.approx(1000)
    assert "gpu_from" not in found


def test_a_line_speaks_for_its_own_sizes_alone(line: Any) -> None:
    # The first has the CPU ahead up to 1,000, where it ends; the second the GPU from 10,000, where it begins.
    found = zone(line("a", 1.0, sizes=(1, 2)), line("b", 1e-5, sizes=(3, 4)))
    assert (found["cpu_until"], found["gpu_from"]) == pytest.approx((1000, 10_000))


def test_lines_that_contradict_each_other_leave_no_zone(line: Any) -> None:
    found = zone(line("a", 1.0), line("b", 1e-5))
    assert "cpu_until" not in found
    assert "gpu_from" not in found
    assert (found["between_ratio_low"], found["between_ratio_high"]) == pytest.approx((1e-4, 1e4))


@pytest.mark.parametrize("trials", [1, 3])
def test_a_line_that_crosses_more_than_once_speaks_for_its_ends(line: Any, trials: int) -> None:
    """The CPU is ahead at 100 parameters, the GPU at 1,000, the CPU at 10,000, the GPU from 100,000 on."""
    rows = line("a", 5e-4, sizes=(1, 2, 3, 4, 5), trials=trials)
    for one in rows:
        if one["device"] == "cuda" and one["size"] == 3:
            one["step_time_s"] *= 40
    found = zone(rows)
    assert (found["cpu_until"], found["gpu_from"]) == (100, 100_000)
    assert found["between_ratio_low"] == pytest.approx(0.5, rel=0.05)
    assert found["between_ratio_high"] == pytest.approx(2, rel=0.05)


def test_without_an_accelerator_there_is_none(line: Any) -> None:
    rows = pd.DataFrame(line("a", None))
    assert tables_of(rows).zones.empty

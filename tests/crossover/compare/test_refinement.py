"""Sizes and trials added by refinement, for a CPU whose time grows with size and sides with a constant time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossover_curve import advantages_of_table
from crossover.compare.intervals import SampleMean
from crossover.compare.pairings import Pairing, Prediction, with_costs
from crossover.compare.refinement import PairPlan, Request, all_trials, plan_refinement, plan_stage
from crossover.config.studies import PRESETS, Refinement
from crossover.config.words import series_axes

Row = Callable[..., dict[str, Any]]
Rows = Callable[..., list[dict[str, Any]]]
SIZES = (10, 30, 100, 400, 1600)


@pytest.mark.parametrize(
    ("cpu", "offered", "middle"),
    [
        ({10: 0.1, 100: 0.5, 200: 0.9, 400: 3.0}, {}, 283),  # 282.8
        ({100: 3.0, 400: 0.5}, {}, 200),  # reversed
        ({1: 0.5, 3: 2.0}, {}, 2),  # 1.73; of 1 and 2, only 2 lies between the ends
        ({64: 0.5, 512: 2.0}, {"granularity": 64}, 192),  # 181.02: 192 is nearer than 128
        ({18: 0.5, 152: 2.0}, {"sizes": (18, 34, 50, 101, 152)}, 50),  # 52.3
        ({100: 0.5, 200: 1.0, 400: 2.0}, {"sizes": (150, 200)}, 150),  # a tie at 200, which was measured
    ],
)
def test_a_bracket_is_halved_on_the_log_axis_by_a_size_that_the_workload_can_build(
    cpu: Mapping[int, float], offered: dict[str, Any], middle: int | None
) -> None:
    """The size nearest to the geometric mean of the bracket; the GPU takes 1 s."""
    table = pd.DataFrame(
        [
            {"size": size, "side": side, "trial": trial, "step_time_s": time}
            for size, cpu_s in cpu.items()
            for side, time in (("cpu", cpu_s), ("gpu", 1.0))
            for trial in (1, 2)
        ]
    )
    crossover = crossover_of(advantages_of_table(table, "cpu", "gpu"))
    expected = PairPlan("no_size_left") if middle is None else PairPlan("bisect", sizes=(middle,))
    assert plan_refinement(crossover, set(cpu), 1, 3, Refinement(), **offered) == expected


@pytest.mark.parametrize(
    ("status", "stage", "decision"),
    [("below_range", 1, "no_bracket"), ("multiple", 3, "decided"), ("undecided", 4, "no_bracket")],
)
def test_without_a_single_bracket_nothing_is_planned(status: str, stage: int, decision: str) -> None:
    assert plan_refinement(Crossover(status), {100, 400}, stage, 8, Refinement()) == PairPlan(decision)


@pytest.mark.parametrize(
    ("unsure", "near"), [((), ()), ((10,), (10, 30)), ((50, 90), (30, 50, 90, 200)), ((800.0,), (200, 800))]
)
def test_without_a_bracket_undecided_sizes_and_their_neighbours_get_the_trials_of_the_run(
    unsure: tuple[float, ...], near: tuple[int, ...]
) -> None:
    crossover = Crossover("edge_tie", unsure=unsure)
    expected = PairPlan("add_trials", trials=dict.fromkeys(near, 8)) if near else PairPlan("decided")
    assert plan_refinement(crossover, {10, 30, 50, 90, 200, 800}, 3, 8, Refinement()) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (90.0, 359.0, PairPlan("bisect", sizes=(200,))),
        (90.0, 361.0, PairPlan("noisy")),  # wider than the bracket, whose ends differ by a factor of four
        (150.0, 250.0, PairPlan("bisect", sizes=(200,))),
        (None, None, PairPlan("bisect", sizes=(200,))),  # single trials
    ],
)
def test_a_bracket_that_is_narrower_than_the_interval_is_not_halved(
    low: float | None, high: float | None, expected: PairPlan
) -> None:
    crossover = Crossover("bracketed", size=200.0, low=low, high=high, bracket=(100.0, 400.0), roots=(200.0,))
    assert plan_refinement(crossover, {100, 400}, 2, 3, Refinement()) == expected
    assert plan_refinement(crossover, {100, 400}, 3, 8, Refinement()).decision == "add_trials"


MORE = PairPlan("add_trials", trials={100: 8, 400: 8})


@pytest.mark.parametrize(
    ("low", "high", "stage", "trials", "refinement", "expected"),
    [
        # 200 ± 10 % is a width of 40; an interval with an open end is not narrow.
        (181.0, 220.0, 3, 8, Refinement(), PairPlan("narrow_enough")),
        (179.0, 221.0, 3, 8, Refinement(), MORE),
        (None, 220.0, 3, 8, Refinement(), MORE),
        (150.0, 250.0, 3, 8, Refinement(target_width=0.24), MORE),
        (None, None, 1, 3, PRESETS["quick"].refinement, PairPlan("add_trials", trials={100: 2, 400: 2})),
        (None, None, 2, 3, PRESETS["quick"].refinement, PairPlan("add_trials", trials={100: 3, 400: 3})),
        (150.0, 250.0, 4, 8, Refinement(), PairPlan("add_trials", trials={100: 12, 400: 12})),
        (
            150.0,
            250.0,
            3,
            4,
            Refinement(first_trials=4),
            PairPlan("add_trials", trials={100: 8, 400: 8}),
        ),  # `first_trials` are all trials of the run
        (150.0, 250.0, 3, 4, Refinement(extra_trials=0, first_trials=4), PairPlan("done")),
    ],
)
def test_the_last_stages_add_trials_where_the_interval_is_wide(
    low: float | None, high: float | None, stage: int, trials: int, refinement: Refinement, expected: PairPlan
) -> None:
    crossover = Crossover("bracketed", size=200.0, low=low, high=high, bracket=(100.0, 400.0), roots=(200.0,))
    assert plan_refinement(crossover, {10, 100, 400}, stage, trials, refinement) == expected


@pytest.mark.parametrize(
    ("low", "high", "stage", "refinement", "expected"),
    [
        (100.0, 400.0, 2, Refinement(), PairPlan("bisect", sizes=(200,))),
        (100.0, 400.0, 3, Refinement(), PairPlan("bisect", sizes=(200,))),
        (100.0, 400.0, 4, Refinement(), PairPlan("bisect", sizes=(200,))),
        (100.0, 400.0, 5, Refinement(), PairPlan("done")),
        (100.0, 400.0, 3, Refinement(target_width=0.8), PairPlan("narrow_enough")),
        (99.0, 400.0, 3, Refinement(), MORE),  # an end is not significant
        (100.0, 400.0, 1, Refinement(bisections=0), MORE),
    ],
)
def test_at_a_stair_the_last_stages_halve_the_bracket(
    low: float, high: float, stage: int, refinement: Refinement, expected: PairPlan
) -> None:
    """The interval is the whole bracket, so further trials at its ends could not narrow it."""
    crossover = Crossover("bracketed", size=200.0, low=low, high=high, bracket=(100.0, 400.0), roots=(200.0,))
    assert plan_refinement(crossover, {10, 100, 400}, stage, 8, refinement) == expected


@pytest.mark.parametrize(
    ("low", "stage", "expected"),
    [
        (150.0, 2, PairPlan("add_trials", trials={100: 12, 400: 12})),
        (150.0, 3, PairPlan("add_trials", trials={100: 24, 400: 24})),
        (150.0, 4, PairPlan("add_trials", trials={100: 48, 400: 48})),
        (199.0, 4, PairPlan("narrow_enough")),
        (150.0, 5, PairPlan("done")),
    ],
)
def test_doublings_add_as_many_trials_as_there_are_at_a_wide_interval(
    low: float, stage: int, expected: PairPlan
) -> None:
    crossover = Crossover("bracketed", size=200.0, low=low, high=201.0, bracket=(100.0, 400.0), roots=(200.0,))
    assert plan_refinement(crossover, {10, 100, 400}, stage, 8, Refinement(bisections=0, doublings=2)) == expected


def test_a_bracket_without_a_size_inside_gets_trials_at_a_stair() -> None:
    crossover = Crossover("bracketed", size=200.0, low=100.0, high=400.0, bracket=(100.0, 400.0), roots=(200.0,))
    assert plan_refinement(crossover, {100, 400}, 3, 8, Refinement(), sizes=(100, 400)) == MORE


@pytest.mark.parametrize(("first", "stage", "decision"), [(1, 1, "add_trials"), (1, 2, "decided"), (2, 1, "decided")])
def test_if_single_trials_cross_several_times_all_sizes_get_trials(first: int, stage: int, decision: str) -> None:
    crossover = Crossover("multiple", roots=(20.0, 40.0, 60.0))
    plan = plan_refinement(crossover, {10, 30, 50, 90}, stage, 3, Refinement(bisections=0, first_trials=first))
    assert plan == PairPlan(decision, trials=dict.fromkeys((10, 30, 50, 90), 2) if decision == "add_trials" else {})


@pytest.fixture
def rows(row: Row) -> Rows:
    """Build rows of sides, whose odd trials are 2 % slower; a side with time None takes 1 us x size."""

    def build(
        sizes: Sequence[int], times: Mapping[str, float | None], trials: int = 2, **axes: Any
    ) -> list[dict[str, Any]]:
        plain = {"study": "mine", "workload": "linear_stack"}
        return [
            row(
                size=size,
                device=side.split()[0],
                precision=side.split()[-1] if " " in side else "fp32",
                trial=trial,
                step_time_s=(time or 1e-6 * size) * (1 + 0.02 * (trial % 2)),
                **(plain | axes),
            )
            for size in sizes
            for side, time in times.items()
            for trial in range(1, trials + 1)
        ]

    return build


def planned(
    table: Sequence[Mapping[str, Any]], *by: str, stage: int = 1, pairs: Sequence[str] = ("device",)
) -> dict[tuple[Any, ...], list[int]]:
    refinements = {"mine": Refinement(1, 0.02, 0, tuple(pairs), first_trials=2)}
    cells = all_trials(plan_stage(pd.DataFrame(table), stage, refinements, {"mine": "size"}, {"mine": 4}))
    return {tuple(getattr(cell, axis) for axis in by): numbers for cell, numbers in cells.items()}


@pytest.mark.parametrize(("axis", "values"), [("protocol", ("resident", "as_published")), ("machine", ("a", "b"))])
def test_each_series_has_its_own_size_on_both_sides(rows: Rows, axis: str, values: tuple[str, str]) -> None:
    """Crossings at 100 and 1000: sqrt(50 x 400) is 141.4, and sqrt(400 x 3200) is 1131.4."""
    times = dict(zip(values, (1e-4, 1e-3), strict=True))
    table = [
        trial
        for value, gpu_s in times.items()
        for trial in rows((50, 400, 3200), {"cpu": None, "cuda": gpu_s}, **{axis: value})
    ]
    assert planned(table, axis, "size", "device") == {
        (value, size, device): [1, 2]
        for value, size in zip(values, (141, 1131), strict=True)
        for device in ("cpu", "cuda")
    }


def test_a_size_that_a_model_does_not_use_is_not_refined(rows: Rows) -> None:
    work = {"flops_per_step": 3, "products_bytes_by_working_set": [1.0], "others_bytes_by_working_set": [2.0]}
    table = rows((50, 400), {"cpu": None, "cuda": 1e-4}, workload="model", parameters=5, **work)
    assert planned(table, "size", "device") == {}
    assert planned([trial | {"flops_per_step": trial["size"]} for trial in table], "size", "device")


def test_the_last_stage_numbers_its_trials_after_the_first_ones(rows: Rows) -> None:
    table = rows((50, 141, 400), {"cpu": None, "cuda": 1e-4})
    expected = {(size, device): [3, 4] for size in (141, 50) for device in ("cpu", "cuda")}
    assert planned(table, "size", "device", stage=2) == expected


def test_the_target_width_is_measured_on_the_x_axis(rows: Rows) -> None:
    """An interval of ±1.5 % in size is ±4.5 % in parameters, which grow with the cube of the size."""
    wide = {"mine": Refinement(bisections=1, target_width=0.03)}
    table = pd.DataFrame(rows((50, 100, 103, 400), {"cpu": None, "cuda": 1.01e-4}, trials=5))
    table = table.assign(parameters=table["size"] ** 3)
    decisions = [
        plan_stage(table, 2, wide, {"mine": over}, {"mine": 8})[0].why["decision"] for over in ("size", "parameters")
    ]
    assert decisions == ["narrow_enough", "add_trials"]


def test_each_device_gets_its_own_size_for_two_precisions(rows: Rows) -> None:
    """Crossings at 1000 on the CPU and at 100 on the GPU; the CPU on one core, also at 100, is not refined."""
    times = {"cpu": None, "cpu amp-bf16": 1e-3, "cpu-1": None, "cpu-1 amp-bf16": 1e-4, "cuda": None}
    table = rows((50, 400, 3200), times | {"cuda amp-bf16": 1e-4})
    assert planned(table, "device", "precision", "size", pairs=["precision"]) == {
        (device, precision, size): [1, 2]
        for device, size in (("cpu", 1131), ("cuda", 141))
        for precision in ("fp32", "amp-bf16")
    }
    # Between devices there is no crossing: in amp-bf16 the CPU takes 1 ms and the GPU 0.1 ms, in fp32 both the same.
    assert planned(table, "size", pairs=["device"]) == planned(table, "size", pairs=["execution"]) == {}


def test_sizes_added_for_one_precision_are_not_missing_for_another(rows: Rows) -> None:
    """GPU only: amp-bf16 crosses at 100, fp64 at 1000; each of the added sizes was measured for one of them."""
    times = {"cuda": None, "cuda amp-bf16": 1e-4, "cuda fp64": 1e-3}
    table = rows((50, 400, 3200), times)
    table += rows((141,), {"cuda": None, "cuda amp-bf16": 1e-4}) + rows((1131,), {"cuda": None, "cuda fp64": 1e-3})
    assert planned(table, "precision", "size", stage=2, pairs=["precision"]) == {
        (precision, size): [3, 4]
        for contender, sizes in (("amp-bf16", (50, 141)), ("fp64", (400, 1131)))
        for size in sizes
        for precision in ("fp32", contender)
    }


@pytest.mark.parametrize(
    ("deviation", "decision", "trials"),
    [(0.01, "add_trials", {100: 3, 400: 3}), (0.3, "narrow_enough", {})],
)
def test_a_predicted_crossover_gets_trials_of_this_machine_while_they_can_narrow_it(
    rows: Rows, deviation: float, decision: str, trials: dict[int, int]
) -> None:
    """The GPU of h100 takes 200 us; single trials of this CPU, which takes 1 us x size, have a spread of 10 %."""
    table = pd.DataFrame(rows(SIZES, {"cpu": None}, trials=1))
    there = pd.DataFrame(rows(SIZES, {"cuda": 200e-6}, trials=3)).assign(machine="h100")
    both = with_costs(pd.concat([table, there]).assign(side=lambda trials: trials["device"]), None)
    axes = [axis for axis in series_axes("size") if axis != "machine"]
    series = {**dict(zip(axes, table[axes].iloc[0], strict=True)), "machine": "h100"}
    prediction = Prediction(1.0, dict.fromkeys(SIZES, deviation), {}, (100, 200), SampleMean(0.0, 0.1**2, 40))
    pairing = Pairing("reference", series, "cuda", "cpu", "cuda", both, "size", "here", prediction)
    refinement = Refinement(bisections=0, extra_trials=0, first_trials=1, pairs=("reference",))

    def planned(stage: int, refinement: Refinement) -> Request:
        (request,) = plan_stage(table, stage, {"mine": refinement}, {"mine": "size"}, {"mine": 3}, predicted=[pairing])
        return request

    request = planned(2, refinement)
    assert request.why["decision"] == decision
    assert {cell.size: max(numbers) for cell, numbers in request.trials.items()} == trials
    assert {(cell.machine, cell.device) for cell in request.trials} <= {("here", "cpu")}
    assert not planned(3, replace(refinement, extra_trials=8)).trials
    # A size that the reference measured halves the bracket.
    (cell,) = planned(1, replace(refinement, bisections=1)).trials
    assert (cell.machine, cell.device, cell.size) == ("here", "cpu", 200)

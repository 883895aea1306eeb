"""What refinement adds, for a CPU whose time grows with the size beside sides that always take the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.config.studies import Refinement
from crossover.statistics.crossover import Crossover, estimate_crossover
from crossover.statistics.refinement import Plan, plan_refinement, plan_stage

Row = Callable[..., dict[str, Any]]
Rows = Callable[..., list[dict[str, Any]]]
ONE_STAGE = {"mine": Refinement(bisections=1, target_width=0.02, extra_trials=2)}
OVER_SIZE = {"mine": "size"}


def plan(
    cpu: Mapping[int, float],
    stage: int = 1,
    trials: int = 3,
    refinement: Refinement = Refinement(),  # noqa: B008
    found: Crossover | None = None,
    **more: Any,
) -> Plan:
    """The plan for a GPU of 1 s beside a CPU that takes these times, the same in every trial."""
    rows = [
        (size, side, trial, time)
        for size, cpu_s in cpu.items()
        for side, time in (("cpu", cpu_s), ("gpu", 1.0))
        for trial in range(1, trials + 1)
    ]
    table = pd.DataFrame(rows, columns=["size", "side", "trial", "step_time_s"])
    return plan_refinement(
        found or estimate_crossover(table, "cpu", "gpu"), set(cpu), stage, trials, refinement, **more
    )


def bisect(size: int | None) -> Plan:
    return Plan("no_size_left") if size is None else Plan("bisect", sizes=(size,))


def test_a_bracket_is_halved_on_the_log_axis() -> None:
    """sqrt(100 x 400) = 200; then sqrt(200 x 400) = 282.8, which rounds up."""
    assert plan({10: 0.1, 100: 0.5, 400: 3.0}) == bisect(200)
    assert plan({10: 0.1, 100: 0.5, 200: 0.9, 400: 3.0}, stage=2) == bisect(283)
    assert plan({100: 3.0, 400: 0.5}) == bisect(200)  # reversed


@pytest.mark.parametrize(
    ("low", "high", "granularity", "middle"),
    [
        (64, 512, 64, 192),  # geometric middle 181.02: 192 is nearer than 128
        (8, 32, 8, 16),
        (100, 200, 64, 128),  # ends need not be multiples; middle 141.4
        (128, 192, 64, None),  # nothing lies strictly between
        (1, 2, 1, None),
        (1, 3, 1, 2),  # middle 1.73: of 1 and 2 only 2 lies between
        (2, 4, 3, 3),  # middle 2.83
        (6, 8, 5, None),
    ],
)
def test_new_sizes_are_multiples_of_the_granularity(low: int, high: int, granularity: int, middle: int | None) -> None:
    assert plan({low: 0.5, high: 2.0}, granularity=granularity) == bisect(middle)


@pytest.mark.parametrize(
    ("cpu", "offered", "size"),
    [
        ({18: 0.5, 152: 2.0}, (18, 34, 50, 101, 152), 50),  # middle 52.3
        ({18: 0.5, 50: 2.0}, (18, 34, 50, 101, 152), 34),  # middle 30.0
        ({34: 0.5, 50: 2.0}, (18, 34, 50, 101, 152), None),
        ({100: 0.5, 200: 1.0, 400: 2.0}, (150, 200), 150),  # a tie at 200, which was measured
    ],
)
def test_a_workload_that_builds_some_sizes_only_gets_one_of_these(
    cpu: dict[int, float], offered: tuple[int, ...], size: int | None
) -> None:
    assert plan(cpu, sizes=offered) == bisect(size)


@pytest.mark.parametrize(
    "cpu",
    [
        {100: 2.0, 400: 3.0},  # below_range
        {100: 0.2, 400: 0.3},  # above_range
        {100: 1.0, 400: 1.0},  # undecided
        {100: 0.5, 200: 2.0, 400: 0.5, 800: 2.0},  # multiple
    ],
)
@pytest.mark.parametrize("stage", [1, 3])
def test_without_one_bracket_nothing_is_planned(cpu: Mapping[int, float], stage: int) -> None:
    assert plan(cpu, stage=stage) == Plan("no_bracket")


def with_interval(low: float | None, high: float | None) -> Crossover:
    return Crossover("bracketed", size=200.0, low=low, high=high, bracket=(100.0, 400.0), roots=(200.0,))


@pytest.mark.parametrize(
    ("low", "high", "wide"), [(181.0, 220.0, False), (179.0, 221.0, True), (None, 220.0, True), (181.0, None, True)]
)
def test_more_trials_where_the_interval_is_wider_than_the_target(
    low: float | None, high: float | None, wide: bool
) -> None:
    """Within 10 % of 200 to either side is a width of 40; an end that the trials leave open is no narrow one."""
    expected = Plan("add_trials", trials={100: 6, 400: 6}) if wide else Plan("narrow_enough")
    assert plan({100: 0.5, 400: 2.0}, stage=3, found=with_interval(low, high)) == expected


@pytest.mark.parametrize(
    ("stage", "refinement", "expected"),
    [
        (1, Refinement(bisections=0, extra_trials=2), Plan("add_trials", trials={100: 5, 400: 5})),
        (2, Refinement(bisections=0, extra_trials=2), Plan("done")),
        (3, Refinement(extra_trials=0), Plan("done")),
        (3, Refinement(target_width=0.25), Plan("narrow_enough")),
        (3, Refinement(target_width=0.24), Plan("add_trials", trials={100: 6, 400: 6})),
    ],
)
def test_the_refinement_sets_number_of_stages_width_and_trials(
    stage: int, refinement: Refinement, expected: Plan
) -> None:
    found = with_interval(150.0, 250.0)
    assert plan({100: 0.5, 400: 2.0}, stage, refinement=refinement, found=found) == expected


def test_one_trial_has_no_interval_that_more_trials_could_narrow() -> None:
    assert plan({100: 0.5, 400: 2.0}, stage=3, trials=1, found=with_interval(150.0, 250.0)) == Plan("one_trial")


@pytest.fixture
def rows(row: Row) -> Rows:
    """Builds rows of a CPU that takes 1 us x size, and of accelerators; odd and even trials are 2 % apart."""

    def build(
        sizes: Sequence[int], accelerators: Mapping[str, float], trials: int = 2, **axes: Any
    ) -> list[dict[str, Any]]:
        axes = {"study": "mine", "workload": "linear_stack", **axes}
        return [
            row(
                size=size,
                device=device,
                trial=trial,
                step_time_s=(time or 1e-6 * size) * (1 + 0.02 * (trial % 2)),
                **axes,
            )
            for size in sizes
            for device, time in {"cpu": None, **accelerators}.items()
            for trial in range(1, trials + 1)
        ]

    return build


def planned(rows: Sequence[Mapping[str, Any]], stage: int = 1, trials: int = 2) -> dict[tuple[Any, ...], list[int]]:
    """Numbers of the planned trials by protocol, size and device."""
    cells, _ = plan_stage(pd.DataFrame(rows), stage, ONE_STAGE, OVER_SIZE, trials)
    return {(cell.protocol, cell.size, cell.device): numbers for cell, numbers in cells.items()}


def test_each_line_has_its_own_size_on_both_sides(rows: Rows) -> None:
    """Crossings at 100 and 1000: sqrt(50 x 400) is 141.4, sqrt(400 x 3200) 1131.4."""
    table = rows((50, 400, 3200), {"cuda": 1e-4}) + rows((50, 400, 3200), {"cuda": 1e-3}, protocol="as_published")
    assert planned(table) == {
        (protocol, size, device): [1, 2]
        for protocol, size in (("resident", 141), ("as_published", 1131))
        for device in ("cpu", "cuda")
    }


def test_two_accelerators_are_each_compared_with_the_cpu(rows: Rows) -> None:
    """The GPU crosses at 100, the XPU at 1000; what is added for one is no gap of the other."""
    table = rows((50, 400, 3200), {"cuda": 1e-4, "xpu": 1e-3})
    assert planned(table) == {
        ("resident", size, device): [1, 2]
        for size, other in ((141, "cuda"), (1131, "xpu"))
        for device in ("cpu", other)
    }


def test_the_cpu_on_fewer_cores_is_not_refined(rows: Rows) -> None:
    """All cores cross at 100; one core, four times as slow, would at 25, between 10 and 50."""
    table = rows((10, 50, 400), {"cuda": 1e-4})
    slower = [
        {**one, "device": "cpu-1", "step_time_s": 4 * one["step_time_s"]} for one in table if one["device"] == "cpu"
    ]
    assert planned(table + slower) == {("resident", 141, device): [1, 2] for device in ("cpu", "cuda")}


def test_each_machine_is_refined_where_its_own_crossover_lies(rows: Rows) -> None:
    """Crossings at 100 and 1000."""
    table = rows((50, 400, 3200), {"cuda": 1e-4}, machine="a") + rows((50, 400, 3200), {"cuda": 1e-3}, machine="b")
    cells, _ = plan_stage(pd.DataFrame(table), 1, ONE_STAGE, OVER_SIZE, 2)
    assert {(cell.machine, cell.size) for cell in cells} == {("a", 141), ("b", 1131)}


def test_the_last_stage_adds_trials_at_both_ends_of_a_wide_bracket(rows: Rows) -> None:
    table = rows((50, 141, 400), {"cuda": 1e-4})
    assert planned(table, stage=2) == {
        ("resident", size, device): [3, 4] for size in (141, 50) for device in ("cpu", "cuda")
    }
    cells, ((why),) = plan_stage(pd.DataFrame(table), 2, {"mine": Refinement(1, 0.5, 2)}, OVER_SIZE, 2)
    assert (cells, why["decision"]) == ({}, "narrow_enough")


def test_the_target_holds_on_what_the_crossover_is_read_over(rows: Rows) -> None:
    """1.5 % of the size to either side are 4.5 % of parameters that grow with the cube of the size."""
    wide = {"mine": Refinement(bisections=1, target_width=0.03, extra_trials=2)}
    table = pd.DataFrame(rows((50, 100, 103, 400), {"cuda": 1.01e-4}, trials=5))
    table = table.assign(parameters=table["size"] ** 3)
    decisions = [plan_stage(table, 2, wide, {"mine": over}, 5)[1][0]["decision"] for over in ("size", "parameters")]
    assert decisions == ["narrow_enough", "add_trials"]


def test_between_neighbours_there_is_no_size(rows: Rows) -> None:
    """A network of 9 layers against one of 10: the CPU's time doubles with each layer."""
    axes = {"workload": "disc_mlp", "size_name": "linear layers"}
    table = [
        {**one, "step_time_s": one["step_time_s"] / one["size"] * 2 ** one["size"]} if one["device"] == "cpu" else one
        for one in rows(range(6, 13), {"cuda": 7e-4}, **axes)
    ]
    cells, ((why),) = plan_stage(pd.DataFrame(table), 1, ONE_STAGE, OVER_SIZE, 2)
    assert (cells, why["decision"], why["bracket"]) == ({}, "no_size_left", [9, 10])


def test_a_workload_that_can_build_few_widths_only_has_one_of_these(rows: Rows) -> None:
    """Heads of 64: sqrt(512 x 1024) is 724, between 11 x 64 = 704 and 12 x 64 = 768."""
    table = rows((256, 512, 1024, 2048), {"cuda": 7e-4}, workload="gpt_block")
    assert planned(table) == {("resident", 704, device): [1, 2] for device in ("cpu", "cuda")}


def test_trials_that_are_not_ok_have_no_time(rows: Rows) -> None:
    table = rows((50, 400), {"cuda": 1e-4})
    for one in table:
        if one["size"] == 400 and one["device"] == "cuda":
            one["status"] = "invalid"
    assert planned(table) == {}


Settings = tuple[str, str, str]
"""Device, precision and execution."""


def on_devices(row: Row, sizes: Sequence[int], times: Mapping[Settings, float]) -> list[dict[str, Any]]:
    """Rows of these settings: fp32 in eager execution takes 1 us x size, the others what is given.

    Odd and even trials are 2 % apart.
    """
    return [
        row(
            study="mine",
            workload="linear_stack",
            device=device,
            precision=precision,
            execution=execution,
            size=size,
            trial=trial,
            step_time_s=time * (size if (precision, execution) == ("fp32", "eager") else 1) * (1 + 0.02 * (trial % 2)),
        )
        for (device, precision, execution), time in times.items()
        for size in sizes
        for trial in (1, 2)
    ]


def planned_cells(rows: Sequence[Mapping[str, Any]], *pairs: str, stage: int = 1) -> dict[tuple[Any, ...], list[int]]:
    """Numbers of the planned trials by device, precision, execution and size."""
    cells, _ = plan_stage(pd.DataFrame(rows), stage, {"mine": Refinement(1, 0.02, 2, pairs)}, OVER_SIZE, 2)
    return {(cell.device, cell.precision, cell.execution, cell.size): numbers for cell, numbers in cells.items()}


PRECISIONS_ON_BOTH = {
    ("cpu", "fp32", "eager"): 1e-6,
    ("cpu", "amp-bf16", "eager"): 1e-3,
    ("cpu-1", "fp32", "eager"): 1e-6,
    ("cpu-1", "amp-bf16", "eager"): 1e-4,
    ("cuda", "fp32", "eager"): 1e-6,
    ("cuda", "amp-bf16", "eager"): 1e-4,
}


def test_two_precisions_have_a_size_of_their_own_on_each_device(row: Row) -> None:
    """Crossings at 1000 on the CPU and at 100 on the GPU; the CPU on one core, at 100 too, has no place in it."""
    table = on_devices(row, (50, 400, 3200), PRECISIONS_ON_BOTH)
    assert planned_cells(table, "precision") == {
        (device, precision, "eager", size): [1, 2]
        for device, size in (("cpu", 1131), ("cuda", 141))
        for precision in ("fp32", "amp-bf16")
    }
    # In amp-bf16 the CPU would cross nothing: 1 ms against 0.1 ms; in fp32 both devices are as fast.
    assert planned_cells(table, "device") == {}
    assert planned_cells(table, "execution") == {}
    assert len(planned_cells(table, "device", "precision", "execution")) == 4


def test_precisions_of_a_gpu_alone_are_planned_until_the_last_stage(row: Row) -> None:
    """amp-bf16 crosses at 100, fp64 at 1000; what is added for one is no gap of the other."""
    times = {("cuda", "fp32", "eager"): 1e-6, ("cuda", "amp-bf16", "eager"): 1e-4, ("cuda", "fp64", "eager"): 1e-3}
    table = on_devices(row, (50, 400, 3200), times)
    assert planned_cells(table, "precision") == {
        ("cuda", precision, "eager", size): [1, 2]
        for other, size in (("amp-bf16", 141), ("fp64", 1131))
        for precision in ("fp32", other)
    }
    table += on_devices(row, (141,), {key: time for key, time in times.items() if key[1] != "fp64"})
    table += on_devices(row, (1131,), {key: time for key, time in times.items() if key[1] != "amp-bf16"})
    assert planned_cells(table, "precision", stage=2) == {
        ("cuda", precision, "eager", size): [3, 4]
        for other, sizes in (("amp-bf16", (50, 141)), ("fp64", (400, 1131)))
        for size in sizes
        for precision in ("fp32", other)
    }

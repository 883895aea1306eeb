"""Made-up lines: a CPU whose time grows with the size, beside accelerators that always take the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.config.studies import Refinement
from crossover.statistics.refinement_stage import plan_stage

Row = Callable[..., dict[str, Any]]
Rows = Callable[..., list[dict[str, Any]]]
ONE_STAGE = {"mine": Refinement(bisections=1, target_width=0.02, extra_trials=2)}
OVER_SIZE = {"mine": "size"}


@pytest.fixture
def rows(row: Row) -> Rows:
    """Builds rows of a CPU that takes 1 us x size, and of accelerators; odd and even trials are 2 % apart."""

    def build(
        sizes: Sequence[int], accelerators: Mapping[str, float], trials: int = 2, **axes: Any
    ) -> list[dict[str, Any]]:
        axes = {"study": "mine", "workload": "linear_stack", **axes}
        times = {"cpu": None, **accelerators}
        return [
            row(
                size=size,
                device=device,
                trial=trial,
                step_time_s=(time or 1e-6 * size) * (1 + 0.02 * (trial % 2)),
                **axes,
            )
            for size in sizes
            for device, time in times.items()
            for trial in range(1, trials + 1)
        ]

    return build


def planned(rows: Sequence[Mapping[str, Any]], stage: int = 1, trials: int = 2) -> dict[tuple[Any, ...], list[int]]:
    """Numbers of the planned trials by protocol, size and device."""
    plan = plan_stage(pd.DataFrame(rows), stage, ONE_STAGE, OVER_SIZE, trials)
    return {(cell.protocol, cell.size, cell.device): list(numbers) for cell, numbers in plan.trials.items()}


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
    table += rows((141,), {"cuda": 1e-4}) + rows((1131,), {"xpu": 1e-3})
    plan = plan_stage(pd.DataFrame(table), 2, ONE_STAGE, OVER_SIZE, 2)
    assert [(why["contender"], why["status"], why["bracket"]) for why in plan.why] == [
        ("cuda", "bracketed", [50, 141]),
        ("xpu", "bracketed", [400, 1131]),
    ]


def test_the_cpu_on_fewer_cores_is_not_refined(rows: Rows) -> None:
    """All cores cross at 100; one core, four times as slow, would at 25, between 10 and 50."""
    table = rows((10, 50, 400), {"cuda": 1e-4})
    slower = [
        {**one, "device": "cpu-1", "step_time_s": 4 * one["step_time_s"]} for one in table if one["device"] == "cpu"
    ]
    assert planned(table + slower) == {("resident", 141, device): [1, 2] for device in ("cpu", "cuda")}


def test_the_last_stage_adds_trials_at_both_ends_of_a_wide_bracket(rows: Rows) -> None:
    table = rows((50, 141, 400), {"cuda": 1e-4})
    assert planned(table, stage=2) == {
        ("resident", size, device): [3, 4] for size in (141, 50) for device in ("cpu", "cuda")
    }
    plan = plan_stage(pd.DataFrame(table), 2, {"mine": Refinement(1, 0.5, 2)}, OVER_SIZE, 2)
    assert (plan.trials, plan.why[0]["decision"]) == ({}, "nothing: the interval is within 50 % of the crossover")


def test_the_target_holds_on_what_the_crossover_is_read_over(rows: Rows) -> None:
    """1.5 % of the size to either side are 4.5 % of parameters that grow with the cube of the size."""
    wide = {"mine": Refinement(bisections=1, target_width=0.03, extra_trials=2)}
    table = pd.DataFrame(rows((50, 100, 103, 400), {"cuda": 1.01e-4}, trials=5)).assign(
        parameters=lambda t: t["size"] ** 3
    )
    assert not plan_stage(table, 2, wide, OVER_SIZE, 5).trials
    assert plan_stage(table, 2, wide, {"mine": "parameters"}, 5).trials


@pytest.mark.parametrize(
    ("sizes", "stage", "decision"),
    [
        ((200, 400), 1, "nothing: the contender is ahead at every size measured on both sides"),
        ((100, 101), 1, "nothing: the trials do not tell which side is ahead"),
        ((50, 400), 3, "nothing: no more is asked for"),
    ],
)
def test_why_nothing_is_added(rows: Rows, sizes: Sequence[int], stage: int, decision: str) -> None:
    plan = plan_stage(pd.DataFrame(rows(sizes, {"cuda": 1e-4})), stage, ONE_STAGE, OVER_SIZE, 2)
    assert dict(plan.trials) == {}
    assert [why["decision"] for why in plan.why] == [decision]


def test_between_neighbours_there_is_no_size_but_for_further_trials(rows: Rows) -> None:
    """A network of 9 layers against one of 10: the CPU's time doubles with each layer."""
    axes = {"workload": "disc_mlp", "size_name": "linear layers"}
    table = [
        {**one, "step_time_s": one["step_time_s"] / one["size"] * 2 ** one["size"]} if one["device"] == "cpu" else one
        for one in rows(range(6, 13), {"cuda": 7e-4}, **axes)
    ]
    plan = plan_stage(pd.DataFrame(table), 1, ONE_STAGE, OVER_SIZE, 2)
    assert dict(plan.trials) == {}
    assert plan.why[0]["decision"] == "nothing: the workload has no size between 9 and 10 that is not measured"


def test_a_workload_that_can_build_few_widths_only_has_one_of_these(rows: Rows) -> None:
    """Heads of 64: sqrt(512 x 1024) is 724, between 11 x 64 = 704 and 12 x 64 = 768."""
    table = rows((256, 512, 1024, 2048), {"cuda": 7e-4}, workload="gpt_block")
    assert planned(table) == {("resident", 704, device): [1, 2] for device in ("cpu", "cuda")}


def test_trials_that_are_not_ok_have_no_time(rows: Rows) -> None:
    table = [
        {**one, "status": "invalid"} if one["size"] == 400 and one["device"] == "cuda" else one
        for one in rows((50, 400), {"cuda": 1e-4})
    ]
    assert planned(table) == {}


def on_devices(row: Row, sizes: Sequence[int], times: Mapping[tuple[str, str, str], float]) -> list[dict[str, Any]]:
    """Rows by device, precision and execution: fp32 in eager execution takes 1 us x size, the others what is given.

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
    plan = plan_stage(pd.DataFrame(rows), stage, {"mine": Refinement(1, 0.02, 2, pairs)}, OVER_SIZE, 2)
    return {
        (cell.device, cell.precision, cell.execution, cell.size): list(numbers) for cell, numbers in plan.trials.items()
    }


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


def test_only_the_pairs_that_are_asked_for_are_planned(row: Row) -> None:
    """In amp-bf16 the CPU would cross nothing: 1 ms against 0.1 ms; in fp32 both devices are as fast."""
    table = on_devices(row, (50, 400, 3200), PRECISIONS_ON_BOTH)
    assert planned_cells(table, "device") == {}
    assert planned_cells(table, "execution") == {}
    assert len(planned_cells(table, "device", "precision", "execution")) == 4


def test_precisions_of_a_gpu_alone_are_planned_until_the_last_stage(row: Row) -> None:
    """amp-bf16 crosses at 100, fp64 at 1000; what is added for one is no gap of the other."""
    times = {
        ("cuda", "fp32", "eager"): 1e-6,
        ("cuda", "amp-bf16", "eager"): 1e-4,
        ("cuda", "fp64", "eager"): 1e-3,
    }
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


def test_executions_keep_the_precision_of_their_line(row: Row) -> None:
    """Eager and a CUDA graph cross at 100; compile is not supported here, so there is nothing to say of it."""
    times = {("cuda", "fp32", "eager"): 1e-6, ("cuda", "fp32", "cuda-graph"): 1e-4}
    table = on_devices(row, (50, 400), times)
    lacking = on_devices(row, (50, 400), {("cuda", "fp32", "compile"): 1e-4})
    table += [{**one, "status": "unsupported", "step_time_s": None} for one in lacking]
    table = [{**one, "precision": "bf16"} for one in table]
    assert planned_cells(table, "execution") == {
        ("cuda", "bf16", execution, 141): [1, 2] for execution in ("eager", "cuda-graph")
    }


def test_the_reason_names_both_sides_and_their_device(row: Row, rows: Rows) -> None:
    table = on_devices(row, (50, 400), {("xpu", "fp32", "eager"): 1e-6, ("xpu", "tf32", "eager"): 1e-4})
    table += rows((50, 400), {"cuda": 1e-4}, protocol="as_published")
    refinements = {"mine": Refinement(pairs=("device", "precision"))}
    plan = plan_stage(pd.DataFrame(table), 1, refinements, OVER_SIZE, 2)
    keys = ("pair", "device", "baseline", "contender", "protocol", "precision", "bracket")
    found = [tuple(why[key] for key in keys) for why in plan.why if why["protocol"] == "as_published"]
    assert found == [("device", "cuda", "cpu", "cuda", "as_published", "fp32", [50, 400])]
    found = [tuple(why[key] for key in keys) for why in plan.why if why["pair"] == "precision"]
    assert found == [("precision", "xpu", "fp32", "tf32", "resident", "tf32", [50, 400])]

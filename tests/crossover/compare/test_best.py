"""Devices at their best, for a CPU whose time grows with size and a GPU with a constant time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from crossover.compare.best import best_series, candidates_of, standings_of
from crossover.compare.cells import summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.refinement import all_trials, plan_stage
from crossover.config.studies import Refinement
from crossover.tables import registry
from crossover.tables.frames import records, with_cell_columns
from crossover.tables.run_tables import run_tables
from report_pages import study

Row = Callable[..., dict[str, Any]]
STUDY = "disc_depth"
SIZES = (100, 400, 1600, 6400)
CANDIDATES = study(
    sizes=(100, 1600, 6400),
    batch_sizes=(1,),
    protocols=("resident",),
    precisions=("fp32",),
    executions=("eager",),
    candidates={"executions": ["compile", "cuda-graph"], "cpu_threads": [1]},
)
X = {STUDY: "size"}
Times = Mapping[tuple[str, str], Mapping[int, float | None]]
"""Seconds of a step by execution and side, then by size; None if not supported."""


@pytest.fixture
def rows(row: Row) -> Callable[..., pd.DataFrame]:
    def build(times: Times, trials: Mapping[tuple[str, str], int] | None = None, **values: Any) -> pd.DataFrame:
        return pd.DataFrame(
            [
                row(
                    size=size,
                    device=side,
                    execution=execution,
                    trial=trial,
                    step_time_s=None if time is None else time * 1.01 ** (trial % 3 - 1),
                    status="unsupported" if time is None else "ok",
                    reason="no such candidate" if time is None else None,
                    **values,
                )
                for (execution, side), times_by_size in times.items()
                for size, time in times_by_size.items()
                for trial in range(1, (trials or {}).get((execution, side), 3) + 1)
            ]
        )

    return build


def at(sizes: tuple[int, ...], time: Callable[[int], float | None]) -> dict[int, float | None]:
    return {size: time(size) for size in sizes}


PLAIN: Times = {("eager", "cpu"): at(SIZES, lambda n: n * 1e-6), ("eager", "cuda"): at(SIZES, lambda _: 1e-3)}
"""The GPU is faster above size 1000."""
GRAPH: Times = {("cuda-graph", "cuda"): at(CANDIDATES.sizes, lambda _: 3e-4)}
"""With a CUDA graph, the GPU is faster above size 300."""


def only_best(trials: pd.DataFrame) -> dict[str, Any]:
    """The only crossover of devices at their best."""
    (series,) = best_series(trials, {STUDY: CANDIDATES}, X)
    (row,) = records(crossovers_of(series.pairings()))
    return row


def candidates_in(trials: pd.DataFrame) -> pd.DataFrame:
    standings = standings_of(best_series(trials, {STUDY: CANDIDATES}, X))
    return candidates_of(run_tables(cells=with_cell_columns(summarise(trials), standings, registry.CANDIDATES)))


def test_the_crossover_of_two_devices_at_their_best(rows: Any) -> None:
    """Size 400 is not used: the graph was not measured there, although it is in play at both neighbouring sizes."""
    crossover = only_best(rows({**PLAIN, **GRAPH}))
    assert (crossover["status"], crossover["cost"], crossover["device"], crossover["baseline"]) == (
        "bracketed",
        "time",
        "cuda",
        "cpu",
    )
    assert (crossover["execution"], crossover["precision"], crossover["variant"]) == ("best", "fp32", "plain")
    assert crossover["crossover"] == pytest.approx(300, rel=0.05)
    assert (crossover["bracket_low"], crossover["bracket_high"]) == (100, 1600)
    assert crossover["crossover_low"] < 300 < crossover["crossover_high"]
    assert (crossover["baseline_name"], crossover["contender_name"], crossover["trials"]) == ("Brand C1", "Brand G1", 3)


def test_sizes_without_a_slow_candidate_count(rows: Any) -> None:
    """One core is four times slower at both sizes where it was measured, so 400 and 6400 count without it."""
    slow: Times = {("eager", "cpu-1"): at((100, 1600), lambda n: 4e-6 * n)}
    table = rows({**PLAIN, **slow})
    crossover = only_best(table)
    assert crossover["crossover"] == pytest.approx(1000, rel=0.05)
    assert (crossover["bracket_low"], crossover["bracket_high"]) == (400, 1600)
    candidates = candidates_in(table)
    assert candidates["counts"].all()
    assert not candidates.loc[candidates["side"] == "cpu-1", "in_play"].any()
    assert candidates.loc[candidates["chosen"], "side"].tolist() == ["cpu"] * 4 + ["cuda"] * 4


def test_an_unsupported_candidate_keeps_its_reason_and_is_not_in_play(rows: Any) -> None:
    candidates = candidates_in(rows({**PLAIN, **GRAPH, ("compile", "cpu"): at(CANDIDATES.sizes, lambda _: None)}))
    lost = candidates[candidates["execution"] == "compile"]
    assert set(lost["status"]) == {"unsupported"}
    assert set(lost["reason"]) == {"no such candidate"}
    assert not (lost["in_play"] | lost["chosen"]).any()
    assert lost["chance"].isna().all()
    assert candidates.loc[candidates["device"] == "cpu", "counts"].all()


def test_each_candidate_has_its_time_and_its_chance(rows: Any) -> None:
    near: Times = {("compile", "cpu"): at(CANDIDATES.sizes, lambda n: n * 1e-6)}
    candidates = candidates_in(rows({**PLAIN, **near}))
    both = candidates[(candidates["device"] == "cpu") & (candidates["size"] == 100)]
    assert both["chance"].tolist() == pytest.approx([0.5, 0.5])
    assert both["step_time_s"].tolist() == pytest.approx([1e-4, 1e-4], rel=0.01)
    assert (both["chosen"].sum(), both["selection_bias"].notna().sum()) == (1, 1)
    assert both["selection_bias"].max() == pytest.approx(0.0033, rel=0.1)  # 1 % / sqrt(3) / sqrt(pi)
    assert both["trials"].tolist() == [3, 3]


def test_a_size_at_which_all_candidates_of_a_device_failed_is_not_used(rows: Any) -> None:
    graph = {**GRAPH[("cuda-graph", "cuda")], 6400: None}
    eager = {**PLAIN[("eager", "cuda")], 6400: None}
    times = {**PLAIN, ("eager", "cuda"): eager, ("cuda-graph", "cuda"): graph}
    crossover = only_best(rows(times))
    assert (crossover["status"], crossover["bracket_low"], crossover["bracket_high"]) == ("bracketed", 100, 1600)


def stage(table: pd.DataFrame, number: int = 1) -> dict[tuple[Any, ...], list[int]]:
    """The trials that a stage adds for devices at their best, by execution, side and size; a cell has 3 trials."""
    refinement = Refinement(bisections=1, target_width=1.0, extra_trials=2, pairs=("best",), first_trials=3)
    cells = all_trials(plan_stage(table, number, {STUDY: refinement}, X, {STUDY: 3}, {STUDY: CANDIDATES}))
    return {(cell.execution, cell.device, cell.size): numbers for cell, numbers in cells.items()}


@pytest.fixture
def once(rows: Any) -> pd.DataFrame:
    """The first grid, with a single trial each of a graph that is always fastest and of a slow compiled CPU step."""
    slow: Times = {("compile", "cpu"): at(CANDIDATES.sizes, lambda n: n * 2e-6)}
    table: pd.DataFrame = rows(
        {**PLAIN, **GRAPH, **slow}, {("cuda-graph", "cuda"): 1, ("compile", "cpu"): 1}, workload="linear_stack"
    )
    return table


def test_a_stage_halves_the_bracket_and_completes_the_trials_of_candidates_in_play(once: pd.DataFrame) -> None:
    """400, the geometric mean of 100 and 1600, was measured for the plain candidates only."""
    completed = {("cuda-graph", "cuda", size): [2, 3] for size in CANDIDATES.sizes}
    assert stage(once) == {("cuda-graph", "cuda", 400): [1, 2, 3], **completed}


def test_measured_trials_are_not_planned_again(once: pd.DataFrame, row: Row) -> None:
    """The trials of the previous stage have rows, among them a failed one."""
    again = [
        row(
            workload="linear_stack",
            size=size,
            device="cuda",
            execution="cuda-graph",
            trial=trial,
            step_time_s=3e-4,
            status="invalid" if trial == 3 else "ok",
        )
        for size in CANDIDATES.sizes
        for trial in (2, 3)
    ]
    assert stage(pd.concat([once, pd.DataFrame(again)]), 2) == {}


def test_no_size_is_added_if_one_device_wins_everywhere(rows: Any) -> None:
    """The GPU's fastest candidate changes between two sizes, which is not a crossover of devices."""
    times: Times = {
        ("eager", "cpu"): at(SIZES, lambda _: 1.0),
        ("eager", "cuda"): at(SIZES, lambda n: 1e-3 if n < 1000 else 1e-2),
        ("cuda-graph", "cuda"): at(CANDIDATES.sizes, lambda n: 1e-2 if n < 1000 else 1e-3),
    }
    table = rows(times, {("cuda-graph", "cuda"): 1}, workload="linear_stack")
    assert stage(table) == {("cuda-graph", "cuda", size): [2, 3] for size in (1600, 6400)}

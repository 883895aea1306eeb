"""The order of trials, on one accelerator and on several."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from crossover.config.studies import Cell
from crossover.config.words import is_cpu
from crossover.plan.rounds import Rounds, in_blocks, priority_of_added
from crossover.plan.run_plan import RunPlan, Trial
from plans import CLASSES, configured, planned

CELL = Cell("linear_stack", "linear_stack", "resident", 100, "fp32", "eager", 100, "cpu")


def plan(**values: object) -> RunPlan:
    return planned(configured(**{"studies": ["disc_depth", "hsf_width"], "trials": 2, **values}))


def in_order(run: RunPlan, at_once: int = 1) -> list[Trial]:
    """Trials of the first grid, in the order in which a run starts them."""
    rounds = Rounds(run, at_once)
    return sorted(run.trials_of_grid, key=lambda trial: -rounds.priority(trial[0].values | {"trial": str(trial[1])}))


def test_rounds_follow_each_other_and_refinement_comes_last() -> None:
    run = plan()
    order = Rounds(run, at_once=1)
    grid = {
        trial: order.priority({**{axis: str(value) for axis, value in trial[0].values.items()}, "trial": trial[1]})
        for trial in run.trials_of_grid
    }
    assert len(set(grid.values())) == len(grid)
    first, second = ([grid[trial] for trial in grid if trial[1] == number] for number in (1, 2))
    assert min(first) > max(second) >= 1
    assert order.first > max(first)
    late = {axis: str(value) for axis, value in run.cells[0].values.items()} | {"trial": "3"}
    assert 0 < order.priority(late) <= 1
    ordered = sorted(run.cells, key=lambda cell: -grid[cell, 1])
    assert ordered != run.cells
    assert ordered != sorted(run.cells, key=lambda cell: -grid[cell, 2])


def test_a_study_begins_with_a_few_sizes_on_all_devices() -> None:
    run = plan(devices=["cpu", "cuda"])
    order = in_order(run)
    sizes = {"disc_depth": {2, 4, 7, 10, 12}, "hsf_width": {5, 10, 100, 1000, 2000}}
    for study, looked_at in sizes.items():
        of_study = [trial for trial in order if trial[0].study == study]
        first = of_study[: 2 * len(looked_at)]
        assert set(first) == set(run.preview(study))
        assert {cell.size for cell, _ in first} == looked_at
        assert {(cell.precision, cell.execution, number) for cell, number in first} == {("fp32", "eager", 1)}
        for (first_cell, _), (second_cell, _) in zip(first[::2], first[1::2], strict=True):
            assert (first_cell.size, {first_cell.device, second_cell.device}) == (second_cell.size, {"cpu", "cuda"})
    assert {cell.protocol for cell, _ in run.preview("hsf_width")} == {"as_published"}
    on_classes = replace(run, classes=CLASSES)
    assert {cell for cell, _ in on_classes.preview("disc_depth")} == {
        cell for cell in on_classes.cells if cell.study == "disc_depth" and cell.size in sizes["disc_depth"]
    }


def test_added_rounds_follow_each_other_in_different_orders() -> None:
    """Their priorities are below 1, the minimum in the first grid, and above 0, that of all other rules."""
    cells = [replace(CELL, size=size) for size in range(100, 120)]
    rounds = [{cell: priority_of_added(cell, trial, seed=0) for cell in cells} for trial in (1, 2, 3)]
    assert max(rounds[0].values()) <= 1
    assert min(rounds[0].values()) > max(rounds[1].values())
    assert min(rounds[1].values()) > max(rounds[2].values()) > 0
    orders = [tuple(sorted(priorities, key=lambda cell: priorities[cell])) for priorities in rounds]
    assert len({*orders, tuple(cells)}) == 4
    assert len({priority_of_added(replace(CELL, device=device), 1, seed=0) for device in ("cpu", "cpu-1", "cuda")}) == 1
    other_seed = {cell: priority_of_added(cell, 1, seed=1) for cell in cells}
    assert tuple(sorted(cells, key=lambda cell: other_seed[cell])) != orders[0]


def entries(*sizes: int, trial: int = 1) -> list[tuple[int, Cell]]:
    return [(trial, replace(CELL, size=size, device=device)) for size in sizes for device in ("cpu", "cuda")]


def words(order: list[tuple[int, Cell]]) -> str:
    """`c1 g1`: size 1 on the CPU, then on the GPU."""
    return " ".join(f"{'c' if is_cpu(cell.device) else 'g'}{cell.size}" for _, cell in order)


def test_a_block_has_gpu_trials_for_all_gpus_and_their_cpu_trials_next_to_them() -> None:
    order = entries(1, 2, 3, 4, 5)
    assert words(list(in_blocks(order, 2))) == "g1 g2 c1 c2 c3 c4 g3 g4 g5 c5"
    assert words(list(in_blocks(order, 4))) == "g1 g2 g3 g4 c1 c2 c3 c4 c5 g5"
    rounds = [*entries(1, 2, 3), *entries(3, 1, 2, trial=2)]
    assert words(list(in_blocks(rounds, 2))) == "g1 g2 c1 c2 c3 g3 g3 g1 c3 c1 c2 g2"


@pytest.mark.parametrize("at_once", [2, 4])
def test_with_several_gpus_compared_cells_stay_close_in_each_round(at_once: int) -> None:
    run = plan(devices=["cpu", "cuda"])
    order = in_order(run, at_once)
    assert set(order) == set(run.trials_of_grid)
    assert [trial for trial, _ in groupby(number for _, number in order)] == [1, 2]
    for number in (1, 2):
        position_of = {cell: position for position, (cell, trial) in enumerate(order) if trial == number}
        pairs = {replace(cell, device=""): [] for cell in position_of}
        for cell, position in position_of.items():
            if cell.device in ("cpu", "cuda"):  # the CPU on fewer cores is not part of a first answer
                pairs[replace(cell, device="")].append(position)
        # A block has `at_once` cells on two devices.
        assert max(max(positions) - min(positions) for positions in pairs.values() if positions) < 2 * at_once
    assert set(order[:10]) == set(run.preview("disc_depth"))


def test_added_rounds_begin_with_gpu_trials_on_several_gpus() -> None:
    cells = [replace(CELL, size=size, device=device) for size in range(5) for device in ("cpu", "cuda")]
    added = [(cell, trial) for trial in (3, 4) for cell in cells]
    order = sorted(added, key=lambda trial: -priority_of_added(*trial, seed=0, at_once=2))
    runs = [(key, len(list(trials))) for key, trials in groupby(order, lambda trial: (trial[1], trial[0].device))]
    assert runs == [((3, "cuda"), 5), ((3, "cpu"), 5), ((4, "cuda"), 5), ((4, "cpu"), 5)]


def test_trials_on_several_gpus_follow_those_on_one_within_a_block() -> None:
    order = [(1, replace(CELL, size=size, device=d)) for size in (1, 2) for d in ("cuda-2", "cpu", "cuda")]
    devices = [cell.device for _, cell in in_blocks(order, at_once=2)]
    assert devices == ["cuda", "cuda", "cuda-2", "cuda-2", "cpu", "cpu"]

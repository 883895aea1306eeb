from __future__ import annotations

from dataclasses import fields

import pytest

from crossover.errors import UserError
from crossover.records import AXES
from crossover.studies import (
    BatchSearch,
    Cell,
    Effort,
    Study,
    check_offered,
    in_rounds,
    search_options,
    trial_options,
    workload_traits,
)

STUDY = Study(
    name="disc_depth",
    title="",
    question="",
    workload="disc_mlp",
    sizes=(2, 3),
    batch_sizes=(100, 200),
    protocols=("resident",),
    precisions=("fp32",),
    executions=("eager",),
)


def test_the_grid_is_the_product_of_the_axes() -> None:
    cells = STUDY.cells(["cpu", "cuda"])
    assert len(cells) == len(set(cells)) == 2 * 2 * 2
    assert {(cell.size, cell.batch_size, cell.device) for cell in cells} == {
        (size, batch, device) for size in (2, 3) for batch in (100, 200) for device in ("cpu", "cuda")
    }


def test_a_cell_has_one_path_level_per_axis() -> None:
    cell = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 10, "cuda")
    assert cell.path == "disc_depth/disc_mlp/resident/batch-100/fp32/eager/size-10/cuda"
    assert len(cell.path.split("/")) == len(AXES) == len(fields(Cell))


def test_rounds_are_complete_shuffled_and_reproducible() -> None:
    cells = STUDY.cells(["cpu", "cuda"])
    turns = list(in_rounds(cells, trials=3, seed=7))
    rounds = [[cell for trial, cell in turns if trial == number] for number in (1, 2, 3)]
    assert [trial for trial, _ in turns] == [1] * 8 + [2] * 8 + [3] * 8
    assert all(set(one) == set(cells) for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3
    assert turns == list(in_rounds(list(reversed(cells)), trials=3, seed=7))
    assert turns != list(in_rounds(cells, trials=3, seed=8))


def test_more_trials_only_add_to_the_end() -> None:
    cells = STUDY.cells(["cpu", "cuda"])
    assert list(in_rounds(cells, 4, seed=0))[:24] == list(in_rounds(cells, 3, seed=0))


def test_traits_are_read_without_running_the_module() -> None:
    traits = workload_traits("higgs_mlp")
    assert traits.dataset == "higgs"
    assert traits.protocols == ("as_published", "resident")


def test_a_size_out_of_range_names_what_is_allowed() -> None:
    check_offered("disc_mlp", 16, "resident", "--size", "--protocol")
    with pytest.raises(UserError, match=r"^--size: 17 is out of the range .* linear layers from 2 to 16$"):
        check_offered("disc_mlp", 17, "resident", "--size", "--protocol")


def test_a_protocol_that_the_workload_lacks_is_refused() -> None:
    with pytest.raises(UserError, match=r"^--protocol: 'as_published' is not offered .* allowed: resident$"):
        check_offered("disc_mlp", 2, "as_published", "--size", "--protocol")


def test_a_search_has_every_axis_but_the_batch_size_and_no_option_that_is_not_set() -> None:
    cell = STUDY.cells(["cpu"])[0]
    shared = {"seed": 1, "cpu_threads": 2, "time_limit_s": 60.0}
    options = search_options(vars(cell), BatchSearch(start=8, memory_limit="8GB"), **shared)
    given = dict(option.removeprefix("--").split("=") for option in options)
    assert given == {
        **{axis: str(getattr(cell, axis)) for axis in AXES if axis != "batch_size"},
        "start": "8",
        "memory-limit": "8GB",
        "seed": "1",
        "cpu-threads": "2",
        "time-limit-s": "60.0",
        "isolation": "auto",
    }
    assert "--limit=9" in search_options(vars(cell), BatchSearch(limit=9), **shared)


def test_options_name_every_axis_and_every_effort() -> None:
    cell = STUDY.cells(["cpu"])[0]
    options = trial_options(cell, seed=1, cpu_threads="auto", time_limit_s=60.0, effort=Effort())
    names = {option.split("=")[0] for option in options}
    expected = {
        *AXES,
        "seed",
        "cpu_threads",
        "time_limit_s",
        "latency_steps",
        "isolation",
        *(field.name for field in fields(Effort)),
    }
    assert names == {f"--{name.replace('_', '-')}" for name in expected}

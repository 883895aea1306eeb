from __future__ import annotations

from dataclasses import fields, replace

import pytest

from crossover.config.studies import Cell, Study, check_any_for, in_rounds, steps_of_run
from crossover.config.words import AXES
from crossover.config.workloads import check_offered, workload_traits
from crossover.errors import UserError

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


ASKED = {"size": 2, "protocol": "resident", "variant": "plain"}
KEYS = {axis: f"--{axis}" for axis in ASKED}


def test_the_grid_is_the_product_of_the_axes() -> None:
    cells = STUDY.cells(["cpu", "cuda"])
    assert len(cells) == len(set(cells)) == 2 * 2 * 2
    assert {(cell.size, cell.batch_size, cell.device) for cell in cells} == {
        (size, batch, device) for size in (2, 3) for batch in (100, 200) for device in ("cpu", "cuda")
    }


def test_a_cell_has_one_path_level_per_axis() -> None:
    cell = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 10, "cuda")
    assert cell.path == "disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-10/cuda"
    assert len(cell.path.split("/")) + 1 == len(AXES) == len(fields(Cell))
    named = replace(cell, machine="h200")
    assert named.path == "disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-10/h200/cuda"


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
    check_offered("disc_mlp", ASKED | {"size": 16}, KEYS)
    with pytest.raises(UserError, match=r"^--size: 17 is not offered .* allowed: linear layers from 2 to 16$"):
        check_offered("disc_mlp", ASKED | {"size": 17}, KEYS)


def test_a_size_between_those_that_can_be_built_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    traits = replace(workload_traits("disc_mlp"), sizes=(2, 4, 16))
    monkeypatch.setattr("crossover.config.studies.workload_traits", lambda _workload: traits)
    check_offered("disc_mlp", ASKED | {"size": 4}, KEYS)
    with pytest.raises(UserError, match=r"^--size: 5 is not offered .* allowed: linear layers 2, 4, 16$"):
        check_offered("disc_mlp", ASKED | {"size": 5}, KEYS)


def test_a_size_off_the_granularity_is_refused() -> None:
    check_offered("gpt_block", ASKED | {"size": 704}, KEYS)
    with pytest.raises(UserError, match=r"^--size: 700 is not .*; allowed: width from 64 to 8192, multiples of 64$"):
        check_offered("gpt_block", ASKED | {"size": 700}, KEYS)


@pytest.mark.parametrize(
    ("axis", "value", "offered"), [("protocol", "as_published", "resident"), ("variant", "x", "plain")]
)
def test_a_protocol_or_variant_that_the_workload_lacks_is_refused(axis: str, value: str, offered: str) -> None:
    with pytest.raises(UserError, match=rf"^--{axis}: '{value}' is not offered .* allowed: {offered}$"):
        check_offered("disc_mlp", ASKED | {axis: value}, KEYS)


def test_a_batch_size_that_the_workload_cannot_build_is_refused_where_one_is_asked_for() -> None:
    asked = {"size": 64, "protocol": "resident", "variant": "plain", "batch_size": 2}
    with pytest.raises(UserError, match=r"^--batch-size: 2 is not offered by workload 'matmul'; allowed: 1$"):
        check_offered("matmul", asked, KEYS | {"batch_size": "--batch-size"})
    check_offered("matmul", asked | {"batch_size": 1}, KEYS | {"batch_size": "--batch-size"})
    check_offered("matmul", asked, KEYS)
    check_offered("disc_mlp", ASKED | {"batch_size": 2}, KEYS | {"batch_size": "--batch-size"})


@pytest.mark.parametrize(("batch_size", "steps"), [(512, 20 * 118), (1024, 20 * 59), (60000, 20), (70000, 20)])
def test_a_run_given_by_epochs_has_a_short_last_batch_in_each(batch_size: int, steps: int) -> None:
    assert steps_of_run({"epochs": 20, "samples": 60000}, batch_size) == steps
    assert (steps_of_run(150, batch_size), steps_of_run(None, batch_size)) == (150, None)


def test_a_study_measures_on_its_own_devices_only() -> None:
    study = replace(STUDY, devices=("cuda",))
    assert {cell.device for cell in study.cells(["cpu", "cuda"])} == {"cuda"}
    assert study.cells(["cpu"]) == []


def test_a_run_without_a_device_for_any_study_is_refused() -> None:
    on_gpus = replace(STUDY, devices=("cuda", "xpu"))
    check_any_for([on_gpus, STUDY], ["cpu"])
    check_any_for([on_gpus], ["cpu", "xpu"])
    with pytest.raises(UserError, match=rf"^studies: none .* of this run \(cpu\); {STUDY.name}: cuda, xpu; take"):
        check_any_for([on_gpus], ["cpu"])


def test_each_variant_is_a_cell() -> None:
    cells = replace(STUDY, variants=("plain", "other")).cells(["cpu"])
    assert len(cells) == 2 * len(STUDY.cells(["cpu"]))
    assert {cell.variant for cell in cells} == {"plain", "other"}


def test_the_cpu_on_fewer_cores_stands_beside_the_cpu_only() -> None:
    study = replace(STUDY, cpu_threads=(1, "half"), sizes=(2,), batch_sizes=(100,))
    assert [cell.device for cell in study.cells(["cpu", "cuda"])] == ["cpu", "cpu-1", "cpu-half", "cuda"]
    assert [cell.device for cell in study.cells(["cuda"])] == ["cuda"]
    assert [cell.device for cell in replace(study, devices=("cuda",)).cells(["cpu", "cuda"])] == ["cuda"]
    assert study.devices_among(["cpu", "cuda"]) == ["cpu", "cuda"]
    assert study.cells(["cpu"])[1].path.endswith("/size-2/cpu-1")

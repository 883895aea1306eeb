from __future__ import annotations

from dataclasses import replace

import pytest

from crossover.config.studies import (
    RESULTS,
    Cell,
    Effort,
    in_rounds,
)
from crossover.config.study import (
    Quality,
    Study,
    cells_of_candidates,
    effort_of,
    preview,
    trained_cells,
)
from crossover.config.words import AXES

STUDY = Study(
    name="disc_depth",
    title="A title",
    question="A question?",
    workload="disc_mlp",
    sizes=(2, 3),
    batch_sizes=(100, 200),
    protocols=("resident",),
    precisions=("fp32",),
    executions=("eager",),
)
QUICK = Effort(warmup_min_s=0.2, warmup_max_s=3.0, timed_min_s=1.0, timed_max_s=2.0)


def test_a_cell_has_one_path_level_per_axis() -> None:
    cell = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 10, "cuda")
    assert cell.path == "disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-10/cuda"
    assert len(cell.path.split("/")) + 1 == len(AXES) == len(cell.values)
    assert replace(cell, machine="h200").path == cell.path.replace("/cuda", "/h200/cuda")
    assert RESULTS["training"].format(**cell.values, seed=4) == f"trainings/{cell.path}/seed-4.parquet"


def test_rounds_are_complete_shuffled_and_reproducible() -> None:
    cells = STUDY.cells(["cpu", "cuda"])
    turns = list(in_rounds(cells, trials=3, seed=7))
    rounds = [[cell for trial, cell in turns if trial == number] for number in (1, 2, 3)]
    assert [trial for trial, _ in turns] == [1] * 8 + [2] * 8 + [3] * 8
    assert all(set(round_cells) == set(cells) for round_cells in rounds)
    assert len({tuple(round_cells) for round_cells in rounds}) == 3
    assert turns == list(in_rounds(list(reversed(cells)), trials=3, seed=7))
    assert turns == list(in_rounds(cells, trials=4, seed=7))[:24]
    assert turns != list(in_rounds(cells, trials=3, seed=8))


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ((1, 2, 3, 4, 5), {1, 2, 3, 4, 5}),
        ((6, 1, 2, 3, 4, 5), {1, 2, 3, 5, 6}),
        (tuple(range(1, 101)), {1, 26, 51, 75, 100}),
    ],
)
def test_a_preview_has_both_ends_the_middle_and_the_quarters(sizes: tuple[int, ...], taken: set[int]) -> None:
    assert set(preview(replace(STUDY, sizes=sizes)).sizes) == taken


def test_devices_of_a_study_restrict_those_of_the_run() -> None:
    study = replace(STUDY, devices=("cuda", "xpu"))
    assert {cell.device for cell in study.cells(["cpu", "cuda"])} == {"cuda"}
    assert study.cells(["cpu"]) == []


def test_fewer_cores_are_sides_of_the_cpu_only() -> None:
    study = replace(STUDY, cpu_threads=(1, "half"), sizes=(2,), batch_sizes=(100,))
    assert [cell.device for cell in study.cells(["cpu", "cuda"])] == ["cpu", "cpu-1", "cpu-half", "cuda"]
    assert [cell.device for cell in study.cells(["cuda"])] == ["cuda"]
    assert [cell.device for cell in replace(study, devices=("cuda",)).cells(["cpu", "cuda"])] == ["cuda"]
    assert study.devices_among(["cpu", "cuda"]) == ["cpu", "cuda"]


@pytest.mark.parametrize(
    ("of_study", "run", "counts"),
    [
        ({"warmup_max_s": 5.0}, Effort(), Effort(warmup_max_s=5.0)),
        ({"timed_max_s": 20}, QUICK, QUICK),
        ({"blocks_min": 50, "warmup_min_s": 2.0}, Effort(), Effort(blocks_min=50, warmup_min_s=2.0)),
    ],
)
def test_a_study_may_change_the_effort_but_not_raise_its_caps(
    of_study: dict[str, float], run: Effort, counts: Effort
) -> None:
    assert effort_of(replace(STUDY, effort=of_study), run) == counts


@pytest.mark.parametrize(
    ("device", "execution", "effort", "least_s"),
    [
        ("cpu", "eager", Effort(), 0.2),
        ("cuda", "eager", Effort(), 0.3),
        ("cuda-2", "eager", Effort(), 0.3),
        ("cuda", "cuda-graph", Effort(), 0.7),
        ("cuda", "eager", Effort(warmup_accelerator_min_s=0.1), 0.2),
        ("cuda", "cuda-graph", Effort(warmup_accelerator_min_s=2.0, warmup_max_s=1.0), 1.0),
        ("cuda", "eager", Effort(warmup_min_s=3.0), 3.0),
        ("cuda", "eager", Effort(warmup_eager_min_s=0.5), 0.5),
    ],
)
def test_an_accelerator_warms_up_longer_and_what_it_replays_longest(
    device: str, execution: str, effort: Effort, least_s: float
) -> None:
    assert effort.on(device, execution).warmup_min_s == least_s


def test_cells_with_the_same_model_are_trained_once() -> None:
    """Cells that differ only in protocol, execution or threads train the same model."""
    study = replace(
        STUDY,
        protocols=("as_published", "resident"),
        precisions=("fp32", "amp-bf16"),
        executions=("eager", "compile"),
        cpu_threads=(1,),
        batch_sizes=(32,),
        timed=False,
        quality={"epochs": 2, "seeds": 3},
    )
    cells = trained_cells(study, ["cpu", "cuda"])
    assert len(cells) == 2 * 2 * 2
    assert {(cell.size, cell.precision, cell.device) for cell in cells} == {
        (size, precision, device) for size in (2, 3) for precision in ("fp32", "amp-bf16") for device in ("cpu", "cuda")
    }
    assert {(cell.protocol, cell.execution) for cell in cells} == {("resident", "eager")}
    assert study.cells(["cpu"]) == []
    assert study.quality == Quality(epochs=2, seeds=3)
    assert (trained_cells(STUDY, ["cpu"]), STUDY.quality) == ([], None)


def test_candidates_add_cells_to_the_grid() -> None:
    """A CPU has no CUDA graph, and on fewer cores nothing is compiled."""
    candidates = {"executions": ["compile", "cuda-graph"], "cpu_threads": [1]}
    study = replace(STUDY, sizes=(3,), batch_sizes=(100,), precisions=("tf32", "bf16"), candidates=candidates)
    added = cells_of_candidates(study, ["cpu", "cuda"])
    assert {(cell.execution, cell.device) for cell in added} == {
        *{("compile", "cpu"), ("compile", "cuda"), ("eager", "cpu-1"), ("cuda-graph", "cuda")},
    }
    assert len(added) == len(set(added)) == 4
    assert {(cell.size, cell.precision) for cell in added} == {(3, "tf32")}
    assert set(study.cells(["cpu", "cuda"])) == set(replace(study, candidates=None).cells(["cpu", "cuda"]))
    assert (
        cells_of_candidates(replace(study, timed=False), ["cpu", "cuda"])
        == cells_of_candidates(STUDY, ["cpu", "cuda"])
        == []
    )
    assert {cell.execution for cell in cells_of_candidates(study, ["cpu"])} == {"eager", "compile"}


def test_the_first_round_goes_study_by_study_and_begins_with_the_first_cells() -> None:
    cells = [*STUDY.cells(["cpu", "cuda"]), *replace(STUDY, name="another").cells(["cpu", "cuda"])]
    first = {cell for cell in cells if cell.batch_size == 200}
    turns = list(in_rounds(cells, trials=2, seed=7, first=first))
    names = [(cell.study, cell in first) for trial, cell in turns if trial == 1]
    assert names == [(study, early) for study in (STUDY.name, "another") for early in (True, False) for _ in range(4)]
    assert turns[16:] == list(in_rounds(cells, trials=2, seed=7))[16:]
    second = [cell.study for trial, cell in turns if trial == 2]
    assert second != sorted(second, key=[STUDY.name, "another"].index)

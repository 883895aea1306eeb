from __future__ import annotations

from dataclasses import asdict, fields, replace

from crossover.config.options import training_options
from crossover.config.studies import TRAINING_PATH, Cell, Quality, Study, quality_of, trained_cells
from crossover.config.words import AXES
from crossover.tables.columns import Training
from train_model import parse_arguments

STUDY = Study(
    name="quality",
    title="",
    question="",
    workload="higgs_mlp",
    sizes=(10, 100),
    batch_sizes=(32,),
    protocols=("as_published", "resident"),
    precisions=("fp32", "amp-bf16"),
    executions=("eager", "compile"),
    devices=("cpu", "cuda"),
    timed=False,
    quality={"epochs": 2, "seeds": 3, "test_share": 0.25, "classes": ["background", "signal"]},
)


def test_what_changes_no_model_is_trained_once() -> None:
    cells = trained_cells(STUDY, ["cpu", "cuda", "mps"])
    assert {(cell.size, cell.precision, cell.device) for cell in cells} == {
        (size, precision, device)
        for size in (10, 100)
        for precision in ("fp32", "amp-bf16")
        for device in ("cpu", "cuda")
    }
    assert len(cells) == 8
    assert {(cell.protocol, cell.execution) for cell in cells} == {("resident", "eager")}


def test_a_study_that_only_trains_times_nothing() -> None:
    assert STUDY.cells(["cpu"]) == []


def test_a_study_without_quality_trains_nothing() -> None:
    study = Study(**{**vars(STUDY), "quality": None, "timed": True})
    assert trained_cells(study, ["cpu"]) == []
    assert quality_of(study) is None
    assert len(study.cells(["cpu"])) == 16


def test_a_training_has_a_path_of_its_own() -> None:
    (cell, *_) = trained_cells(STUDY, ["cuda"])
    path = TRAINING_PATH.format(**asdict(cell), seed=4)
    assert path == "quality/higgs_mlp/plain/resident/batch-32/fp32/eager/size-10/cuda/seed-4"


def test_the_command_line_gives_back_the_training() -> None:
    cell = Cell("quality", "higgs_mlp", "resident", 32, "amp-bf16", "eager", 10, "cuda")
    quality = quality_of(STUDY)
    assert quality == Quality(2, 3, 0.25, ["background", "signal"])
    options = training_options(cell, quality, cpu_threads=3, time_limit_s=1.5)
    parsed = parse_arguments([*options, "--seed=4", "--dataset=a", "--output=b"])
    assert {axis: getattr(parsed, axis) for axis in AXES} == {axis: getattr(cell, axis) for axis in AXES}
    assert (parsed.epochs, parsed.test_share, parsed.seed) == (2, 0.25, 4)
    assert (parsed.cpu_threads, parsed.time_limit_s, parsed.isolation) == (3, 1.5, "auto")


def test_a_row_names_its_cell() -> None:
    assert tuple(f.name for f in fields(Training))[1 : len(AXES) + 1] == AXES


def test_the_number_of_threads_changes_no_model() -> None:
    assert {cell.device for cell in trained_cells(replace(STUDY, cpu_threads=(1,)), ["cpu", "cuda"])} == {"cpu", "cuda"}

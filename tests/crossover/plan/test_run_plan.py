from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace

import pytest

from crossover.config.studies import PRESETS
from crossover.plan.rounds import Rounds
from crossover.plan.run_plan import RunPlan, cell_of
from plans import CLASSES, configured, planned

STUDIES = ["disc_depth", "hsf_width"]


def plan(**values: object) -> RunPlan:
    return planned(configured(**{"studies": STUDIES, "trials": 2, **values}))


def of_one_study(**changes: object) -> RunPlan:
    """One study with two sizes on a CPU and a GPU."""
    whole = plan()
    return replace(whole, studies=(replace(whole.studies[0], **{"sizes": (2, 3), "ways": None, **changes}),))


def test_every_cell_has_a_row_for_each_trial() -> None:
    found = of_one_study()
    assert [(cell.size, cell.device) for cell in found.cells] == [(2, "cpu"), (2, "cuda"), (3, "cpu"), (3, "cuda")]
    rows = found.rows(found.trials_of_grid)
    assert len(rows) == len(set(rows)) == 4 * 2
    folder = "results/cells/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-2/cpu"
    assert rows[:2] == [f"{folder}/trial-1.parquet", f"{folder}/trial-2.parquet"]
    assert found.rows(found.trials_of_grid * 2) == rows


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_a_path_and_its_wildcards_name_the_same_cell(classes: dict[str, dict[str, object]] | None) -> None:
    found = replace(plan(devices=["cpu", "cuda"]), classes=classes)
    for cell in found.cells:
        wildcards = {axis: str(value) for axis, value in cell.values.items()}
        assert cell_of(wildcards) == cell
        assert found.rows([(cell, 1)]) == [found.row_pattern.format(**wildcards, trial=1, again="")]


def test_a_class_without_devices_takes_those_of_the_run() -> None:
    found = replace(of_one_study(cpu_threads=("half",)), own_devices=("cpu",), classes=CLASSES)
    assert found.devices == ("cpu", "cuda")
    machines = Counter((cell.machine, cell.device) for cell in found.cells)
    assert machines == {("a100", "cpu"): 2, ("a100", "cpu-half"): 2, ("h200", "cuda"): 2}


def test_the_largest_batch_is_searched_once_for_all_batch_sizes_and_threads() -> None:
    found = of_one_study(batch_sizes=(50, 100), cpu_threads=(1, "half"))
    assert len(found.cells) == 2 * 2 * 4
    folder = "results/largest_batch/disc_depth/disc_mlp/plain/resident/fp32/eager"
    assert list(found.searches) == [f"{folder}/size-{size}/{d}.json" for size in (2, 3) for d in ("cpu", "cuda")]
    assert found.searches_asked == []
    asked = of_one_study(largest_batch=True)
    assert asked.searches_asked == list(asked.searches)


def test_a_training_has_a_row_for_each_seed_whatever_is_timed() -> None:
    found = of_one_study(quality={"seeds": 2}, timed=False, executions=("eager", "compile"))
    assert (found.cells, found.measured, found.searches) == ([], [], {})
    folder = "results/trainings/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-2/cpu"
    assert found.trainings[:2] == [f"{folder}/seed-1.parquet", f"{folder}/seed-2.parquet"]
    assert len(found.trainings) == 2 * 2 * 2
    assert plan().trainings == []
    assert replace(found, seed=10).trainings[0].endswith("seed-11.parquet")


@pytest.mark.parametrize(("trials", "measured"), [(None, [1, 2]), (1, [1]), (5, [1, 2])])
def test_a_study_may_have_fewer_trials_than_the_run_never_more(trials: int | None, measured: list[int]) -> None:
    found = of_one_study(trials=trials, sizes=(2,), devices=("cpu",))
    assert [trial for _, trial in found.trials_of_grid] == measured
    places = Rounds(found, at_once=1)._places
    assert sorted(trial for _, trial in places) == measured


def test_only_refined_studies_start_a_stage() -> None:
    found = plan()
    assert found.stages == {"disc_depth": 3, "hsf_width": 3}  # all of the trials come first
    assert replace(found, trials=8).last_stage == 4
    fixed = replace(found, studies=(found.studies[0], replace(found.studies[1], refinement=None)))
    assert fixed.stages == {"disc_depth": 3}
    assert {cell.study for cell, _ in fixed.refined_trials()} == {"disc_depth"}
    assert replace(found, own_devices=("cpu",)).last_stage == 0


def test_a_study_is_answered_after_its_preview_unless_the_run_ends_with_it() -> None:
    found = plan()
    assert found.first_answers == ["disc_depth", "hsf_width"]
    assert replace(found, trials=1).first_answers == ["disc_depth"]
    mistaken = [replace(own, latency_mistakes=own.name == "hsf_width") for own in found.studies]
    assert replace(found, studies=mistaken).first_answers == ["disc_depth"]
    assert {(cell.study, trial) for cell, trial in found.preview("hsf_width")} == {("hsf_width", 1)}


def test_a_plan_is_made_of_its_values() -> None:
    for found in (plan(), replace(plan(), classes=CLASSES)):
        assert RunPlan.from_values(asdict(found)) == found


def test_ways_add_one_trial_each_and_change_nothing_else() -> None:
    plain, found = of_one_study(), of_one_study(ways={"executions": ["compile", "cuda-graph"], "sizes": [2]})
    assert (found.cells, found.measured, list(found.searches)) == (plain.cells, plain.measured, list(plain.searches))
    added = [trial for trial in found.trials_of_grid if trial not in plain.trials_of_grid]
    assert [(cell.execution, cell.device, number) for cell, number in added] == [
        ("compile", "cpu", 1),
        ("compile", "cuda", 1),
        ("cuda-graph", "cuda", 1),
    ]
    priority = Rounds(found, at_once=1).priority
    later = [priority({**cell.values, "trial": number}) for cell, number in found.trials_of_grid if number == 2]
    assert min(priority({**cell.values, "trial": number}) for cell, number in added) > max(later)
    assert set(found.refined_trials()) == set(found.trials_of_grid)
    assert RunPlan.from_values(asdict(found)).trials_of_grid == found.trials_of_grid


def test_a_study_of_crossovers_begins_with_few_trials_of_every_size() -> None:
    found = replace(plan(), trials=8)
    assert {study: found.first_trials(study) for study in ("disc_depth", "hsf_width")} == {
        "disc_depth": 4,
        "hsf_width": 4,
    }
    assert {trial for _, trial in found.trials_of_grid} == {1, 2, 3, 4}
    assert replace(found, own_devices=("cpu",)).rounds == 4  # a GPU measured elsewhere may stand in
    fixed = replace(found, studies=(found.studies[0], replace(found.studies[1], refinement=None)))
    assert (fixed.first_trials("hsf_width"), fixed.rounds) == (8, 8)
    quick = replace(found, trials=3, refinement=PRESETS["quick"].refinement)
    assert (quick.rounds, quick.last_stage, quick.cells_of_ways) == (1, 1, [])

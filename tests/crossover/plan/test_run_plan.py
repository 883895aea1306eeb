from __future__ import annotations

import re
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from crossover.config.studies import PRESETS
from crossover.plan import run_plan
from crossover.plan.rounds import Rounds
from crossover.plan.run_plan import RunPlan, cell_of_wildcards
from plans import CLASSES, ROOT, configured, planned

STUDIES = ["disc_depth", "hsf_width"]


def plan(**values: object) -> RunPlan:
    return planned(configured(**{"studies": STUDIES, "trials": 2, **values}))


def of_one_study(**changes: object) -> RunPlan:
    whole = plan()
    return replace(whole, studies=(replace(whole.studies[0], **{"sizes": (2, 3), "candidates": None, **changes}),))


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_a_path_and_its_wildcards_name_the_same_cell(classes: dict[str, dict[str, object]] | None) -> None:
    run = replace(plan(devices=["cpu", "cuda"]), classes=classes)
    for cell in run.cells:
        wildcards = {axis: str(value) for axis, value in cell.values.items()}
        assert cell_of_wildcards(wildcards) == cell


def shown_outputs(classes: object) -> dict[str, str]:
    """The pattern of each rule's output in rules/measure.smk."""
    text = (ROOT / "rules" / "measure.smk").read_text()
    names = {
        "RESULTS": "results",
        "CONFIG": SimpleNamespace(keys=SimpleNamespace(cluster=SimpleNamespace(classes=classes))),
    }
    for name, value in re.findall(r"^([A-Z_]+) = (.+)$", text, flags=re.MULTILINE):
        names[name] = eval(value, dict(names))
    rule = re.compile(r"^rule (\w+):\n.*?^    output:\n +\w+=([^\n]+),\n", flags=re.MULTILINE | re.DOTALL)
    return {name: eval(output, dict(names)) for name, output in rule.findall(text)}


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_the_plan_asks_for_the_paths_that_the_rules_show(classes: dict[str, dict[str, object]] | None) -> None:
    run = replace(of_one_study(quality={"seeds": 1}, batch_sizes=(50, 100)), classes=classes)
    outputs = shown_outputs(classes)

    def paths(rule: str, **wildcards: object) -> list[str]:
        return list(dict.fromkeys(outputs[rule].format(**cell.values, **wildcards) for cell in run.cells))

    trials = [(cell, 2) for cell in run.cells]
    assert run.rows(trials) == paths("measure_cell", trial=2, again="")
    assert run.rows(trials, 3) == paths("measure_cell", trial=2, again="-repeat-3")
    assert sorted(run.trainings) == sorted(paths("train_model", seed=1))
    assert list(run.searches) == paths("find_largest_batch")
    assert run.roofs == paths("probe_roofs")
    assert [run.dataset("disc_mlp")] == [outputs["make_dataset"].format(dataset="disc")]


def test_the_largest_batch_is_searched_once_for_all_batch_sizes_and_cores() -> None:
    run = of_one_study(batch_sizes=(50, 100), cpu_threads=(1, "half"))
    assert len(run.cells) == 2 * 2 * 4
    folder = "results/largest_batch/disc_depth/disc_mlp/plain/resident/fp32/eager"
    assert list(run.searches) == [f"{folder}/size-{size}/{d}.json" for size in (2, 3) for d in ("cpu", "cuda")]
    assert run.planned_searches == []
    searching = of_one_study(largest_batch=True)
    assert searching.planned_searches == list(searching.searches)


def test_a_training_has_a_row_for_each_seed_even_if_nothing_is_timed() -> None:
    run = of_one_study(quality={"seeds": 2}, timed=False, executions=("eager", "compile"))
    assert (run.cells, run.measured, run.searches) == ([], [], {})
    folder = "results/trainings/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-2/cpu"
    assert run.trainings[:2] == [f"{folder}/seed-1.parquet", f"{folder}/seed-2.parquet"]
    assert len(run.trainings) == 2 * 2 * 2
    assert plan().trainings == []
    assert replace(run, seed=10).trainings[0].endswith("seed-11.parquet")


@pytest.mark.parametrize(("trials", "measured"), [(None, [1, 2]), (1, [1]), (5, [1, 2])])
def test_a_study_may_have_fewer_trials_than_the_run_but_not_more(trials: int | None, measured: list[int]) -> None:
    run = of_one_study(trials=trials, sizes=(2,), devices=("cpu",))
    assert [trial for _, trial in run.trials_of_grid] == measured
    priorities = Rounds(run, at_once=1)._priorities
    assert sorted(trial for _, trial in priorities) == measured


def test_only_refined_studies_have_stages() -> None:
    run = plan()
    assert run.stages == {"disc_depth": 3, "hsf_width": 3}  # all of the trials come first
    assert replace(run, trials=8).last_stage == 4
    fixed = replace(run, studies=(run.studies[0], replace(run.studies[1], refinement=None)))
    assert fixed.stages == {"disc_depth": 3}
    assert {cell.study for cell, _ in fixed.refined_trials()} == {"disc_depth"}
    params = fixed.refinement_params
    assert {name for values in params.values() for name in values} == {"disc_depth"}
    assert replace(run, default_devices=("cpu",)).last_stage == 0


def test_a_study_has_a_first_answer_unless_the_run_ends_with_it() -> None:
    run = plan()
    assert run.first_answers == ["disc_depth", "hsf_width"]
    assert replace(run, trials=1).first_answers == ["disc_depth", "hsf_width"]
    few = replace(run.studies[1], sizes=(16, 64), protocols=("resident",))
    assert replace(run, trials=1, studies=(run.studies[0], few)).first_answers == ["disc_depth"]
    training = replace(run.studies[0], timed=False)
    assert replace(run, trials=1, studies=(training,)).first_answers == []
    mistaken = [replace(study, latency_mistakes=study.name == "hsf_width") for study in run.studies]
    assert replace(run, studies=mistaken).first_answers == ["disc_depth"]
    assert {(cell.study, trial) for cell, trial in run.preview("hsf_width")} == {("hsf_width", 1)}


def test_candidates_add_one_trial_each_and_change_nothing_else() -> None:
    plain, run = of_one_study(), of_one_study(candidates={"executions": ["compile", "cuda-graph"]})
    assert (run.cells, run.measured, list(run.searches)) == (plain.cells, plain.measured, list(plain.searches))
    added = [trial for trial in run.trials_of_grid if trial not in plain.trials_of_grid]
    assert sorted((cell.execution, cell.device, cell.size, number) for cell, number in added) == [
        *(("compile", device, size, 1) for device in ("cpu", "cuda") for size in (2, 3)),
        *(("cuda-graph", "cuda", size, 1) for size in (2, 3)),
    ]
    priority = Rounds(run, at_once=1).priority
    later = [priority({**cell.values, "trial": number}) for cell, number in run.trials_of_grid if number == 2]
    assert min(priority({**cell.values, "trial": number}) for cell, number in added) > max(later)
    assert set(run.refined_trials()) == set(run.trials_of_grid)
    assert RunPlan.from_values(asdict(run)).trials_of_grid == run.trials_of_grid


def test_a_study_of_crossovers_begins_with_few_trials_per_cell() -> None:
    run = replace(plan(), trials=8)
    assert run.first_trials == {"disc_depth": 3, "hsf_width": 3}
    assert {trial for _, trial in run.trials_of_grid} == {1, 2, 3}
    alone = replace(run, default_devices=("cpu",), trials_given=True)
    assert alone.rounds == 8  # no stage can follow
    assert replace(alone, trials_given=False).rounds == replace(alone, has_references=True).rounds == 3
    fixed = replace(run, studies=(run.studies[0], replace(run.studies[1], refinement=None)))
    assert (fixed.first_trials["hsf_width"], fixed.rounds) == (8, 8)
    quick = replace(run, trials=3, refinement=PRESETS["quick"].refinement)
    assert (quick.rounds, quick.last_stage, quick.cells_of_candidates) == (1, 2, [])


@pytest.mark.parametrize(("most", "later"), [(12, []), (11, [2, 3])])
def test_only_a_large_grid_is_planned_round_by_round(
    monkeypatch: pytest.MonkeyPatch, most: int, later: list[int]
) -> None:
    """Two sizes on two devices and three rounds are twelve trials."""
    monkeypatch.setattr(run_plan, "MOST_AT_ONCE", most)
    run = replace(of_one_study(refinement=None), trials=3)
    assert len(run.trials_of_grid) == 12
    assert list(run.later_rounds) == later
    rounds = Rounds(run, at_once=1)
    priorities = {trial: rounds.priority({**trial[0].values, "trial": trial[1]}) for trial in run.trials_of_grid}
    second = [trial for trial in priorities if trial[1] == 2]
    assert rounds.last_of(2) == min(second, key=priorities.__getitem__)


def test_several_gpus_run_eagerly_on_resident_batches_and_have_roofs_but_no_searches() -> None:
    devices = ["cpu", "cuda", "cuda-2"]
    run = replace(
        of_one_study(executions=("eager", "compile"), protocols=("resident", "from_host", "each"), largest_batch=True),
        default_devices=tuple(devices),
    )
    cells = {(cell.execution, cell.protocol, cell.device) for cell in run.cells if cell.size == 2}
    assert {cell for cell in cells if cell[2] == "cuda-2"} == {("eager", p, "cuda-2") for p in ("resident", "each")}
    assert {device for _, protocol, device in cells if protocol == "each"} == {"cuda", "cuda-2"}
    assert "results/roofs/cuda-2.json" in run.roofs
    assert not any("cuda-2" in path for path in run.searches)

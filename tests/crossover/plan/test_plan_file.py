from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.plan import plan_file
from crossover.plan.plan_file import find_references, planned_rows, repeated_rows
from crossover.plan.stages import write_stage
from plans import configured, planned
from write_plan import write_plan

KEYS = [{"key": "a key", "parts": {"--seed": "0"}}]


def written(folder: Path, **values: object) -> Path:
    config = configured(trials=2, **values)
    run = planned(config)
    run = replace(run, studies=(replace(run.studies[0], sizes=(2, 3), candidates=None),))
    path = folder / "plan.json"
    write_plan(run, config.complete, KEYS, True, ["h200"], "no GPU", path)
    return path


def test_a_plan_contains_config_studies_and_rows(tmp_path: Path) -> None:
    plan = plan_file.read(written(tmp_path, seed=5))
    assert (plan.trials, plan.several_hosts, plan.references, plan.note) == (2, True, ["h200"], "no GPU")
    assert plan.devices == ["cpu", "cuda"]
    assert plan.config["seed"] == 5
    assert plan.studies["disc_depth"].sizes == (2, 3)
    assert len(plan.cells) == 4
    assert len(plan.rows) == 4 * 2
    assert f"results/cells/{Cell(**plan.cells[0]).path}/trial-1.parquet" == plan.rows[0]
    assert (plan.trainings, plan.searches) == ([], [])
    assert plan.expected_keys == {"a key"}


def test_references_are_found_from_the_folder_of_the_run(tmp_path: Path) -> None:
    plan = replace(plan_file.read(written(tmp_path)), references=["../mine/h200", "gone"])
    for folder in ("mine/h200", "run/results", "moved"):
        (tmp_path / folder).mkdir(parents=True)
    assert find_references(plan, tmp_path / "run" / "results") == [tmp_path / "run" / "../mine/h200"]
    assert find_references(plan, tmp_path / "moved") == []
    assert find_references(plan, tmp_path / "moved", str(tmp_path / "run")) == [tmp_path / "run" / "../mine/h200"]


def test_planned_rows_include_the_stages_of_refinement(tmp_path: Path) -> None:
    plan = plan_file.read(written(tmp_path))
    cell = Cell(**plan.cells[0])
    new, gone = replace(cell, size=7), replace(cell, study="gone")
    write_stage(tmp_path / "refinement" / "stage-1.json", 1, {cell: [1, 3], new: [1], gone: [1]}, [])
    added = set(planned_rows(plan, tmp_path)) - {tmp_path / Path(row).relative_to("results") for row in plan.rows}
    assert added == {tmp_path / f"cells/{cell.path}/trial-3.parquet", tmp_path / f"cells/{new.path}/trial-1.parquet"}


def test_repeated_rows_are_those_planned_up_to_the_configs_limit(tmp_path: Path) -> None:
    plan = plan_file.read(written(tmp_path, repeat_disturbed=2))
    cell = Cell(**plan.cells[0])
    assert repeated_rows(plan, tmp_path) == []
    for number in (1, 2, 3):
        write_stage(tmp_path / "repeats" / f"repeat-{number}.json", number, {cell: [1]}, [])
    write_stage(tmp_path / "repeats" / "repeat-1-rest.json", 1, {cell: [5]}, [])  # of an earlier run
    folder = tmp_path / "cells" / cell.path
    assert repeated_rows(plan, tmp_path) == [folder / f"trial-1-repeat-{number}.parquet" for number in (1, 2)]
    write_stage(tmp_path / "repeats" / "repeat-1.json", 1, {cell: [1, 2, 3]}, [])
    rows = [f"trial-{row}.parquet" for row in ("1-repeat-1", "2-repeat-1", "3-repeat-1", "5-repeat-1", "1-repeat-2")]
    assert repeated_rows(plan, tmp_path) == [folder / row for row in rows]
    assert not set(repeated_rows(plan, tmp_path)) & set(planned_rows(plan, tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config": {}}'])
def test_a_file_that_is_not_a_plan_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"plan\.json: not (a readable plan|the plan of a run); delete it"):
        plan_file.read(path)


def test_the_plan_contains_published_rows(tmp_path: Path) -> None:
    published = plan_file.read(written(tmp_path, studies=["hsf_width"])).studies["hsf_width"].published
    assert published is not None
    assert published.crossover == (100, 1000)
    assert {"device": "cpu", "size": 5, "run_time_s": 172.0}.items() <= published.rows[0].items()

"""Old results are measured again exactly where something that changes a time has changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from crossover.config.config_keys import Configuration
from crossover.config.configuration import read_configuration
from crossover.machine import code_key
from crossover.machine.environment import timed_variables
from crossover.plan.jobs import Jobs
from crossover.plan.keys import outdated_datasets, outdated_results, reasons_text, results_in
from crossover.plan.run_plan import RunPlan
from crossover.tables.columns import Measurement, write_record
from plans import HERE, ROOT

NET = """
import json, os
import numpy as np
import helper
def build(size, batch_size):
    layers = json.load(open("layers.json")) + int(os.environ.get("DEPTH", 1))
    return helper.net(size, layers)
def other(size, batch_size):
    return build(size, batch_size)
"""
FILES = {
    "net.py": NET,
    "helper.py": "WIDTH = 1\n",
    "layers.json": "1",
    "notes.md": "a",
    "signal.csv": "1\n2\n",
    "background.csv": "3\n",
}
STUDY = {"title": "A net", "question": "Which?", "model": "net.py:build", "sizes": [16], "batch_sizes": [8]}
HIGGS = {"title": "Higgs", "question": "Which?", "workload": "higgs_mlp", "sizes": [5], "batch_sizes": [32]}
MACHINE = replace(
    HERE,
    hardware={"cpu": "CPU A, 2 cores", "cuda": "GPU B beside CPU A, 2 cores"},
    conditions={
        "cpu": {"governor": "performance"},
        "cuda": {"power limit of the GPU": "700.0"},
    },
    compilers="g++ 1000",
)


class Project:
    """A folder with FILES, two studies, and made-up results of all their first trials."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = {"studies": ["net.yaml", "higgs.yaml"], "trials": 1, "results": "results"}
        self.config["datasets"] = {"higgs": {"csv": {"signal": "signal.csv", "background": "background.csv"}}}
        self.machine = MACHINE
        net = {**STUDY, "executions": ["eager", "compile"]}
        self.studies: dict[str, dict[str, Any]] = {"net": net, "higgs": HIGGS}

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def configuration(self) -> Configuration:
        for name, study in self.studies.items():
            self.write(f"{name}.yaml", json.dumps(study))
        return read_configuration([("mine.yaml", self.config)], ROOT / "config")

    def jobs(self) -> Jobs:
        machine = replace(self.machine, variables=timed_variables(os.environ))
        return Jobs(self.configuration(), machine, 2)

    def measure(self) -> None:
        jobs = self.jobs()
        plan = RunPlan.of(jobs.config, ("cpu", "cuda"))
        for trial in plan.trials_of_grid:
            (path,) = plan.rows([trial])
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            key = jobs.key("trial", {**vars(trial[0]), "trial": "1"})
            write_record(Measurement(**trial[0].values, trial=1, plan_key=key.key), Path(path))
        keys = jobs.keys(cell.values for cell in plan.cells)
        Path(plan.results, "plan.json").write_text(json.dumps({"keys": keys}))

    def outdated(self) -> tuple[set[str], list[str]]:
        """The studies, executions and devices of planned results that are outdated, and the reasons."""
        jobs = self.jobs()
        folder = Path(jobs.config.results)
        planned = RunPlan.of(jobs.config, ("cpu", "cuda")).results_of_grid
        outdated = outdated_results(folder, jobs.key_of_result, jobs.time_limit_s, 1)
        outdated = {path: outdated[path] for path in planned if path in outdated}
        cells = {str(path): wildcards for path, _, wildcards in results_in(folder)}
        reasons = sorted({reason for texts in outdated.values() for reason in texts})
        return {" ".join(cells[path][axis] for axis in ("study", "execution", "device")) for path in outdated}, reasons


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each test copies."""
    made = Project(tmp_path_factory.mktemp("measured"))
    for name, text in FILES.items():
        made.write(name, text)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(made.folder)
        made.measure()
        assert made.outdated() == (set(), [])
    return made.folder


@pytest.fixture
def project(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    copied = Project(shutil.copytree(measured, tmp_path / "project"))
    monkeypatch.chdir(copied.folder)
    return copied


def edit(name: str, old: str, new: str) -> Callable[[Project, pytest.MonkeyPatch], None]:
    def change(project: Project, _: pytest.MonkeyPatch) -> None:
        text = (project.folder / name).read_text()
        assert old in text
        project.write(name, text.replace(old, new))

    return change


def config(**values: Any) -> Callable[[Project, pytest.MonkeyPatch], None]:
    return lambda project, _: project.config.update(values)


def study(**values: Any) -> Callable[[Project, pytest.MonkeyPatch], None]:
    return lambda project, _: project.studies["net"].update(values)


def variable(name: str, value: str) -> Callable[[Project, pytest.MonkeyPatch], None]:
    return lambda _, monkeypatch: monkeypatch.setenv(name, value)


def machine(**values: Any) -> Callable[[Project, pytest.MonkeyPatch], None]:
    def change(project: Project, _: pytest.MonkeyPatch) -> None:
        project.machine = replace(project.machine, **values)

    return change


def condition(device: str, name: str, value: str) -> Callable[[Project, pytest.MonkeyPatch], None]:
    conditions = {**MACHINE.conditions, device: {**MACHINE.conditions[device], name: value}}
    return machine(conditions=conditions)


def newer_numpy(_: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_key.version_of
    monkeypatch.setattr(code_key, "version_of", lambda name: {name: "99"} if name == "numpy" else before(name))
    monkeypatch.setattr(code_key, "installed_with", lambda _packages: {"numpy": "99"})


def edited_measurement(_: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_key._digests

    def digests(files: Mapping[str, Path]) -> dict[str, str]:
        edited = {"crossover.measurement.clock.timing": "edited"} if code_key.SERVER in files else {}
        return before(files) | edited

    monkeypatch.setattr(code_key, "_digests", digests)


EAGER = {"net eager cpu", "net eager cuda"}
COMPILED = {"net compile cpu", "net compile cuda"}
NETS = EAGER | COMPILED
ON_HIGGS = {"higgs eager cpu", "higgs eager cuda"}
ALL = NETS | ON_HIGGS
ON_CPU = {cell for cell in ALL if cell.endswith("cpu")}

MEASURED_AGAIN = {
    "the model is edited": (edit("net.py", "size, layers", "2 * size, layers"), NETS, "file net.py has changed"),
    "a helper of the model is edited": (edit("helper.py", "1", "2"), NETS, "file helper.py has changed"),
    "a data file of the model is edited": (edit("layers.json", "1", "2"), NETS, "file layers.json has changed"),
    "a variable that the model reads": (variable("DEPTH", "3"), NETS, "variable DEPTH was not set, is 3"),
    "another function of the file": (study(model="net.py:other"), NETS, "the function of the model"),
    "another seed": (config(seed=5), ALL, "seed was 0, is 5"),
    "another effort": (config(effort={"blocks_min": 7}), ALL, "blocks_min was"),
    "another effort of a study": (study(effort={"blocks_min": 7}), NETS, "blocks_min was"),
    "latencies": (study(latency_steps=400), NETS, "latency_steps was 0, is 400"),
    "another number of threads": (config(cpu_threads=1), ALL, "cpu_threads was auto, is 1"),
    "instructions of MKL": (variable("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"), ALL, "MKL_ENABLE_INSTRUCTIONS is new"),
    "another torch": (machine(torch_version="2.14.0"), ALL, "torch was 2.13.0, is 2.14.0"),
    "another driver": (machine(driver_version="590.1"), ALL - ON_CPU, "driver was 580.1, is 590.1"),
    "another version of a package": (newer_numpy, NETS, "package numpy was"),
    "another CPU": (
        machine(hardware={**MACHINE.hardware, "cpu": "CPU Z, 2 cores"}),
        ON_CPU,
        "hardware was CPU A, 2 cores, is CPU Z, 2 cores",
    ),
    "another governor": (condition("cpu", "governor", "powersave"), ON_CPU, "governor was performance, is powersave"),
    "another power limit": (
        condition("cuda", "power limit of the GPU", "350.0"),
        ALL - ON_CPU,
        "power limit of the GPU was 700.0, is 350.0",
    ),
    "another compiler": (machine(compilers="clang++ 1"), COMPILED, "compilers was g++ 1000, is clang++ 1"),
    "code of the measurement": (edited_measurement, ALL, "code of the measurement has changed"),
    "other content of a dataset": (edit("signal.csv", "2", "4"), ON_HIGGS, "dataset higgs has changed"),
    "a dataset with other options": (config(datasets={"higgs": {"rows": 900}}), ON_HIGGS, "dataset higgs has changed"),
}


@pytest.mark.parametrize("what", MEASURED_AGAIN)
def test_a_change_of_what_changes_a_time_measures_exactly_its_cells_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    change, cells, reason = MEASURED_AGAIN[what]
    change(project, monkeypatch)
    outdated, reasons = project.outdated()
    assert outdated == cells
    assert any(text.startswith(reason) or reason in text for text in reasons), reasons
    project.measure()
    assert project.outdated() == (set(), [])


def new_times(project: Project, _: pytest.MonkeyPatch) -> None:
    for number, path in enumerate(sorted(project.folder.rglob("*"), reverse=True)):
        os.utime(path, (10**9 + number, 10**9 + number))


def another_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = project.folder.with_name("copy")
    shutil.copytree(project.folder, copy, copy_function=shutil.copyfile)
    shutil.rmtree(project.folder)
    project.folder = copy
    monkeypatch.chdir(copy)


def from_another_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start elsewhere with absolute paths of studies and results."""
    project.config |= {"studies": [str(project.folder / f"{name}.yaml") for name in project.studies]}
    project.config["results"] = str(project.folder / "results")
    csv = {name: str(project.folder / f"{name}.csv") for name in ("signal", "background")}
    project.config["datasets"] = {"higgs": {"csv": csv}}
    elsewhere = project.folder.with_name("elsewhere")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)


KEPT = {
    "new times of all files": new_times,
    "a copy in another folder": another_folder,
    "a start from another folder": from_another_folder,
    "a comment": edit("net.py", "import helper\n", "import helper  # a comment\n"),
    "a docstring": edit("helper.py", "WIDTH", '"""Widths."""\n\nWIDTH'),
    "a file that the model does not name": edit("notes.md", "a", "b"),
    "further trials": config(trials=5),
    "further sizes": study(sizes=[16, 32, 64]),
    "another title and question": study(title="Nets", question="What?"),
    "another time limit": config(time_limit_s=77),
    "fewer studies": config(studies=["net.yaml"]),
    "a variable that changes no time": variable("TERM", "dumb"),
    "threads set by Snakemake": variable("OMP_NUM_THREADS", "1"),
}


@pytest.mark.parametrize("what", KEPT)
def test_a_change_that_changes_no_time_measures_nothing_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    KEPT[what](project, monkeypatch)
    assert project.outdated() == (set(), [])


@pytest.mark.parametrize("reason", ["not done after 30 s", "so long, more than the limit of 30 s"])
def test_a_higher_time_limit_reruns_only_jobs_that_the_limit_ended(project: Project, reason: str) -> None:
    project.config["time_limit_s"] = 30
    (path,) = Path("results/cells/higgs").rglob("cpu/trial-1.parquet")
    compressed = "; raise time_limit_s, 30 s; 0 s; raise time" * 20
    facts = {"status": "timeout", "reason": f"{compressed}: {reason}; raise time_limit_s; not begun: profile"}
    row = pq.read_table(path).to_pylist()[0]
    write_record(Measurement(**row | facts), path)
    assert project.outdated() == (set(), [])
    project.config["time_limit_s"] = 29
    assert project.outdated() == (set(), [])
    project.config["time_limit_s"] = 60.5
    assert project.outdated() == ({"higgs eager cpu"}, ["time_limit_s was 30, is 60.5"])


def test_a_note_says_what_has_changed() -> None:
    texts = {"a": ["file net.py has changed", "seed was 0, is 1"], "b": ["file net.py has changed"]}
    assert reasons_text(texts) == "2 results are measured again: file net.py has changed; seed was 0, is 1"


def test_a_dataset_that_does_not_name_its_key_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    for name, text in {"old": "key former", "new": "key planned"}.items():
        (tmp_path / "datasets" / f"{name}.safetensors").write_text(text)
    keys = dict.fromkeys(("old", "new", "not made"), "planned")
    assert outdated_datasets(tmp_path, keys) == [str(tmp_path / "datasets" / "old.safetensors")]


def test_results_of_each_kind_are_found_by_their_paths(tmp_path: Path) -> None:
    cell = "s/model/plain/resident/batch-8/fp32/eager/size-4/cpu"
    paths = {
        f"cells/{cell}/trial-2-repeat-1.parquet": ("trial", {"trial": "2", "again": "-repeat-1"}),
        f"cells/{cell.replace('/cpu', '/node-a/cpu')}/trial-1.parquet": ("trial", {"machine": "node-a"}),
        f"trainings/{cell}/seed-3.parquet": ("training", {"seed": "3"}),
        f"largest_batch/{cell.replace('/batch-8', '')}.json": ("batch_try", {"size": "4"}),
        "roofs/cuda.json": ("probe", {"device": "cuda"}),
        "roofs/node-a/cuda.json": ("probe", {"machine": "node-a"}),
    }
    for name in [*paths, "cells/other.parquet", "plan.json"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = {path.relative_to(tmp_path).as_posix(): (kind, values) for path, kind, values in results_in(tmp_path)}
    assert found.keys() == paths.keys()
    for name, (kind, values) in paths.items():
        assert found[name][0] == kind
        assert found[name][1].items() >= values.items()


@pytest.mark.parametrize("key", ["0123456789abcdef" * 2, "00000000" * 4])
def test_the_key_of_a_row_is_plain_text_in_its_file(tmp_path: Path, key: str) -> None:
    path = tmp_path / "row.parquet"
    write_record(Measurement(plan_key=key), path)
    assert key.encode() in path.read_bytes()

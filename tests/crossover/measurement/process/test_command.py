"""Jobs as JSON on a command line, as rules write them and as a user may."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.models import Model, Table
from crossover.config.studies import BatchSearch, Cell, Effort
from crossover.config.words import PRECISIONS
from crossover.errors import UserError
from crossover.measurement.process.command import check_writable, read_job, read_own_model
from crossover.measurement.process.jobs import ProbeJob, TrainingJob, TrialJob, TryJob
from crossover.plan.jobs import model_values
from plans import jobs

CELL = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 4, "cpu")
WILDCARDS = {axis: str(value) for axis, value in CELL.values.items() if axis != "machine"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("def build(n): ...\ndef fixed(): ...\ndef function(n, device): return n\n")
    return tmp_path


def read(kind: Any, job: dict[str, Any], *options: str) -> Any:
    return read_job(kind, "", [json.dumps(job), "--device=cpu", "--dataset=a", "--output=b", *options])


def test_a_job_of_the_plan_is_read_with_its_options() -> None:
    made = jobs(effort={"blocks_min": 7}, seed=4, time_limit_s=90, largest_batch={"memory_limit_gb": 8})
    trial = read(TrialJob, made.job("trial", {**WILDCARDS, "trial": "2", "again": "-repeat-3"}), "--trial=2")
    assert (trial.cell, trial.effort.blocks_min, trial.seed, trial.time_limit_s) == (CELL, 7, 4, 90)
    assert (trial.trial, trial.repeat, trial.cpu_threads, trial.dataset, trial.output) == (2, 3, "auto", "a", "b")
    assert trial.plan_key == made.key("trial", WILDCARDS).key
    without_batch = {axis: value for axis, value in WILDCARDS.items() if axis != "batch_size"}
    search = read(TryJob, made.job("batch_try", without_batch), "--cpu-threads=2")
    assert (search.cell.batch_size, search.cpu_threads, search.memory_limit_bytes) == (64, 2, 8_000_000_000)
    (study,) = made.config.studies
    made = replace(
        made, config=replace(made.config, studies=(replace(study, quality={"epochs": 2, "test_share": 0.25}),))
    )
    training = read(TrainingJob, made.job("training", {**WILDCARDS, "seed": "9"}), "--seed=9")
    assert (training.cell, training.epochs, training.test_share, training.seed) == (CELL, 2, 0.25, 9)
    probe = read(ProbeJob, made.job("probe", {"device": "cpu", "machine": "h200"}))
    assert (probe.cell.machine, set(probe.precisions) <= set(PRECISIONS)) == ("h200", True)


def test_a_job_by_hand_needs_only_its_cell() -> None:
    job = read(TrialJob, {"cell": {"workload": "disc_mlp", "size": 4, "batch_size": 100}})
    assert (job.cell, job.effort, job.trial) == (replace(CELL, study="by_hand"), Effort(), 1)
    assert read(TryJob, {"cell": {"workload": "disc_mlp", "size": 4}}).search == BatchSearch()
    own = read(TrialJob, {"cell": {"model": "net.py:function", "size": 4, "batch_size": 1, "precision": "bf16"}}).cell
    assert (own.workload, own.model.name, own.precision, own.size) == ("model", "function", "as_written", 4)
    assert read(TrialJob, {"cell": {"model": "net.py:fixed", "size": 4, "batch_size": 1}}).cell.size == 1


@pytest.mark.parametrize(
    ("changes", "cell", "message"),
    [
        ({"efort": {}}, {}, "JOB: 'efort' is unknown; allowed: .* \\(did you mean 'effort'\\?\\)"),
        (
            {"effort": {"blocks_min": 1}},
            {},
            "effort.blocks_min: 1 is not allowed; allowed: a whole number at least 2",
        ),
        ({"effort": {"blocks_min": 2.5}}, {}, "effort.blocks_min: 2.5 is not allowed; allowed: a whole number"),
        ({"time_limit_s": "5"}, {}, "JOB.time_limit_s: '5' is not allowed; allowed: a number above 0 and at most"),
        ({"effort": 7}, {}, "effort: 7 is not allowed; allowed: an object with names and values"),
        ({"latency_steps": 300}, {}, "JOB.latency_steps: 300 is not allowed; allowed: a whole number at least 368"),
        ({"trial": 0}, {}, "JOB.trial: 0 is not allowed; allowed: a whole number at least 1"),
        ({"trial": True}, {}, "JOB.trial: True is not allowed; allowed: a whole number at least 1"),
        ({"isolation": "x"}, {}, "JOB.isolation: 'x' is not allowed; allowed: auto, server, process"),
        ({"latency_mistakes": "no"}, {}, "JOB.latency_mistakes: 'no' is not allowed; allowed: true or false"),
        ({"cpu_threads": "all"}, {}, "JOB.cpu_threads: 'all' is not allowed; allowed: auto, or a whole number from 1"),
        ({"plan_key": 5}, {}, "JOB.plan_key: 5 is not allowed; allowed: a text or null"),
        ({"uuid": "GPU-1"}, {}, "JOB: 'uuid' is unknown; allowed: "),
        ({}, {"study": 5}, "cell.study: 5 is not allowed; allowed: a text"),
        ({}, {"device": "cuda"}, "cell.device: the option --device has it; leave it out"),
        ({}, {"model": {"origin": "net.py", "name": 5}}, "cell.model.name: 5 is not allowed; allowed: a text"),
        (
            {},
            {"model": {"origin": "net.py", "name": "build", "table": {"file": "t.csv"}}},
            "cell.model.table: 'targets' is missing; add it",
        ),
        ({}, {"size": "4"}, "cell.size: '4' is not allowed; allowed: a whole number at least 1"),
        ({}, {"size": 0}, "cell.size: 0 is not allowed; allowed: a whole number at least 1"),
        ({}, {"size": 9999}, "cell.size: 9999 is not offered by workload 'disc_mlp'"),
        ({}, {"precision": "fp31"}, "cell.precision: 'fp31' is unknown; allowed: fp32, .*did you mean 'fp32'"),
        ({}, {"workload": "none"}, "cell.workload: 'none' is unknown; allowed: "),
        ({}, {"model": "other.py:build"}, "cell.model: there is no file other.py"),
    ],
)
def test_a_wrong_value_is_one_line(changes: dict[str, Any], cell: dict[str, Any], message: str) -> None:
    given = {"cell": {"workload": "disc_mlp", "size": 4, "batch_size": 100, **cell}, **changes}
    with pytest.raises(UserError, match=f"^{message}"):
        read(TrialJob, given)


@pytest.mark.parametrize("name", ["trial", "seed"])
def test_an_option_has_the_bounds_of_its_field(name: str) -> None:
    with pytest.raises(UserError, match=rf"^JOB.{name}: -1 is not allowed; allowed: a whole number at least"):
        read(TrialJob, {"cell": {"workload": "disc_mlp", "size": 4, "batch_size": 100}}, f"--{name}=-1")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UserError, match=r"^cell: 'size' is missing; add it"):
        read(TrialJob, {"cell": {"workload": "disc_mlp", "batch_size": 1}})
    with pytest.raises(UserError, match=r"^JOB: no JSON"):
        read_job(TrialJob, "", ["disc_mlp", "--device=cpu", "--output=b"])
    with pytest.raises(UserError, match=r"^JOB: \[1\] is not allowed; allowed: an object with names and values"):
        read_job(TrialJob, "", ["[1]", "--device=cpu", "--output=b"])
    with pytest.raises(UserError, match=r"^JOB.cell: None is not allowed; allowed: an object with names and values"):
        read(TrialJob, {"cell": None})
    with pytest.raises(UserError, match=r"^cell: 'workload' is missing; add it, or a model of yours as `model`"):
        read(TrialJob, {"cell": {"size": 2}})


@pytest.mark.parametrize(
    ("kind", "job", "message"),
    [
        (ProbeJob, {"precisions": ["fp99"]}, "JOB.precisions: .*fp99.* is not allowed; allowed: fp32, "),
        (TrainingJob, {"epochs": 0, "test_share": 0.5}, "JOB.epochs: 0 is not allowed; allowed: a whole number at lea"),
        (TrainingJob, {"epochs": 1, "test_share": 1.5}, "JOB.test_share: 1.5 is not allowed; allowed: a number above"),
        (TryJob, {"memory_limit_bytes": 5}, "JOB: 'memory_limit_bytes' is unknown"),
    ],
)
def test_a_wrong_value_of_another_kind_of_job_is_one_line(kind: Any, job: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        read(kind, {"cell": {"workload": "disc_mlp", "size": 4}, **job})


def test_only_trials_and_probes_take_several_devices() -> None:
    cell = {"workload": "disc_mlp", "size": 4}
    assert read(TrialJob, {"cell": {**cell, "batch_size": 8}}, "--device=cuda-2").cell.device == "cuda-2"
    with pytest.raises(UserError, match=r"^--device: cuda-2 is several devices; allowed here: a single one$"):
        read(TryJob, {"cell": cell}, "--device=cuda-2")


HARD_NAMES = ("income, USD", '"quoted"', "a=b", "-x", " c", "it's $HOME", "two\nlines", "{brace}")


def test_a_users_model_is_the_same_after_the_transfer_as_json(folder: Path) -> None:
    (folder / "t.csv").write_text("")
    table = Table(str(folder / "t.csv"), "-t", HARD_NAMES)
    model = Model(str(folder / "net.py"), "build", size_name="units of size", names=("a", "b"), table=table)
    values = model_values(model)
    assert (values["origin"], values["table"]["file"]) == ("net.py", "t.csv")
    assert read_own_model(json.loads(json.dumps(values))) == model
    function = Model(str(folder / "net.py"), "build", takes=("device",), axes=("m", "k"))
    assert read_own_model(json.loads(json.dumps(model_values(function)))) == function


def test_an_output_that_begins_with_a_tilde_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^--output: ~.* begins with ~, which the shell did not expand; write out the"):
        check_writable(Path("~/t.parquet"), b"PAR1")
    assert not Path("~").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_an_output_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(
        UserError, match=r"^--output: /proc/t.parquet cannot be written \(.+\); name a file in a folder"
    ):
        check_writable(Path("/proc/t.parquet"), b"PAR1")


@pytest.mark.parametrize(("content", "replaced"), [(b"", True), (b"PAR1 and so on", True), (b"# Notes", False)])
def test_an_output_replaces_only_an_earlier_output(tmp_path: Path, content: bytes, replaced: bool) -> None:
    output = tmp_path / "t.parquet"
    output.write_bytes(content)
    with (
        nullcontext() if replaced else pytest.raises(UserError, match="was not written by this script; name a new file")
    ):
        check_writable(output, b"PAR1")
    assert output.read_bytes() == content

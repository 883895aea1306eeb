from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crossover.config.studies import Cell
from crossover.config.words import AXES
from crossover.errors import UserError
from crossover.machine.counters import CpuTicks, read_counters
from crossover.machine.threads import usable_cpus
from crossover.plan.before_run import (
    budget_words,
    check_both_kinds,
    check_classes,
    check_config,
    check_device_list,
    check_executor,
    check_metrics,
    load_by_others,
    measured_elsewhere,
    notes_at_start,
    reference_files,
    reference_folders,
    studies_left_out,
    too_many_gpus,
)
from crossover.plan.run_plan import RunPlan
from crossover.tables.columns import arrow_schema
from crossover.tables.reference_files import Facts, write_facts
from plans import CLASSES, HERE, KNOWN_NODES, ROOT, UNKNOWN_NODES, configured

LARGE = {"torch", "pandas", "pyarrow", "numpy", "scipy", "sklearn", "matplotlib", "seaborn", "pynvml", "transformers"}


def test_a_device_that_this_machine_lacks_is_rejected() -> None:
    machine = replace(HERE, devices=("cpu",), note="built without CUDA")
    check_device_list(configured(devices=["cpu"]), machine)
    check_device_list(configured(), machine)
    with pytest.raises(UserError, match=r"^mine\.yaml: devices: 'cuda' .*: auto, cpu \(built without CUDA\)"):
        check_device_list(configured(devices=["cpu", "cuda"]), machine)


@pytest.mark.parametrize(("others_ticks", "cpus"), [(20, None), (300, "3.0")])
def test_load_by_others_before_the_run_is_reported(others_ticks: int, cpus: str | None) -> None:
    """All CPUs are read over 1 s of 100 ticks; this process uses 50 of the busy ticks."""
    count = len(usable_cpus())
    before = replace(read_counters(), monotonic_s=0.0, ticks=CpuTicks(count, 0, 0, 0, 0, 0))
    ticks = CpuTicks(count, 100 * count, others_ticks + 50, 0, process=50, children=0)
    note = load_by_others(before, replace(before, monotonic_s=1.0, ticks=ticks))
    assert (note and note.partition(";")[0]) == (cpus and f"load by others: {cpus} of {count} CPUs busy")


def test_the_budget_says_what_the_first_grid_leaves(row: Callable[..., dict[str, Any]]) -> None:
    """One of three trials was measured, in 30 s; the others are expected to take as long."""
    kept = "of which 45 s are kept for start, peak rates, analysis and report"
    measured = row(trial=1, started_at="2026-01-01T00:00:00.000+00:00", spent_s='{"warm-up and timing": 30.0}')
    cell = Cell(**{axis: measured[axis] for axis in AXES if axis in measured})
    trials = [(cell, trial) for trial in (1, 2, 3)]

    def words(minutes: float, *rows: dict[str, Any]) -> str:
        return budget_words(minutes, trials, pa.Table.from_pylist([*rows], schema=arrow_schema()))

    assert words(5) == f"Budget: 5 min, {kept}; the 3 trials of the first grid are measured in any case"
    known = f"{kept}; by earlier rows, the first grid takes 1.5 min, which leaves"
    assert words(5, measured) == f"Budget: 5 min, {known} about 2.8 min for refinement"
    assert words(0.5, measured) == f"Budget: 0.5 min, {known} nothing for refinement"


def test_the_note_on_a_gpu_is_for_those_who_did_not_choose_the_devices() -> None:
    machine, before = replace(HERE, note="built without CUDA"), read_counters()
    assert list(notes_at_start(configured(), machine, before, local=False)) == ["built without CUDA"]
    assert list(notes_at_start(configured(devices=["cpu"]), machine, before, local=False)) == []


@pytest.mark.parametrize(("cores", "is_told"), [(2, True), (3, False), (None, False)])
def test_a_run_says_that_its_trials_use_more_cores_than_snakemake_was_given(cores: int | None, is_told: bool) -> None:
    config = configured(cpu_threads=3)
    first = next(notes_at_start(config, HERE, read_counters(), True, cores), "")
    assert first.startswith("--cores 2 only orders jobs: a CPU trial uses 3 cores; for fewer: cpu_threads=2") == is_told


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"devices": "auto"}, "devices: 'auto'"),
        ({"devices": ["cpu"]}, "cpu_threads: 'auto'"),
        ({"devices": ["cpu"], "cluster": {"classes": {"a": {"qos": "high"}}}}, "cpu_threads: 'auto'"),
    ],
)
def test_nodes_unknown_to_slurm_must_be_described_in_the_config(values: dict[str, Any], names: str) -> None:
    with pytest.raises(UserError, match=names):
        check_executor(configured(**values), UNKNOWN_NODES, local=False)
    check_executor(configured(**values), KNOWN_NODES, local=False)


def test_more_threads_than_cpus_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossover.plan.before_run.usable_cpus", lambda: {0, 1, 2, 3})
    for threads in ("auto", 4):
        check_executor(configured(cpu_threads=threads), HERE, local=True)
    with pytest.raises(
        UserError, match=r"^cpu_threads: 5, but jobs on this machine may use 4 CPUs; allowed: auto, 1 to 4"
    ):
        check_executor(configured(cpu_threads=5), HERE, local=True)


def test_jobs_without_a_cluster_are_rejected() -> None:
    with pytest.raises(UserError, match=r"^--jobs: "):
        check_executor(configured(), KNOWN_NODES, local=True)


def test_an_incomplete_class_of_nodes_is_rejected() -> None:
    with pytest.raises(UserError, match=r"^cluster\.classes\.a100\.devices: missing, and devices: auto"):
        check_classes(CLASSES, None)
    with pytest.raises(UserError, match=r"^cluster\.classes\.b\.slurm_partition: missing, but another class has it"):
        check_classes({**CLASSES, "b": {}}, ("cpu",))
    with pytest.raises(UserError, match=r"^cluster\.classes\.here: the name is reserved for runs without classes"):
        check_classes({"here": {}}, ("cpu",))
    check_classes(CLASSES, ("cpu",))
    check_classes(None, None)


def test_classes_of_nodes_need_a_cluster_executor() -> None:
    with pytest.raises(UserError, match=r"^cluster\.classes: a100, h200 are classes of a cluster's nodes"):
        check_executor(configured(devices=["cpu"], cluster={"classes": CLASSES}), HERE, local=True)


def test_an_unknown_metric_in_a_claim_is_rejected() -> None:
    (study,) = configured(studies=["disc_depth"]).studies
    check_metrics([study])
    sides = {"metric": "step_tme_s", "of": {"device": "cpu"}, "over": {"device": "cuda"}, "where": {}}
    claim = {"statement": "A claim", "source": "somebody", "ratio_below": {**sides, "limit": 2}}
    with pytest.raises(UserError, match=r"claims\.0: metric 'step_tme_s' is unknown \(did you mean 'step_time_s'"):
        check_metrics([replace(study, claims=(claim,))])


def test_a_note_warns_before_results_of_another_host_are_replaced(tmp_path: Path) -> None:
    assert measured_elsewhere(tmp_path, "here") is None  # nothing was measured yet
    for hosts, said in (
        (["here", ""], None),
        ([""], None),
        (["b", "a"], "measured on a and b, and this host is here;"),
    ):
        (tmp_path / "provenance.json").write_text(json.dumps({"machines": [{"host": host} for host in hosts]}))
        line = measured_elsewhere(tmp_path, "here")
        assert line is None if said is None else said in str(line)
    (tmp_path / "provenance.json").write_text("[]")
    assert measured_elsewhere(tmp_path, "here") is None


FACTS = Facts("h200", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    for name in ("a100", "h200"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trials.parquet").write_bytes(b"rows")
        write_facts(replace(FACTS, name=name), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "devices", "names"),
    [
        ("auto", ["cpu"], ["a100", "h200"]),
        ("auto", ["cpu", "cuda"], []),
        ("none", ["cpu"], []),
        (("h200",), ["cpu", "cuda"], ["h200"]),
    ],
)
def test_shipped_references_are_used_by_name_or_without_an_accelerator(
    shipped: Path, reference: Any, devices: list[str], names: list[str]
) -> None:
    folders = reference_folders(reference, devices, shipped)
    assert [folder.name for folder in folders] == names
    assert len(reference_files(folders)) == 2 * len(names)


def test_a_reference_may_be_a_folder_and_an_unknown_name_is_rejected(shipped: Path) -> None:
    folder = str(shipped / "h200")
    assert reference_folders((folder,), ["cpu"], shipped / "none") == [Path(folder)]
    with pytest.raises(UserError, match=r"reference: \.\./h20: no such folder; allowed: a folder with"):
        reference_folders(("../h20",), ["cpu"], shipped)
    with pytest.raises(UserError, match=r"reference: 'h20' is unknown; allowed: a100, h200 \(did you mean 'h200'\?\)"):
        reference_folders(("h20",), ["cpu"], shipped)


@pytest.mark.parametrize("devices", [["cpu"], ["cuda"]])
def test_a_reference_needs_the_cpu_and_an_accelerator(devices: list[str]) -> None:
    check_both_kinds(["cpu", "cuda"])
    with pytest.raises(
        UserError, match=rf"the run measures {devices[0]}; allowed: the CPU and an accelerator together"
    ):
        check_both_kinds(devices)


def test_a_damaged_reference_is_rejected(shipped: Path) -> None:
    (shipped / "h200" / "trials.parquet").write_bytes(b"other rows")
    with pytest.raises(UserError, match=r"trials.parquet: is not the file that reference.json names"):
        reference_folders("auto", ["cpu"], shipped)
    assert reference_folders("none", ["cpu"], shipped) == []


def test_the_rules_import_no_large_package() -> None:
    """Each start of Snakemake reads the rules, also in an environment that has Snakemake alone."""
    text = "".join(file.read_text() for file in (ROOT / "rules").glob("*.smk"))
    modules = sorted({*re.findall(r"^from (crossover\S*) import", text, re.MULTILINE)})
    program = f"import sys, {', '.join(modules)}; print(*({LARGE!r} & sys.modules.keys()))"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_studies_that_name_no_device_of_the_run_are_left_out_with_a_note() -> None:
    studies = configured(studies=["thumb_compile", "disc_depth", "int8_batch"]).studies
    assert studies_left_out(studies, ["cpu"]) == (
        "studies left out, since none of their devices is in this run (cpu): thumb_compile (cuda), int8_batch (cuda); "
        "run them on a machine that has one, with `devices: auto`"
    )
    assert studies_left_out(studies, ["cuda"]) is None
    alone = configured(studies=["thumb_compile"])
    with pytest.raises(UserError, match=r"^studies: nothing to measure: .* \(cpu\): thumb_compile \(cuda\); run"):
        check_config(alone, HERE, ["cpu"])


def test_sides_of_more_gpus_than_the_run_has_are_left_out_with_a_note() -> None:
    config = configured(devices=["cpu", "cuda", "cuda-2", "cuda-4", "cpu-2x1"])
    plan = RunPlan.of(config, HERE.devices, gpus=2)
    assert plan.devices == ("cpu", "cuda", "cuda-2", "cpu-2x1")
    assert too_many_gpus(config, plan.devices) == (
        "left out, since this run has fewer GPUs: cuda-4; on a host that has them, give --cores 4 --resources gpu=4"
    )
    assert too_many_gpus(config, config.devices or ()) is None
    check_device_list(config, HERE)
    alone = configured(devices=["cuda-4"])
    with pytest.raises(UserError, match="devices: left out, since this run has fewer GPUs: cuda-4"):
        check_config(alone, HERE, RunPlan.of(alone, HERE.devices, gpus=1).devices)

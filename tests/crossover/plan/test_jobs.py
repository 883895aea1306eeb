from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossover.config.configuration import read_configuration
from crossover.machine.code_key import code_of
from crossover.machine.discovery import sent_elsewhere
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import ProbeJob
from crossover.measurement.process.supervision import ENDING_LIMIT_S, START_LIMIT_S
from crossover.plan.jobs import Jobs
from plans import CLASSES, HERE, KNOWN_NODES, jobs

CELL = {
    "study": "disc_depth",
    "workload": "disc_mlp",
    "variant": "plain",
    "protocol": "resident",
    "batch_size": "100",
    "precision": "fp32",
    "execution": "eager",
    "size": "4",
    "device": "cuda",
    "trial": "2",
}
CPU = {**CELL, "device": "cpu"}


def with_study(made: Jobs, **changes: object) -> Jobs:
    (study,) = made.config.studies
    return replace(made, config=replace(made.config, studies=(replace(study, **changes),)))


def test_a_repeat_has_the_key_of_the_first_trial() -> None:
    made = jobs()
    assert made.key("trial", CELL) == made.key("trial", {**CELL, "again": "-repeat-2"})


def test_a_key_contains_the_code_and_the_versions() -> None:
    made = jobs()
    trial, search = (made.key(kind, CELL).parts for kind in ("trial", "batch_try"))
    assert trial.items() >= code_of("trial", "disc_mlp").parts.items()
    assert search.items() >= code_of("batch_try", "disc_mlp").parts.items()
    assert made.key("trial", CELL) != made.key("trial", {**CELL, "workload": "higgs_mlp"})
    assert (trial["torch"], trial["driver"]) == ("2.13.0", "580.1")
    assert "driver" not in made.key("trial", CPU).parts


def test_options_of_the_path_are_no_part_of_the_key() -> None:
    made = jobs()
    assert made.key("trial", CELL) == made.key("trial", {**CELL, "size": "8", "trial": "3", "batch_size": "1"})


def test_a_result_depends_on_the_hardware_except_on_a_cluster() -> None:
    hardware = {"cpu": "CPU A, 2 cores", "cuda": "GPU B beside CPU A, 1 cores"}
    here = jobs(replace(HERE, hardware=hardware, compilers="g++"))
    keys = [here.key("trial", CPU), here.key("trial", {**CPU, "device": "cpu-1"}), here.key("probe", CELL)]
    assert [key.parts["hardware"] for key in keys] == [*["CPU A, 2 cores"] * 2, "GPU B beside CPU A, 1 cores"]
    away = jobs(sent_elsewhere(here.machine, None), None).key("trial", {**CELL, "execution": "compile"})
    assert [away.parts[name] for name in ("hardware", "driver", "compilers")] == ["None"] * 3


def test_only_compiled_cells_depend_on_the_compilers() -> None:
    compiled = {**CELL, "execution": "compile"}
    made, lacking = (jobs(replace(HERE, compilers=text)) for text in ("/usr/bin/g++ 1000", "no g++"))
    assert made.key("trial", CELL) == lacking.key("trial", CELL)
    assert made.key("trial", compiled) != lacking.key("trial", compiled)


def test_on_a_node_a_cpu_cell_takes_all_cores_and_a_gpu_cell_its_share() -> None:
    made = jobs(KNOWN_NODES, None)
    assert [made.threads(cell) for cell in (CPU, {**CPU, "device": "cpu-1"}, CELL)] == [64, 64, 16]


@pytest.mark.parametrize(
    ("cores", "gpus", "together"),
    [(1, 1, 1), (16, 1, 1), (1, 2, 1), (2, 2, 2), (16, 2, 2), (16, 3, 3), (16, 4, 4), (5, 4, 5), (16, 6, 8)],
)
def test_all_jobs_of_this_machine_request_the_same_number_of_cores(cores: int, gpus: int, together: int) -> None:
    """At least as many jobs as GPUs fit into the cores; if the division leaves a rest, a few more fit and wait."""
    made = replace(jobs(cores=cores, cpu_threads=3), gpus=gpus)
    assert {made.threads(CPU), made.threads({**CPU, "device": "cpu-1"}), made.threads(CELL), made.share} == {made.share}
    assert cores // made.share == together
    assert made.at_once == min(cores, gpus)
    one_by_one = replace(jobs(cores=cores, cluster={"side_by_side": False}), gpus=gpus)
    assert (one_by_one.at_once, one_by_one.share) == (1, cores)
    on_cpu = replace(jobs(cores=cores, devices=["cpu"]), gpus=gpus)
    assert (on_cpu.at_once, on_cpu.share) == (1, cores)


def test_a_job_requests_the_memory_of_its_study_doubled_with_each_attempt() -> None:
    made = with_study(jobs(KNOWN_NODES, None), mem_mb=10_000)
    assert [made.mem_mb(CELL, attempt) for attempt in (1, 2, 3)] == [10_000, 20_000, 40_000]


def test_a_class_gives_its_jobs_resources_and_cores() -> None:
    made = jobs(KNOWN_NODES, None, devices=["cpu", "cuda"], cluster={"classes": CLASSES})
    resources = made.resources_of_class
    values = {
        (machine, device): {
            name: resources[name]({"machine": machine, "device": device}) for name in ("gpu_model", "slurm_partition")
        }
        for machine, device in (("a100", "cpu"), ("a100", "cuda"), ("h200", "cuda"))
    }
    assert values == {
        ("a100", "cpu"): {"gpu_model": None, "slurm_partition": "gpu-a"},
        ("a100", "cuda"): {"gpu_model": "a100", "slurm_partition": "gpu-a"},
        ("h200", "cuda"): {"gpu_model": None, "slurm_partition": "gpu-h"},
    }
    assert [made.threads({**CPU, "machine": name}) for name in CLASSES] == [48, 64]
    assert jobs().resources_of_class == {}


@pytest.mark.parametrize("limit_s", [1.0, 299.0, 3600.0])
def test_the_runtime_of_a_job_is_enough_for_two_measurements_and_grows_with_attempts(limit_s: float) -> None:
    made = jobs(time_limit_s=limit_s)
    first_min, second_min = (made.trial_min(CELL, attempt) for attempt in (1, 2))
    assert 60 * first_min >= 2 * (START_LIMIT_S + limit_s + ENDING_LIMIT_S)
    assert second_min == 2 * first_min
    assert (made.mem_mb(CELL, 1), made.mem_mb(CELL, 2)) == (4001, 8002)


def test_a_probe_measures_the_products_of_all_precisions_but_a_functions(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text("def build(n, device):\n    return lambda: n\n")
    config = read_configuration([("mine.yaml", {"model": f"{tmp_path / 'op.py'}:build", "sizes": [2, 4]})], tmp_path)
    function = replace(jobs(), config=config)
    for made, expected in ((jobs(), ["fp32"]), (function, [])):
        job = json.dumps(made.job("probe", {"device": "cpu"}))
        assert read_job(ProbeJob, "", [job, "--device=cpu", "--output=roofs.json"]).precisions == expected


def test_on_a_node_a_cell_on_several_gpus_takes_them_and_their_cores() -> None:
    """On this machine, it requests a single slot, and leases its GPUs when its turn comes, unless the run may not use
    all of the machine's GPUs."""
    of_cell = {"study": "disc_depth", "device": "cuda-2"}
    there, here = jobs(KNOWN_NODES, None, devices=["cuda", "cuda-2"]), replace(jobs(cores=4), gpus=4)
    assert (there.gpu(of_cell), there.threads(of_cell)) == (2, 32)
    assert (here.gpu(of_cell), here.threads(of_cell)) == (1, 1)
    shared = replace(here, gpus=2, machine=replace(here.machine, has_spare_gpus=True))
    assert (shared.gpu(of_cell), shared.gpu({**of_cell, "device": "cuda"})) == (2, 1)
    assert there.gpu({**of_cell, "device": "cpu-2x1"}) is None

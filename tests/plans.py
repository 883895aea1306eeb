"""Configs and plans of the shipped studies, and machines to plan for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossover.config.config_keys import Configuration
from crossover.config.configuration import read_configuration
from crossover.machine.discovery import Machine, Nodes
from crossover.plan.jobs import Jobs
from crossover.plan.run_plan import RunPlan

ROOT = Path(__file__).parents[1]
HERE = Machine(devices=("cpu", "cuda"), torch_version="2.13.0", driver_version="580.1")
UNKNOWN_NODES = Machine(devices=("cpu",), torch_version="2.13.0", driver_version=None, elsewhere=True)
KNOWN_NODES = Machine(
    devices=("cpu", "cuda"),
    torch_version="2.13.0",
    driver_version=None,
    elsewhere=True,
    nodes=Nodes(cpus=64, cpus_per_gpu=16),
)
CLASSES = {
    "a100": {"slurm_partition": "gpu-a", "gpu_model": "a100", "cores": 48},
    "h200": {"slurm_partition": "gpu-h", "devices": ["cuda"]},
}


def configured(**values: Any) -> Configuration:
    return read_configuration([("mine.yaml", {"studies": ["disc_depth"], **values})], ROOT / "config")


def planned(config: Configuration) -> RunPlan:
    return RunPlan.of(config, HERE.devices)


def jobs(machine: Machine = HERE, cores: int | None = 2, **values: Any) -> Jobs:
    return Jobs(configured(**values), machine, cores)

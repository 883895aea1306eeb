"""Describe a trial's host: hardware, operating system, versions."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import psutil

import crossover
from crossover.machine.kernel import cgroup_quota, cpu_model, governor, has_cpu_flag, numa_nodes, turbo
from crossover.machine.threads import physical_cores, usable_cores, usable_cpus


def describe_host(root: Path = Path("/")) -> dict[str, Any]:
    """Columns of `Measurement` about the host and about torch."""
    import torch

    return {
        **describe_machine(root),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "torch_version": torch.__version__,
        "cuda_version": torch.version.cuda or torch.version.hip,
    }


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """Columns of `Measurement` about the host, without importing torch."""
    cpus = usable_cpus()
    return {
        "hostname": platform.node(),
        "operating_system": platform.platform(),
        "cpu_model": cpu_model(root),
        "amx": has_cpu_flag("amx_tile", root),
        "avx512_bf16": has_cpu_flag("avx512_bf16", root),
        "physical_cores": usable_cores(cpus, root=root),
        "affinity_cores": physical_cores(cpus, root),
        "logical_cpus": len(cpus),
        "affinity": sorted(cpus),
        "cgroup_cpus": cgroup_quota(root),
        "numa_nodes": numa_nodes(cpus, root),
        "memory_bytes": psutil.virtual_memory().total,
        "governor": governor(root),
        "turbo": turbo(root),
        "python_version": platform.python_version(),
        "crossover_version": crossover.__version__,
    }

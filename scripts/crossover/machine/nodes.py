"""The nodes of a Slurm cluster, as far as the cores that a job asks for depend on them."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

PATIENCE_S = 10


@dataclass(frozen=True)
class Nodes:
    """What every node has at least, in CPUs as Slurm counts them."""

    cpus: int
    """Of a node that CPU cells go to."""
    cpus_per_gpu: int | None
    """The share of a node's CPUs that falls to each of its GPUs; None: no node has any."""


def find_nodes(partition: str | None) -> Nodes | None:
    """Ask Slurm for its nodes; None where there is no Slurm, or where it does not answer.

    `partition` is the one that CPU cells go to; None: Slurm's default. GPUs are looked for in all partitions.
    """
    if shutil.which("sinfo") is None:
        return None
    command = ["sinfo", "--noheader", "--exact", "--format=%P %c %G"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return None
    return read_nodes(answer, partition)


def read_nodes(answer: str, partition: str | None) -> Nodes | None:
    """Read lines of a partition, the CPUs and the generic resources of like nodes in it; a star marks the default.

    None where the partition has no nodes.
    """
    rows = [line.split(maxsplit=2) for line in answer.splitlines()]
    cpus = [int(cpus) for name, cpus, _ in rows if name.rstrip("*") == partition or (not partition and "*" in name)]
    shares = [int(cpus) // gpus for _, cpus, resources in rows if (gpus := _gpus(resources))]
    return Nodes(min(cpus), max(1, min(shares)) if shares else None) if cpus else None


def _gpus(resources: str) -> int:
    """GPUs in a list such as gpu:a100:4(S:0-1),shard:8."""
    return sum(int(count) for count in re.findall(r"\bgpu:(?:[^:,(]+:)?([0-9]+)", resources))

"""What this machine and its cluster's nodes have, found without importing torch."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from crossover.machine.gpus import find_gpus
from crossover.machine.nvml import silent_driver

HANDED_DOWN = "CROSSOVER_MACHINE"
"""The environment variable that carries a machine from the main process to its jobs."""

PATIENCE_S = 10
"""Longest wait for Slurm's answer."""


@dataclass(frozen=True)
class Nodes:
    """What every node of a Slurm cluster has at least, in CPUs as Slurm counts them."""

    cpus: int
    """Of a node that CPU cells go to."""
    cpus_per_gpu: int | None
    """A GPU's share of its node's CPUs; None: no node has a GPU."""


@dataclass(frozen=True)
class Machine:
    """The devices of a machine and the versions that its measurements depend on."""

    devices: tuple[str, ...]
    torch_version: str
    driver_version: str | None
    note: str | None = None
    """Why the machine has a device that cannot be used; None if it has none."""
    nodes: Nodes | None = None
    """The nodes of the cluster that jobs are sent to, if Slurm knows them."""
    elsewhere: bool = False
    """Whether jobs are sent to other machines."""


def sent_elsewhere(machine: Machine, nodes: Nodes | None) -> Machine:
    """The machine as its jobs see it on a cluster: with the devices of its nodes, if Slurm knows these."""
    if nodes is None:
        return replace(machine, elsewhere=True)
    devices = ("cpu", "cuda") if nodes.cpus_per_gpu else ("cpu",)
    return replace(machine, elsewhere=True, nodes=nodes, devices=devices, note=None)


def hand_down(machine: Machine) -> None:
    """Tell the jobs of this workflow, wherever they run, what the main process found."""
    os.environ[HANDED_DOWN] = json.dumps(asdict(machine))


def handed_down() -> Machine:
    """What the main process found."""
    fields = json.loads(os.environ[HANDED_DOWN])
    nodes = Nodes(**fields["nodes"]) if fields["nodes"] else None
    return Machine(**{**fields, "devices": tuple(fields["devices"]), "nodes": nodes})


def prefer_this_environment() -> None:
    """Make `python3` in jobs the interpreter of this process, even if its environment is not activated."""
    if not Path(sys.executable).is_absolute():  # a module's rules are read once more
        return
    here = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])
    if shlex.quote(sys.executable) != sys.executable:
        # Snakemake (9.27) puts it into commands as it is, and a space would end it there (snakemake/snakemake#2645).
        sys.executable = Path(sys.executable).name


def find_machine() -> Machine:
    """Find the devices that torch can use here: the CPU, NVIDIA GPUs through NVML, AMD, Apple and Intel GPUs."""
    nvidia = _nvidia()
    built_for = torch_built_for()
    devices, note = ["cpu"], None
    amd = Path("/dev/kfd").exists()
    too_old = "cuda" in built_for and nvidia.cuda_major < int(built_for["cuda"].split(".")[0])
    if (nvidia.gpus and "cuda" in built_for and not too_old) or (amd and "hip" in built_for):
        devices.append("cuda")
    elif nvidia.gpus and too_old:
        note = (
            f"this machine has a GPU, but its driver {nvidia.driver} is too old for the installed torch, "
            f"built for CUDA {built_for['cuda']}: update the driver, or install a torch for an older CUDA"
        )
    elif nvidia.silent is not None:
        note = nvidia.silent
    elif nvidia.gpus or amd:
        note = (
            f"this machine has a GPU, but the installed torch is built without {'CUDA' if nvidia.gpus else 'ROCm'}: "
            "install a build of torch for it in this environment"
        )
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        devices.append("mps")
    if "xpu" in built_for and any(Path("/dev/dri").glob("renderD*")):
        devices.append("xpu")
    return Machine(tuple(devices), _version_of("torch"), nvidia.driver, note)


def torch_built_for() -> dict[str, str]:
    """Versions of CUDA, HIP or XPU that torch is built for, by its version module alone: torch takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    values = runpy.run_path(str(Path(next(iter(spec.submodule_search_locations)), "version.py")))
    return {name: str(values[name]) for name in ("cuda", "hip", "xpu") if values.get(name)}


@dataclass(frozen=True)
class _Nvidia:
    """What NVML knows: visible GPUs, the driver, and the newest CUDA that the driver runs."""

    gpus: int = 0
    driver: str | None = None
    cuda_major: int = 0
    silent: str | None = None
    """Why the driver of a GPU does not answer."""


def _nvidia() -> _Nvidia:
    import pynvml

    try:
        pynvml.nvmlInit()
        gpus = len(find_gpus(os.environ, pynvml).visible)
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        cuda_major = int(pynvml.nvmlSystemGetCudaDriverVersion()) // 1000
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return _Nvidia(silent=silent_driver(pynvml))
    return _Nvidia(gpus, driver, cuda_major, None if gpus else silent_driver(pynvml))


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def find_nodes(partition: str | None) -> Nodes | None:
    """Ask Slurm for its nodes; None without Slurm, or if it does not answer.

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
    """Read sinfo's lines: a partition (a star marks the default), CPUs and generic resources of identical nodes.

    None if the partition has no nodes.
    """
    rows = [line.split(maxsplit=2) for line in answer.splitlines()]
    cpus = [int(cpus) for name, cpus, _ in rows if name.rstrip("*") == partition or (not partition and "*" in name)]
    shares = [int(cpus) // gpus for _, cpus, resources in rows if (gpus := _gpus(resources))]
    return Nodes(min(cpus), max(1, min(shares)) if shares else None) if cpus else None


def _gpus(resources: str) -> int:
    """GPUs in a list such as gpu:a100:4(S:0-1),shard:8."""
    return sum(int(count) for count in re.findall(r"\bgpu:(?:[^:,(]+:)?([0-9]+)", resources))

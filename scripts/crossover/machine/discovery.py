"""What this machine has, found without importing torch."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from crossover.config.words import WORKFLOW
from crossover.machine.gpus import find_gpus
from crossover.machine.nodes import Nodes

HANDED_DOWN = "CROSSOVER_MACHINE"
"""The environment variable that carries a machine from the main process to its jobs."""


@dataclass(frozen=True)
class Machine:
    """The devices of a machine and the versions that its measurements depend on."""

    devices: tuple[str, ...]
    torch_version: str
    driver_version: str | None
    note: str | None = None
    """Why a device that the machine has cannot be used, if so."""
    nodes: Nodes | None = None
    """Those of the cluster that jobs are sent to, as far as Slurm knows them."""
    elsewhere: bool = False
    """Whether jobs are sent to other machines than this one."""
    gpus: int = 0
    """NVIDIA GPUs, or instances of them, that may be used."""


def sent_elsewhere(machine: Machine, nodes: Nodes | None) -> Machine:
    """The same where a cluster runs the jobs: with the devices of its nodes, if Slurm knows these."""
    if nodes is None:
        return replace(machine, elsewhere=True)
    devices = ("cpu", "cuda") if nodes.cpus_per_gpu else ("cpu",)
    return replace(machine, elsewhere=True, nodes=nodes, devices=devices, note=None)


def hand_down(machine: Machine) -> None:
    """Tell the jobs of this workflow, wherever they run, what the main process found, and which process that is."""
    os.environ[HANDED_DOWN] = json.dumps(asdict(machine))
    os.environ[WORKFLOW] = str(os.getpid())


def handed_down() -> Machine:
    """What the main process found."""
    fields = json.loads(os.environ[HANDED_DOWN])
    nodes = Nodes(**fields["nodes"]) if fields["nodes"] else None
    return Machine(**{**fields, "devices": tuple(fields["devices"]), "nodes": nodes})


def prefer_this_environment() -> None:
    """Let jobs that say `python3` use the interpreter of this process, whether its environment was activated or not."""
    here = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])


def find_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Find the devices that torch can use here: the CPU, NVIDIA GPUs through NVML, AMD, Apple and Intel GPUs."""
    nvidia = _nvidia(environment)
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
    elif nvidia.gpus or amd:
        note = (
            f"this machine has a GPU, but the installed torch is built without {'CUDA' if nvidia.gpus else 'ROCm'}: "
            "install a build of torch for it in this environment"
        )
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        devices.append("mps")
    if "xpu" in built_for and any(Path("/dev/dri").glob("renderD*")):
        devices.append("xpu")
    return Machine(tuple(devices), _version_of("torch"), nvidia.driver, note, gpus=nvidia.gpus)


def torch_built_for() -> dict[str, str]:
    """Versions of the accelerators' software that torch is built for, read from its version module, not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    source = Path(next(iter(spec.submodule_search_locations)), "version.py").read_text(encoding="utf-8")
    built_for = {}
    for node in ast.parse(source).body:
        target: ast.expr | None = None
        if isinstance(node, ast.AnnAssign):
            target = node.target
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in ("cuda", "hip", "xpu") and (version := _constant(node)):
            built_for[target.id] = version
    return built_for


def _constant(node: ast.stmt) -> str | None:
    value = getattr(node, "value", None)
    return str(value.value) if isinstance(value, ast.Constant) and value.value else None


@dataclass(frozen=True)
class _Nvidia:
    """What NVML knows: visible GPUs, the driver, and the newest CUDA that the driver runs."""

    gpus: int = 0
    driver: str | None = None
    cuda_major: int = 0


def _nvidia(environment: Mapping[str, str]) -> _Nvidia:
    import pynvml

    try:
        pynvml.nvmlInit()
        gpus = len(find_gpus(environment, pynvml).visible)
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        cuda_major = int(pynvml.nvmlSystemGetCudaDriverVersion()) // 1000
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return _Nvidia()
    return _Nvidia(gpus, driver, cuda_major)


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

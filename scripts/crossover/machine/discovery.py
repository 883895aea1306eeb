"""Find devices, hardware and versions on this machine and on a cluster's nodes, without importing torch."""

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
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from crossover.machine.environment import timed_variables
from crossover.machine.gpus import Gpus, find_gpus
from crossover.machine.installed import NOT_INSTALLED
from crossover.machine.kernel import cgroup_quota, cpu_model, governor, read_kernel, turbo
from crossover.machine.nvml import ask, read_gpu, silent_driver
from crossover.machine.threads import share_of_host
from crossover.text import cores_text

HANDED_DOWN = "CROSSOVER_MACHINE"

PATIENCE_S = 10

GPU_SETTINGS = {"power limit": "power_limit_w", "highest clock": "sm_clock_max_mhz", "MIG": "mig"}
"""The fields of `GpuState` that may change a time, by their names in messages."""

TRITON = ("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu")


@dataclass(frozen=True)
class Nodes:
    """The nodes of a Slurm cluster, with CPUs as Slurm counts them."""

    cpus: int
    """Number of CPUs of the smallest node for CPU cells."""
    cpus_per_gpu: int | None
    """Smallest number of CPUs per GPU of a node; None if no node has a GPU."""


@dataclass(frozen=True)
class Machine:
    devices: tuple[str, ...]
    torch_version: str
    driver_version: str | None
    note: str | None = None
    """Reason why a GPU of this machine cannot be used, if any."""
    nodes: Nodes | None = None
    why_no_nodes: str = "sinfo does not know the jobs' partition"
    """Reason why `nodes` is None, on a cluster."""
    elsewhere: bool = False
    """True if jobs are sent to other machines."""
    hardware: Mapping[str, str] = field(default_factory=dict)
    """Models of CPU and GPU and number of cores, by device; empty if jobs are sent to other machines."""
    conditions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Settings and versions that may change a time, by device; empty if jobs are sent to other machines."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that may change a time."""
    gpus: int | None = None
    """Number of GPUs that a trial may use; None if it is unknown, or if jobs are sent to other machines."""
    has_spare_gpus: bool = False
    """True if this machine has more GPUs than the run may use."""
    compilers: str | None = None
    """The result of `find_compilers`; None if jobs are sent to other machines."""


def sent_elsewhere(machine: Machine, nodes: Nodes | str | None) -> Machine:
    """The machine for planning jobs on a cluster, with the nodes' devices if Slurm lists the nodes.

    A string is the reason why it does not. Hardware, driver and compilers of this machine are left out, since the jobs
    run on the nodes.
    """
    away = replace(machine, elsewhere=True, driver_version=None, hardware={}, conditions={}, compilers=None, gpus=None)
    if not isinstance(nodes, Nodes):
        return replace(away, why_no_nodes=nodes or machine.why_no_nodes)
    devices = ("cpu", "cuda") if nodes.cpus_per_gpu else ("cpu",)
    return replace(away, nodes=nodes, devices=devices, note=None)


def hand_down(machine: Machine) -> None:
    """Pass the machine to the jobs of this workflow, by an environment variable."""
    os.environ[HANDED_DOWN] = json.dumps(asdict(machine))


def handed_down() -> Machine:
    """The machine that the main process passed to this job."""
    fields = json.loads(os.environ[HANDED_DOWN])
    nodes = Nodes(**fields["nodes"]) if fields["nodes"] else None
    return Machine(**{**fields, "devices": tuple(fields["devices"]), "nodes": nodes})


def prefer_this_environment() -> None:
    """Make jobs run the interpreter of this process as `python3`, even if its environment is not activated."""
    if not Path(sys.executable).is_absolute():  # already done: Snakemake reads the rules of a module twice
        return
    here = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])
    if shlex.quote(sys.executable) != sys.executable:
        # Snakemake (9.27) does not quote the path in commands (snakemake/snakemake#2645).
        sys.executable = Path(sys.executable).name


def find_machine() -> Machine:
    """Find the devices that torch can use on this machine: the CPU, and NVIDIA, AMD, Apple and Intel GPUs."""
    nvidia = _nvidia()
    built_for = torch_built_for()
    devices, note = ["cpu"], None
    amd = Path("/dev/kfd").exists()
    visible_gpus = len(nvidia.gpus.visible)
    too_old = "cuda" in built_for and nvidia.cuda_major < int(built_for["cuda"].split(".")[0])
    if (visible_gpus and "cuda" in built_for and not too_old) or (amd and "hip" in built_for):
        devices.append("cuda")
    elif visible_gpus and too_old:
        note = (
            f"this machine has a GPU, but its driver {nvidia.driver} is too old for the installed torch, "
            f"built for CUDA {built_for['cuda']}: update the driver, or install a torch for an older CUDA"
        )
    elif nvidia.silent is not None:
        note = nvidia.silent
    elif visible_gpus or amd:
        note = (
            f"this machine has a GPU, but the installed torch is built without {'CUDA' if visible_gpus else 'ROCm'}: "
            "install a build of torch for it in this environment"
        )
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        devices.append("mps")
    if "xpu" in built_for and any(Path("/dev/dri").glob("renderD*")):
        devices.append("xpu")
    return Machine(
        tuple(devices),
        _version_of("torch"),
        nvidia.driver,
        note,
        hardware={device: _hardware(device, nvidia) for device in devices},
        conditions={device: _conditions(device, nvidia) for device in devices},
        variables=timed_variables(os.environ),
        gpus=visible_gpus or None,
        compilers=find_compilers(os.environ),
    )


def _hardware(device: str, nvidia: _Nvidia) -> str:
    first = next(iter(nvidia.gpus.visible), None) if device == "cuda" else None
    _, cores = share_of_host(device, "auto", first, nvidia.gpus)
    cpu = f"{cpu_model()}, {cores_text(cores)}"
    if device == "cpu":
        return cpu
    names = nvidia.names if first else _display_devices(Path("/"))
    return f"{' and '.join(names) or device} beside {cpu}"


def _conditions(device: str, nvidia: _Nvidia) -> dict[str, str]:
    gpus = {f"{name} of the GPU": value for name, value in nvidia.settings.items() if device == "cuda"}
    settings = {"governor": governor(), "turbo": turbo(), "CPU quota": cgroup_quota()}
    return {
        **{name: str(value) for name, value in settings.items()},
        "operating system": platform.platform(),
        "Python": platform.python_version(),
        **gpus,
    }


def _display_devices(root: Path) -> Sequence[str]:
    """PCI vendor and device numbers of the GPUs with a DRM render node."""
    folders = root.glob("sys/class/drm/renderD*/device")
    numbers = {" ".join((read_kernel(folder / name) or "") for name in ("vendor", "device")) for folder in folders}
    return sorted(numbers)


def find_compilers(environment: Mapping[str, str]) -> str:
    """List the C++ and C compilers and Triton versions that `torch.compile` can use, and the missing tools."""
    tools = []
    for variable, usual in (("CXX", ("g++", "clang++")), ("CC", ("gcc", "clang"))):
        chosen = environment.get(variable)
        for name in (chosen,) if chosen else usual:
            path = shutil.which(name)
            # An updated compiler may keep its name, but its size usually changes.
            tools.append(f"{os.path.realpath(path)} {Path(path).stat().st_size}" if path else f"no {name}")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        tools.append("no Python.h")
    versions = {name: _version_of(name) for name in TRITON}
    return ", ".join(tools + [f"{name} {version}" for name, version in versions.items() if version != NOT_INSTALLED])


def torch_built_for() -> dict[str, str]:
    """Versions of CUDA, HIP or XPU that torch is built for, read from a file since importing torch is slow."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    values = runpy.run_path(str(Path(next(iter(spec.submodule_search_locations)), "version.py")))
    return {name: str(values[name]) for name in ("cuda", "hip", "xpu") if values.get(name)}


@dataclass(frozen=True)
class _Nvidia:
    gpus: Gpus = field(default_factory=Gpus)
    names: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Power limit, highest clock and partition of the visible GPUs."""
    driver: str | None = None
    cuda_major: int = 0
    """Major version of the newest CUDA that the driver supports; 0 if not known."""
    silent: str | None = None
    """Reason why the driver of a GPU does not answer, if any."""


def _nvidia() -> _Nvidia:
    try:
        import pynvml
    except ImportError:  # an environment that only plans, or checks the rules
        return _Nvidia()
    try:
        pynvml.nvmlInit()
        gpus = find_gpus(os.environ, pynvml)
        names = tuple(sorted({_gpu_name(uuid, pynvml) for uuid in gpus.visible}))
        states = [state for uuid in gpus.visible if (state := read_gpu(uuid, pynvml))]
        settings = {
            name: ", ".join(sorted({str(getattr(state, column)) for state in states}))
            for name, column in GPU_SETTINGS.items()
        }
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        cuda_major = int(pynvml.nvmlSystemGetCudaDriverVersion()) // 1000
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return _Nvidia(silent=silent_driver(pynvml))
    silent = None if gpus.installed else silent_driver(pynvml)
    return _Nvidia(gpus, names, settings, driver, cuda_major, silent)


def _gpu_name(uuid: str, nvml: Any) -> str:
    return ask(nvml, lambda: str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByUUID(uuid)))) or "GPU"


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def find_nodes(partition: str | None) -> Nodes | str:
    """Return the nodes that Slurm lists, or why they are unknown: no Slurm, no answer, or no node for CPU cells.

    `partition` is the partition of CPU cells, by default Slurm's default. Nodes with GPUs may be in any partition.
    """
    if shutil.which("sinfo") is None:
        return "there is no command sinfo on this machine"
    command = ["sinfo", "--noheader", "--exact", "--format=%P %c %G"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except subprocess.TimeoutExpired:
        return f"sinfo did not answer within {PATIENCE_S} s"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        return f"sinfo failed ({lines[-1] if lines else f'exit status {error.returncode}'})"
    except OSError as error:
        return f"sinfo cannot be run ({error.strerror})"
    unlisted = f"sinfo lists no partition '{partition}'" if partition else "sinfo lists no default partition"
    return read_nodes(answer, partition) or unlisted


def read_nodes(answer: str, partition: str | None) -> Nodes | None:
    """Parse sinfo's lines: partition (a star marks the default), CPUs and generic resources of identical nodes."""
    rows = [line.split(maxsplit=2) for line in answer.splitlines()]
    cpus = [int(cpus) for name, cpus, _ in rows if name.rstrip("*") == partition or (not partition and "*" in name)]
    shares = [int(cpus) // gpus for _, cpus, resources in rows if (gpus := _gpus(resources))]
    return Nodes(min(cpus), max(1, min(shares)) if shares else None) if cpus else None


def _gpus(resources: str) -> int:
    """Number of GPUs in a list such as gpu:a100:4(S:0-1),shard:8."""
    return sum(int(count) for count in re.findall(r"\bgpu:(?:[^:,(]+:)?([0-9]+)", resources))

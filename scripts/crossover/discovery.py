"""What this machine has, found without importing torch."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


def hand_down(machine: Machine) -> None:
    """Tell the jobs of this workflow, wherever they run, what the main process found."""
    os.environ[HANDED_DOWN] = json.dumps(asdict(machine))


def handed_down() -> Machine:
    """What the main process found."""
    fields = json.loads(os.environ[HANDED_DOWN])
    return Machine(**{**fields, "devices": tuple(fields["devices"])})


def prefer_this_environment() -> None:
    """Let jobs that say `python3` use the interpreter of this process, whether its environment was activated or not."""
    here = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])


def find_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Find the devices that torch can use here: the CPU, NVIDIA GPUs through NVML, AMD, Apple and Intel GPUs."""
    gpus, driver = _nvidia(environment)
    built_for = torch_built_for()
    devices, note = ["cpu"], None
    amd = Path("/dev/kfd").exists()
    if (gpus and "cuda" in built_for) or (amd and "hip" in built_for):
        devices.append("cuda")
    elif gpus or amd:
        note = (
            f"this machine has a GPU, but the installed torch is built without {'CUDA' if gpus else 'ROCm'}: "
            "install a build of torch for it in this environment"
        )
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        devices.append("mps")
    if "xpu" in built_for and any(Path("/dev/dri").glob("renderD*")):
        devices.append("xpu")
    return Machine(tuple(devices), _version_of("torch"), driver, note)


def torch_built_for() -> set[str]:
    """The accelerators that the installed torch is built for, read from its version module without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return set()
    source = Path(next(iter(spec.submodule_search_locations)), "version.py").read_text(encoding="utf-8")
    built_for = set()
    for node in ast.parse(source).body:
        target: ast.expr | None = None
        if isinstance(node, ast.AnnAssign):
            target = node.target
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in ("cuda", "hip", "xpu") and _is_set(node):
            built_for.add(target.id)
    return built_for


def _is_set(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Constant) and bool(value.value)


def _nvidia(environment: Mapping[str, str]) -> tuple[int, str | None]:
    """Number of visible NVIDIA GPUs and the driver's version."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
        driver = pynvml.nvmlSystemGetDriverVersion()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return 0, None
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        hidden = visible.strip() in ("", "-1", "NoDevFiles")
        count = 0 if hidden else min(count, len(visible.split(",")))
    return count, driver.decode() if isinstance(driver, bytes) else str(driver)


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

"""The conditions that a job sets before it imports a workload, and that must hold until its last timed step.

They are the device, the threads and every switch that decides how torch computes. Defaults differ between backends
(TF32 is on in cuDNN and off in cuBLAS), so each switch is set. Precisions are set on the leaves only: a setting higher
up would reach every backend below it.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from crossover.config.words import DEVICES
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.tasks import Task

PRECISION_LEAVES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")

PARENTS = ("fp32_precision", "cudnn.fp32_precision", "mkldnn.fp32_precision")
"""Precision settings above the leaves, which inductor reads too."""

DEFAULTS = {
    "cuda.matmul.allow_fp16_reduced_precision_reduction": True,
    "cuda.matmul.allow_bf16_reduced_precision_reduction": True,
    "cuda.matmul.allow_fp16_accumulation": False,
    "cudnn.enabled": True,
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
    "mkldnn.enabled": True,
    "mkldnn.deterministic": False,
}
"""Torch's documented defaults, set so that nothing else decides."""

KEYS = {
    r".*fp32_precision": "precisions: [tf32]",
    r"default_dtype": "precisions: [fp64]",
    r"default_device": "devices",
    r"autocast": "precisions: [amp-bf16]",
    r"threads": "cpu_threads",
}
"""Entries of the config that do what a switch does, by the switch's name."""


def wrong_device(task: Task, target: OpenDevice, uuid: str | None, board: str | None) -> str | None:
    """Why the device that ran is not the one asked for; None if it is, or if that cannot be known.

    `uuid` is the leased GPU or MIG instance, `board` the GPU around it: torch names an instance by either's digits.
    """
    found = {tensor.device.type for tensor in (*task.model.parameters(), *task.resident)}
    if others := sorted(found - {target.device.type}):
        return f"tensors lie on {', '.join(others)}, not on {target.device.type}: the workload must use its device"
    if uuid is None or target.uuid is None or (uuid.startswith("MIG-") and board is None):
        return None
    if _digits(target.uuid) not in (_digits(uuid), _digits(board or uuid)):
        return f"{target.uuid} ran, not the leased {uuid}: something changed CUDA_VISIBLE_DEVICES"
    return None


def _digits(uuid: str) -> str:
    """A UUID without the kind of device before it."""
    return uuid.removeprefix("MIG-").removeprefix("GPU-")


def seed_all(seed: int) -> None:
    """Seed the generators of Python, NumPy and torch; a fork would else repeat the trial server's numbers."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def set_switches(precision: str, threads: int) -> dict[str, Any]:
    """Set the threads and all switches; returns what `read_switches` must find from now on."""
    torch.set_num_threads(threads)
    # The older names of the leaves too: torch refuses to read them if they disagree with the new ones, and inductor and
    # `torch.backends.cudnn.flags` read them.
    with warnings.catch_warnings(action="ignore"):  # that there are newer names
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
    asked = _asked(precision)
    for name, value in asked.items():
        owner, key = _place(name)
        setattr(owner, key, value)
    return {**read_switches(), **asked, "threads": threads}


def read_switches() -> dict[str, Any]:
    """All switches and threads as torch has them now, as plain values."""
    return _read([*_asked("fp32"), *PARENTS]) | {name: read() for name, read in _left_alone().items()}


def changes(asked: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """The switches that differ from what was asked, in one line with the remedy; None if none does."""
    names = [name for name, value in asked.items() if found[name] != value]
    changed = ", ".join(f"{name} changed from {asked[name]} to {found[name]}" for name in names)
    keys = dict.fromkeys(key for pattern, key in KEYS.items() if any(re.fullmatch(pattern, name) for name in names))
    instead = f"; in its place, set {' and '.join(keys)} in the config" if keys else ""
    return f"{changed}: the workload, or what it imports, must not set it{instead}" if names else None


class SwitchWatch(TorchDispatchMode):
    """Reads switches and threads at every operation, to see a step that sets one and sets it back at its end."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        TorchDispatchMode.__init__(self)
        self.asked = {name: asked[name] for name in (*_asked("fp32"), "threads") if name in asked}
        self.found = dict(self.asked)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        now = _read(_asked("fp32")) | {"threads": torch.get_num_threads()}
        self.found |= {name: now[name] for name, value in self.asked.items() if now[name] != value}
        return func(*args, **(kwargs or {}))


def _asked(precision: str) -> dict[str, Any]:
    """The switches to set, by their path below torch.backends."""
    wanted = "tf32" if precision == "tf32" else "ieee"
    leaves = {f"{leaf}.fp32_precision": wanted if leaf.startswith("cu") else "ieee" for leaf in PRECISION_LEAVES}
    return leaves | DEFAULTS


def _read(names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(*_place(name)) for name in names}


@cache
def _place(name: str) -> tuple[Any, str]:
    """The object that holds a switch, and the switch's name there."""
    owner, _, key = name.rpartition(".")
    return (attrgetter(owner)(torch.backends) if owner else torch.backends), key


def _left_alone() -> dict[str, Callable[[], Any]]:
    """How to read the switches that are not set: each has the same value in every fresh process and must keep it.

    Gradient mode is not among them: a training fails without gradients, and an inference switches them off itself.
    """
    cuda = torch.backends.cuda
    return {
        "cuda.flash_sdp": cuda.flash_sdp_enabled,
        "cuda.mem_efficient_sdp": cuda.mem_efficient_sdp_enabled,
        "cuda.math_sdp": cuda.math_sdp_enabled,
        "cuda.cudnn_sdp": cuda.cudnn_sdp_enabled,
        "cuda.fp16_bf16_reduction_math_sdp": cuda.fp16_bf16_reduction_math_sdp_allowed,
        "mha.fastpath": torch.backends.mha.get_fastpath_enabled,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "default_dtype": lambda: str(torch.get_default_dtype()),
        "default_device": lambda: str(torch.get_default_device()),
        "autocast": lambda: [device for device in DEVICES if torch.is_autocast_enabled(device)],
        "anomaly_detection": torch.is_anomaly_enabled,
        "threads": torch.get_num_threads,
        "interop_threads": torch.get_num_interop_threads,
    }

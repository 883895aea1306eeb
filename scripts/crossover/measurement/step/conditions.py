"""Set torch's settings and number of threads before a workload is imported; check them and a task's device later.

Defaults differ between backends (TF32 is on in cuDNN and off in cuBLAS), so precisions are set for each operation.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from crossover.config.words import DEVICES
from crossover.measurement.modules import parameters_of
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.tasks import Task

PRECISION_LEAVES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")

PARENTS = ("fp32_precision", "cudnn.fp32_precision", "mkldnn.fp32_precision")
"""Parent settings of PRECISION_LEAVES, some of which inductor reads."""

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

KEYS = {
    r".*fp32_precision": "precisions: [tf32]",
    r"default_dtype": "precisions: [fp64]",
    r"default_device": "devices",
    r"autocast": "precisions: [amp-bf16]",
    r"threads": "cpu_threads",
}
"""Config keys that replace a setting of torch, by a pattern for the setting's name."""


def wrong_device(task: Task, target: OpenDevice, uuid: str | None, board: str | None) -> str | None:
    """Reason why a task is not on the requested device; None if it is there, or if this is unknown.

    `uuid` identifies the leased GPU or MIG instance, and `board` the whole GPU. For a MIG instance, torch reports
    either of them.
    """
    device_types = {tensor.device.type for tensor in (*parameters_of(task.model), *task.on_device)}
    if others := sorted(device_types - {target.device.type}):
        return f"tensors lie on {', '.join(others)}, not on {target.device.type}: the workload must use its device"
    if uuid is None or target.uuid is None or (uuid.startswith("MIG-") and board is None):
        return None
    used, *leased = (name.removeprefix("MIG-").removeprefix("GPU-") for name in (target.uuid, uuid, board or uuid))
    if used not in leased:
        return f"{target.uuid} ran, not the leased {uuid}: something changed CUDA_VISIBLE_DEVICES"
    return None


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators, whose states a fork inherits from the trial server."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def set_switches(precision: str, threads: int) -> dict[str, Any]:
    """Set the number of threads and the settings; returns the expected result of `read_switches`."""
    torch.set_num_threads(threads)
    # Inductor and `torch.backends.cudnn.flags` read the older settings, which must agree with the new ones.
    with warnings.catch_warnings(action="ignore"):  # torch warns that the older settings are deprecated
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
    switches = _switches(precision)
    for name, value in switches.items():
        owner, key = _attribute(name)
        setattr(owner, key, value)
    return {**read_switches(), **switches, "threads": threads}


def read_switches() -> dict[str, Any]:
    """The current settings and numbers of threads, as plain values.

    Gradient mode is left out: training fails without gradients, and inference sets the mode itself.
    """
    cuda = torch.backends.cuda
    return _read([*_switches("fp32"), *PARENTS]) | {
        "cuda.flash_sdp": cuda.flash_sdp_enabled(),
        "cuda.mem_efficient_sdp": cuda.mem_efficient_sdp_enabled(),
        "cuda.math_sdp": cuda.math_sdp_enabled(),
        "cuda.cudnn_sdp": cuda.cudnn_sdp_enabled(),
        "cuda.fp16_bf16_reduction_math_sdp": cuda.fp16_bf16_reduction_math_sdp_allowed(),
        "mha.fastpath": torch.backends.mha.get_fastpath_enabled(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()),
        "default_device": str(torch.get_default_device()),
        "autocast": [device for device in DEVICES if torch.is_autocast_enabled(device)],
        "anomaly_detection": torch.is_anomaly_enabled(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }


def restore_unset(expected: Mapping[str, Any]) -> None:
    """Set the precisions again that are unset, as torch.export leaves those of cuDNN; a user's choice stays."""
    for name in (f"{leaf}.fp32_precision" for leaf in PRECISION_LEAVES):
        owner, key = _attribute(name)
        if getattr(owner, key) == "none":
            setattr(owner, key, expected[name])


def changes(expected: Mapping[str, Any], current: Mapping[str, Any]) -> str | None:
    """A message that names the settings that differ from the expected ones; None if all agree."""
    names = [name for name, value in expected.items() if current[name] != value]
    changed = ", ".join(f"{name} changed from {expected[name]} to {current[name]}" for name in names)
    keys = dict.fromkeys(key for pattern, key in KEYS.items() if any(re.fullmatch(pattern, name) for name in names))
    instead = f"; set {' and '.join(keys)} in the config instead" if keys else ""
    return f"{changed}: the workload, or what it imports, must not set it{instead}" if names else None


class SwitchWatch(TorchDispatchMode):
    """Reads settings at each operator, to detect a step that changes a setting and restores it."""

    def __init__(self, switches: Mapping[str, Any]) -> None:
        TorchDispatchMode.__init__(self)
        self.expected = {name: switches[name] for name in (*_switches("fp32"), "threads") if name in switches}
        self.seen = dict(self.expected)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        now = _read(_switches("fp32")) | {"threads": torch.get_num_threads()}
        self.seen |= {name: now[name] for name, value in self.expected.items() if now[name] != value}
        return func(*args, **(kwargs or {}))


def _switches(precision: str) -> dict[str, Any]:
    on_gpu = "tf32" if precision == "tf32" else "ieee"
    leaves = {f"{leaf}.fp32_precision": on_gpu if leaf.startswith("cu") else "ieee" for leaf in PRECISION_LEAVES}
    return leaves | DEFAULTS


def _read(names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(*_attribute(name)) for name in names}


@cache
def _attribute(name: str) -> tuple[Any, str]:
    owner, _, key = name.rpartition(".")
    return (attrgetter(owner)(torch.backends) if owner else torch.backends), key

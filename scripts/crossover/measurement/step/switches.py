"""Everything that decides how torch computes: set before anything is imported or built, read back around the timing.

Defaults differ between backends: TF32 is on in cuDNN and off in cuBLAS, so a model that is said to run in fp32 may not.
Of the precisions only the leaves are asked for: a setting higher up leaks into every backend below it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from crossover.config.words import DEVICES

PRECISION_LEAVES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")

PARENTS = ("fp32_precision", "cudnn.fp32_precision", "mkldnn.fp32_precision")
"""Settings higher up, which inductor reads beside the leaves."""

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
"""What torch documents as its defaults, said again so that nothing else decides."""


def set_switches(precision: str, threads: int) -> dict[str, Any]:
    """Set the threads and every switch that changes arithmetic or the choice of algorithms.

    Returns what `read_switches` must find from now on: what was set, and the rest as it was.
    """
    torch.set_num_threads(threads)
    _set_older_names(precision == "tf32")
    asked = _asked(precision)
    for name, value in asked.items():
        owner, key = _place(name)
        setattr(owner, key, value)
    return {**read_switches(), **asked, "threads": threads}


def read_switches() -> dict[str, Any]:
    """All switches and threads as torch has them now, as plain values."""
    return _read([*_asked("fp32"), *PARENTS]) | {name: read() for name, read in _others().items()}


def changes(asked: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Which switches are not as they were asked for, in one line with the remedy; None where all are."""
    changed = [f"{name} changed from {value} to {found[name]}" for name, value in asked.items() if found[name] != value]
    return f"{', '.join(changed)}: the workload, or what it imports, must not set it" if changed else None


class SwitchWatch(TorchDispatchMode):
    """Reads the switches that were set, and a CPU's threads, at every operation of a step, so that what is set back at
    its end is seen too.
    """

    def __init__(self, asked: Mapping[str, Any]) -> None:
        TorchDispatchMode.__init__(self)
        self.asked = {name: asked[name] for name in (*_asked("fp32"), "threads") if name in asked}
        self.found = dict(self.asked)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        now = _read(_asked("fp32")) | {"threads": torch.get_num_threads()}
        self.found |= {name: now[name] for name, value in self.asked.items() if now[name] != value}
        return func(*args, **(kwargs or {}))


def _set_older_names(tf32: bool) -> None:
    """Set what the leaves were called before, which sets the leaves, too: torch refuses to read these names where the
    new ones disagree, and `torch.backends.cudnn.flags` and inductor read them.
    """
    with warnings.catch_warnings(action="ignore"):  # that there are newer names
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32


def _asked(precision: str) -> dict[str, Any]:
    """The switches that are set, by their path below torch.backends."""
    wanted = "tf32" if precision == "tf32" else "ieee"
    leaves = {f"{leaf}.fp32_precision": wanted if leaf.startswith("cu") else "ieee" for leaf in PRECISION_LEAVES}
    return leaves | DEFAULTS


def _read(names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(*_place(name)) for name in names}


@cache
def _place(name: str) -> tuple[Any, str]:
    """What holds a switch, and its name there."""
    owner, _, key = name.rpartition(".")
    return (attrgetter(owner)(torch.backends) if owner else torch.backends), key


def _others() -> dict[str, Callable[[], Any]]:
    """What is left as it is, and must stay so: it has the same value in every fresh process.

    Whether gradients are on is not among these: a training fails without, and an inference switches them off itself.
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
        "autocast": lambda: [device for device in DEVICES if torch.is_autocast_enabled(device)],
        "anomaly_detection": torch.is_anomaly_enabled,
        "threads": torch.get_num_threads,
        "interop_threads": torch.get_num_interop_threads,
    }

"""Precisions: every switch is set explicitly and read back, since defaults differ between backends.

TF32 is on by default in cuDNN and off in cuBLAS, so a model that is said to run in fp32 may not. Only leaf settings are
written: a setting higher up leaks into every backend below it.
"""

from __future__ import annotations

from typing import Any

import torch


class UnsupportedError(Exception):
    """This device cannot do what the cell asks for; a result, not a failure."""


def _leaves() -> dict[str, Any]:
    backends: Any = torch.backends  # its modules hide these settings from a type checker
    return {
        "cuda.matmul": backends.cuda.matmul,
        "cudnn.conv": backends.cudnn.conv,
        "cudnn.rnn": backends.cudnn.rnn,
        "mkldnn.matmul": backends.mkldnn.matmul,
        "mkldnn.conv": backends.mkldnn.conv,
        "mkldnn.rnn": backends.mkldnn.rnn,
    }


def set_precision(precision: str, device: torch.device) -> dict[str, str]:
    """Set the arithmetic of float32 operations and return every switch as read back.

    Raises UnsupportedError where the device lacks the precision.
    """
    if precision == "tf32" and not _has_tf32(device):
        raise UnsupportedError(f"tf32 needs an NVIDIA GPU of compute capability 8.0 or newer; this is {device.type}")
    wanted = "tf32" if precision == "tf32" else "ieee"
    settings = {}
    for name, leaf in _leaves().items():
        leaf.fp32_precision = wanted if name.startswith("cu") else "ieee"
        settings[f"{name}.fp32_precision"] = str(leaf.fp32_precision)
    return settings


def _has_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)

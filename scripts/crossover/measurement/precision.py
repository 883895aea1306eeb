"""Precisions: every switch is set explicitly and read back, since defaults differ between backends.

TF32 is on by default in cuDNN and off in cuBLAS, so a model that is said to run in fp32 may not. Only leaf settings are
written: a setting higher up leaks into every backend below it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

PURE = {"fp64": torch.float64, "bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


class UnsupportedError(Exception):
    """This device cannot do what the cell asks for; a result, not a failure."""


@dataclass(frozen=True)
class Arithmetic:
    """The numbers that a task computes with, on its device."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    """Type of parameters and of floating-point inputs."""
    autocast_dtype: torch.dtype | None = None
    scaler: torch.amp.GradScaler | None = None
    """Scales the loss of a training step in amp-fp16, whose small gradients would become zero."""

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the device; floating-point ones in `dtype`, others as they are."""
        return tensor.to(self.device, self.dtype) if tensor.is_floating_point() else tensor.to(self.device)

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of a forward pass."""
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.autocast_dtype)

    def backward(self, loss: torch.Tensor) -> None:
        """Backward pass, of the scaled loss where there is a scaler; gradients add up over several."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Optimizer step on the gradients of one or more backward passes."""
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()


def arithmetic_of(precision: str, device: torch.device) -> Arithmetic:
    """The arithmetic of a precision; raises UnsupportedError where the device lacks it."""
    if (reason := _missing(precision, device)) is not None:
        raise UnsupportedError(reason)
    return Arithmetic(
        device,
        PURE.get(precision, torch.float32),
        AUTOCAST.get(precision),
        torch.amp.GradScaler(device.type) if precision == "amp-fp16" else None,
    )


def set_switches(precision: str) -> dict[str, Any]:
    """Set every switch that changes arithmetic or the choice of algorithms, and return all of them as read back."""
    wanted = "tf32" if precision == "tf32" else "ieee"
    settings: dict[str, Any] = {}
    for name, leaf in _leaves().items():
        leaf.fp32_precision = wanted if name.startswith("cu") else "ieee"
        settings[f"{name}.fp32_precision"] = str(leaf.fp32_precision)
    for name, (owner, key, value) in _flags().items():
        setattr(owner, key, value)
        settings[name] = getattr(owner, key)
    return settings


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


def _flags() -> dict[str, tuple[Any, str, bool]]:
    """Switches with the value that torch documents as its default, said again so that nothing else decides."""
    matmul: Any = torch.backends.cuda.matmul
    return {
        "cuda.matmul.allow_fp16_reduced_precision_reduction": (
            matmul,
            "allow_fp16_reduced_precision_reduction",
            True,
        ),
        "cuda.matmul.allow_bf16_reduced_precision_reduction": (
            matmul,
            "allow_bf16_reduced_precision_reduction",
            True,
        ),
        "cuda.matmul.allow_fp16_accumulation": (matmul, "allow_fp16_accumulation", False),
        "cudnn.enabled": (torch.backends.cudnn, "enabled", True),
        "cudnn.benchmark": (torch.backends.cudnn, "benchmark", False),
        "cudnn.deterministic": (torch.backends.cudnn, "deterministic", False),
        "mkldnn.enabled": (torch.backends.mkldnn, "enabled", True),
    }


def _missing(precision: str, device: torch.device) -> str | None:
    """Why a device lacks a precision; None if it has it."""
    if precision == "tf32" and not _has_tf32(device):
        return f"tf32 needs an NVIDIA GPU of compute capability 8.0 or newer; this is {device.type}"
    if precision.endswith("bf16") and device.type == "cuda" and not _has_bf16():
        return "bf16 needs a GPU that computes in it; this one would emulate it"
    if precision == "fp64" and device.type == "mps":
        return "fp64 is not offered by MPS"
    if precision == "fp64" and device.type == "xpu" and not torch.xpu.get_device_properties(device).has_fp64:
        return "fp64 is not offered by this Intel GPU"
    return None


def _has_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


def _has_bf16() -> bool:
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))

"""Precisions: the numbers that a task computes with, and which devices have them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

PURE = {"fp64": torch.float64, "bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}

SKIPPED_MAX = 30
"""Steps in a row that a loss scaler may skip, halving from 2^16: at 2^-14 it is not the scale that overflows."""


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

    def run_until_updated(self, step: Callable[[], object]) -> bool:
        """Run a step again and again until the loss scaler skips no update of it; without a scaler nothing runs.

        A step without its update is not the one asked for: the optimizer's state is first allocated by an update. False
        where SKIPPED_MAX in a row were skipped.
        """
        if self.scaler is None:
            return True
        for _ in range(SKIPPED_MAX):
            scale = self.scaler.get_scale()
            step()
            if self.scaler.get_scale() >= scale:
                return True
        return False


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

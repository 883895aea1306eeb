"""Precisions: the number formats that a task computes in, and which devices support them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from crossover.errors import UnsupportedError

Model = TypeVar("Model", bound=nn.Module)

PURE = {"fp64": torch.float64, "bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}

SKIPPED_MAX = 30
"""Updates in a row that a loss scaler may skip. The scale is halved from 2^16; at 2^-14 it is not the cause of an
overflow."""


@dataclass(frozen=True)
class Arithmetic:
    """A device and the number formats that a task uses on it."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    """Type of floating-point parameters and inputs."""
    autocast_dtype: torch.dtype | None = None
    scaler: torch.amp.GradScaler | None = None
    """Scales the loss in amp-fp16, where small gradients would become zero."""

    @property
    def complex_dtype(self) -> torch.dtype:
        """Type of complex parameters and inputs; complex64 for half precisions: complex32 lacks operators."""
        return torch.complex128 if self.dtype is torch.float64 else torch.complex64

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Move a tensor to the device, floating-point ones in `dtype`, complex ones in `complex_dtype`."""
        if tensor.is_floating_point():
            return tensor.to(self.device, self.dtype)
        return tensor.to(self.device, self.complex_dtype) if tensor.is_complex() else tensor.to(self.device)

    def randn(self, *shape: int) -> torch.Tensor:
        """Standard-normal numbers in `dtype`, drawn on the device with torch's generator."""
        return torch.randn(shape, device=self.device, dtype=self.dtype)

    def place_model(self, model: Model) -> Model:
        """Move each parameter and buffer of a model; tied ones stay tied, and optimizers keep their parameters.

        `model.to(dtype)` would drop the imaginary parts of complex parameters.
        """
        for parameter in model.parameters():
            parameter.grad = None
        model._apply(self.place)  # type: ignore[no-untyped-call]
        return model

    def autocast(self) -> AbstractContextManager[Any]:
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.autocast_dtype)

    def backward(self, loss: torch.Tensor) -> None:
        """Run the backward pass of the loss, scaled if there is a scaler."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Run an optimizer step on the gradients of one or more backward passes."""
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()

    def run_until_updated(self, step: Callable[[], object]) -> bool:
        """Repeat a step until the loss scaler does not skip its update; False if it skipped SKIPPED_MAX in a row.

        The first update allocates the optimizer's state, so earlier steps should not be measured. Without a scaler no
        step runs.
        """
        if self.scaler is None:
            return True
        for _ in range(SKIPPED_MAX):
            scale = self.scaler.get_scale()
            step()
            if self.scaler.get_scale() >= scale:
                return True
        return False


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Use a type as the default of new tensors while the block runs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def arithmetic_of(precision: str, device: torch.device) -> Arithmetic:
    """The arithmetic of a precision; raises UnsupportedError if the device lacks it."""
    if (reason := _why_unsupported(precision, device)) is not None:
        raise UnsupportedError(reason)
    return Arithmetic(
        device,
        PURE.get(precision, torch.float32),
        AUTOCAST.get(precision),
        torch.amp.GradScaler(device.type) if precision == "amp-fp16" else None,
    )


def _why_unsupported(precision: str, device: torch.device) -> str | None:
    nvidia = device.type == "cuda" and torch.version.hip is None
    if precision == "tf32" and not (nvidia and torch.cuda.get_device_capability(device) >= (8, 0)):
        return f"tf32 needs an NVIDIA GPU of compute capability 8.0 or newer; this is {device.type}"
    emulated = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    if precision.endswith("bf16") and emulated:
        return "bf16 needs a GPU with native support; this one would emulate it"
    if precision == "fp64" and device.type == "mps":
        return "fp64 is not supported by MPS"
    if precision == "fp64" and device.type == "xpu" and not torch.xpu.get_device_properties(device).has_fp64:
        return "fp64 is not supported by this Intel GPU"
    return None

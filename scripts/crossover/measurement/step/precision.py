"""Precisions: number formats of a task, and the devices that support them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from crossover.errors import UnsupportedError
from crossover.measurement.modules import move, parameters_of

Model = TypeVar("Model", bound=nn.Module)

PURE = {"fp64": torch.float64, "bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}

SKIPPED_MAX = 30
"""Consecutive updates that a loss scaler may skip. Each halves the scale, from 2^16 to 2^-14. A further overflow has
another cause."""


@dataclass(frozen=True)
class Arithmetic:
    """A device and the number formats that a task uses on it."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    """Type of floating-point parameters and inputs."""
    autocast_dtype: torch.dtype | None = None
    scaler: torch.amp.GradScaler | None = None

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Move a tensor to the device; floating-point and complex numbers are converted to the arithmetic's types."""
        if tensor.is_floating_point():
            return tensor.to(self.device, self.dtype)
        if tensor.is_complex():  # complex64 for half precisions too, since complex32 lacks operators
            return tensor.to(self.device, torch.complex128 if self.dtype is torch.float64 else torch.complex64)
        return tensor.to(self.device)

    def randn(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, device=self.device, dtype=self.dtype)

    def place_model(self, model: Model) -> Model:
        """Move a model's parameters and buffers to this device and precision, in place, and clear its gradients.

        Unlike torch's `model.to(dtype)`, this keeps the imaginary parts of complex parameters. Raises what the model's
        own `to` raises.
        """
        for parameter in parameters_of(model):
            parameter.grad = None
        move(model, self.place, self.device, self.dtype)
        return model

    def autocast(self) -> AbstractContextManager[Any]:
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.autocast_dtype)

    def backward(self, loss: torch.Tensor) -> None:
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights, unless the scaler finds an overflow."""
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()

    def run_until_updated(self, step: Callable[[], object]) -> bool:
        """Repeat a step until the loss scaler does not skip the update; False after SKIPPED_MAX skipped updates.

        The first update allocates the optimizer's state, so steps before it should not be measured.
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
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def arithmetic_of(precision: str, device: torch.device) -> Arithmetic:
    """The arithmetic for a precision; raises UnsupportedError if the device does not support it."""
    nvidia = device.type == "cuda" and torch.version.hip is None
    if precision == "tf32" and not (nvidia and torch.cuda.get_device_capability(device) >= (8, 0)):
        raise UnsupportedError(f"tf32 needs an NVIDIA GPU of compute capability 8.0 or newer; this is {device.type}")
    emulated = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    if precision.endswith("bf16") and emulated:
        raise UnsupportedError("bf16 needs a GPU with native support; this one would emulate it")
    if precision == "fp64" and device.type == "mps":
        raise UnsupportedError("fp64 is not supported by MPS")
    if precision == "fp64" and device.type == "xpu" and not torch.xpu.get_device_properties(device).has_fp64:
        raise UnsupportedError("fp64 is not supported by this Intel GPU")
    return Arithmetic(
        device,
        PURE.get(precision, torch.float32),
        AUTOCAST.get(precision),
        torch.amp.GradScaler(device.type) if precision == "amp-fp16" else None,
    )

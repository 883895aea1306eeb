"""Precisions that devices support, and updates with a loss scaler."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from crossover.errors import UnsupportedError
from crossover.measurement.step.precision import Arithmetic, arithmetic_of

CPU, GPU, METAL, INTEL = (torch.device(kind) for kind in ("cpu", "cuda:0", "mps", "xpu"))


@pytest.mark.parametrize(
    ("capability", "hip", "supported"), [((7, 5), None, False), ((8, 0), None, True), ((9, 0), "6.4", False)]
)
def test_tf32_needs_an_nvidia_gpu_since_ampere(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None, supported: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    if supported:
        assert arithmetic_of("tf32", GPU) == Arithmetic(GPU, torch.float32)
    for device in (CPU, *([] if supported else [GPU])):
        with pytest.raises(UnsupportedError, match="tf32 needs an NVIDIA GPU"):
            arithmetic_of("tf32", device)


@pytest.mark.parametrize("name", ["bf16", "amp-bf16"])
def test_bf16_must_not_be_emulated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    with pytest.raises(UnsupportedError, match="bf16 needs a GPU with native support"):
        arithmetic_of(name, GPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    assert torch.bfloat16 in (arithmetic_of(name, GPU).dtype, arithmetic_of(name, GPU).autocast_dtype)


def test_fp64_is_unsupported_on_some_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _: SimpleNamespace(has_fp64=False))
    for device in (METAL, INTEL):
        with pytest.raises(UnsupportedError, match="fp64 is not supported by"):
            arithmetic_of("fp64", device)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _: SimpleNamespace(has_fp64=True))
    assert arithmetic_of("fp64", INTEL).dtype == torch.float64


@pytest.mark.parametrize(
    ("gradients", "scaled", "plain", "scale"),
    [
        (
            [2.0**-26],
            -1,
            0,
            2.0**16,
        ),  # fp16's smallest number is 2^-24; scaled by 2^16, a gradient of 2^-26 is not lost
        ([2.0**-26] * 2, -2, 0, 2.0**16),  # gradients of several backward passes add up in one update
        ([4.0], 0, -1, 2.0**15),  # 4 * 2^16 is more than fp16 holds: the update is skipped and the scale halved
    ],
)
def test_a_weight_after_one_update(gradients: list[float], scaled: float, plain: float, scale: float) -> None:
    """The weight starts at 0, the learning rate is 1/gradient, and gradients pass through fp16."""
    arithmetic = arithmetic_of("amp-fp16", CPU)
    for used, expected in ((replace(arithmetic, scaler=None), plain), (arithmetic, scaled)):
        weight = torch.zeros((), requires_grad=True)
        for gradient in gradients:
            used.backward(weight.half().float() * gradient)
        used.step(torch.optim.SGD([weight], lr=1 / gradients[0]))
        assert weight.item() == expected
    assert arithmetic.scaler is not None
    assert arithmetic.scaler.get_scale() == scale

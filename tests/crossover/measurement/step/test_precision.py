"""Precisions: what a device has of them, and what a CPU really computes with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from crossover.config.words import PRECISIONS
from crossover.measurement.step.precision import SKIPPED_MAX, Arithmetic, UnsupportedError, arithmetic_of

CPU, GPU, METAL, INTEL = (torch.device(kind) for kind in ("cpu", "cuda:0", "mps", "xpu"))


@pytest.mark.parametrize(
    ("name", "dtype", "autocast_dtype", "scaled"),
    [
        ("fp64", torch.float64, None, False),
        ("fp32", torch.float32, None, False),
        ("bf16", torch.bfloat16, None, False),
        ("fp16", torch.float16, None, False),
        ("amp-bf16", torch.float32, torch.bfloat16, False),
        ("amp-fp16", torch.float32, torch.float16, True),
    ],
)
def test_the_arithmetic_of_a_precision(
    name: str, dtype: torch.dtype, autocast_dtype: torch.dtype | None, scaled: bool
) -> None:
    found = arithmetic_of(name, CPU)
    assert (found.device, found.dtype, found.autocast_dtype) == (CPU, dtype, autocast_dtype)
    assert (found.scaler is not None) is scaled
    assert found.scaler is None or found.scaler.is_enabled()

    numbers, labels = found.place(torch.ones(2, 3)), found.place(torch.ones(2, dtype=torch.int64))
    assert (numbers.dtype, labels.dtype) == (dtype, torch.int64)
    with found.autocast():
        product = numbers @ numbers.T
    assert product.dtype == (autocast_dtype or dtype)
    assert (numbers @ numbers.T).dtype == dtype


def test_every_precision_has_an_arithmetic_or_a_reason() -> None:
    for name in PRECISIONS:
        if name == "tf32":
            with pytest.raises(UnsupportedError, match=r"tf32 needs an NVIDIA GPU .* this is cpu"):
                arithmetic_of(name, CPU)
        else:
            arithmetic_of(name, CPU)


@pytest.mark.parametrize(("capability", "supported"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_tf32_needs_an_ampere_gpu(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], supported: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.version, "hip", None)
    if supported:
        assert arithmetic_of("tf32", GPU) == Arithmetic(GPU, torch.float32)
        monkeypatch.setattr(torch.version, "hip", "6.4")  # AMD's GPUs have no tf32
    with pytest.raises(UnsupportedError, match=r"compute capability 8\.0 or newer"):
        arithmetic_of("tf32", GPU)


@pytest.mark.parametrize("name", ["bf16", "amp-bf16"])
def test_bf16_must_not_be_emulated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    with pytest.raises(UnsupportedError, match="bf16 needs a GPU that computes in it"):
        arithmetic_of(name, GPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    assert torch.bfloat16 in (arithmetic_of(name, GPU).dtype, arithmetic_of(name, GPU).autocast_dtype)


def test_fp64_is_not_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="fp64 is not offered by MPS"):
        arithmetic_of("fp64", METAL)
    for has_fp64 in (False, True):
        properties = SimpleNamespace(has_fp64=has_fp64)
        monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _, found=properties: found)
        if has_fp64:
            assert arithmetic_of("fp64", INTEL).dtype == torch.float64
        else:
            with pytest.raises(UnsupportedError, match="fp64 is not offered by this Intel GPU"):
                arithmetic_of("fp64", INTEL)


def updated(arithmetic: Arithmetic, gradient: float) -> float:
    """A weight of 0 after one update at a learning rate of 1/gradient, where the gradient passes through fp16."""
    weight = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1 / gradient)
    arithmetic.backward(weight.half().float() * gradient)
    arithmetic.step(optimizer)
    return weight.item()


def test_the_scaler_saves_gradients_that_fp16_cannot_hold() -> None:
    """The smallest number of fp16 is 2^-24; scaled by 2^16, a gradient of 2^-26 is there."""
    scaled = arithmetic_of("amp-fp16", CPU)
    assert updated(scaled, 2.0**-26) == -1
    assert updated(replace(scaled, scaler=None), 2.0**-26) == 0
    assert scaled.scaler is not None
    assert scaled.scaler.get_scale() == 2.0**16


def test_an_overflow_skips_the_update_and_halves_the_scale() -> None:
    scaled = arithmetic_of("amp-fp16", CPU)
    assert updated(scaled, 4.0) == 0  # 4 * 2^16 is more than fp16 holds
    assert scaled.scaler is not None
    assert scaled.scaler.get_scale() == 2.0**15
    assert updated(replace(scaled, scaler=None), 4.0) == -1


def test_backward_passes_add_up_to_one_update() -> None:
    """Two passes of 2^-26 each, neither of which fp16 can hold unless it is scaled."""
    scaled = arithmetic_of("amp-fp16", CPU)
    weight = torch.zeros((), requires_grad=True)
    for _ in range(2):
        scaled.backward(weight.half().float() * 2.0**-26)
    scaled.step(torch.optim.SGD([weight], lr=2.0**26))
    assert weight.item() == -2


def training_step(arithmetic: Arithmetic, gradient: float) -> tuple[Callable[[], None], torch.optim.Optimizer]:
    """A step whose gradient passes through fp16, which holds at most 65504, and the Adam that it updates with."""
    weight = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([weight])

    def step() -> None:
        arithmetic.backward(weight.half().float() * gradient)
        arithmetic.step(optimizer)
        optimizer.zero_grad()

    return step, optimizer


@pytest.mark.parametrize(
    ("gradient", "steps"),
    [
        (0.5, 1),  # 0.5 * 2^16 fits
        (1.0, 2),  # 2^16 does not, 2^15 does
        (2.0**10, 12),  # 2^26 to 2^16 do not
    ],
)
def test_steps_run_until_the_scaler_lets_one_update(gradient: float, steps: int) -> None:
    arithmetic, ran = arithmetic_of("amp-fp16", CPU), []
    step, optimizer = training_step(arithmetic, gradient)
    assert arithmetic.run_until_updated(lambda: (ran.append(len(optimizer.state)), step()))
    assert ran == [0] * steps
    assert len(optimizer.state) == 1  # which Adam allocates with its first update


def test_a_scaler_that_skips_every_update_is_given_up() -> None:
    arithmetic, ran = arithmetic_of("amp-fp16", CPU), []
    step, optimizer = training_step(arithmetic, float("inf"))
    assert not arithmetic.run_until_updated(lambda: (ran.append(1), step()))
    assert (len(ran), len(optimizer.state)) == (SKIPPED_MAX, 0)


def test_without_a_scaler_no_step_needs_to_run() -> None:
    assert Arithmetic(CPU).run_until_updated(lambda: pytest.fail("a step"))

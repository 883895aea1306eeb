"""Precisions: what is set, what is read back, and what a CPU really computes with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from crossover.measurement import precision
from crossover.measurement.precision import Arithmetic, UnsupportedError, arithmetic_of, set_switches
from crossover.records import PRECISIONS

CPU, GPU, METAL, INTEL = (torch.device(kind) for kind in ("cpu", "cuda:0", "mps", "xpu"))

LEAVES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
FLAGS = {
    "cuda.matmul.allow_fp16_reduced_precision_reduction": True,
    "cuda.matmul.allow_bf16_reduced_precision_reduction": True,
    "cuda.matmul.allow_fp16_accumulation": False,
    "cudnn.enabled": True,
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
    "mkldnn.enabled": True,
}


def ieee() -> dict[str, Any]:
    return {f"{leaf}.fp32_precision": "ieee" for leaf in LEAVES} | FLAGS


def wanted(name: str) -> dict[str, Any]:
    """All switches as a precision asks for them."""
    tf32 = {f"{leaf}.fp32_precision": "tf32" for leaf in LEAVES if leaf.startswith("cu")}
    return ieee() | (tf32 if name == "tf32" else {})


def read(switch: str) -> Any:
    """A switch as torch itself has it."""
    return attrgetter(switch)(torch.backends)


def write(switch: str, value: Any) -> None:
    owner, _, name = switch.rpartition(".")
    setattr(attrgetter(owner)(torch.backends), name, value)


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    before = {switch: read(switch) for switch in ieee()}
    yield
    for switch, value in before.items():
        write(switch, value)


@pytest.mark.parametrize("name", PRECISIONS)
def test_every_switch_is_set_whatever_it_was_before(name: str) -> None:
    opposite = {"ieee": "tf32", "tf32": "ieee", True: False, False: True}
    for switch, value in wanted(name).items():
        write(switch, opposite[value])
        assert read(switch) == opposite[value]
    assert set_switches(name) == wanted(name)
    assert {switch: read(switch) for switch in wanted(name)} == wanted(name)


@pytest.mark.parametrize(("earlier", "later"), list(permutations(("fp32", "tf32", "amp-bf16"), 2)))
def test_nothing_leaks_from_one_precision_into_the_next(earlier: str, later: str) -> None:
    set_switches(earlier)
    set_switches(later)
    assert {switch: read(switch) for switch in wanted(later)} == wanted(later)


def test_a_setting_higher_up_does_not_reach_the_leaves() -> None:
    before = torch.backends.fp32_precision
    torch.backends.fp32_precision = "tf32"
    try:
        assert set_switches("fp32") == wanted("fp32")
    finally:
        torch.backends.fp32_precision = before


def test_what_is_recorded_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that does not obey is recorded as it is."""

    class Stubborn:
        fp32_precision = property(lambda _: "tf32", lambda *_: None)
        enabled = property(lambda _: False, lambda *_: None)

    monkeypatch.setattr(precision, "_leaves", lambda: {"cudnn.conv": Stubborn()})
    monkeypatch.setattr(precision, "_flags", lambda: {"cudnn.enabled": (Stubborn(), "enabled", True)})
    assert set_switches("fp32") == {"cudnn.conv.fp32_precision": "tf32", "cudnn.enabled": False}


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

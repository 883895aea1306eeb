"""Switches: what is set, what is read back, and which change is seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from operator import attrgetter
from typing import Any

import pytest
import torch

from crossover.config.words import PRECISIONS
from crossover.measurement.step import switches
from crossover.measurement.step.switches import SwitchWatch, changes, read_switches, set_switches

LEAVES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
FLAGS = {
    "cuda.matmul.allow_fp16_reduced_precision_reduction": True,
    "cuda.matmul.allow_bf16_reduced_precision_reduction": True,
    "cuda.matmul.allow_fp16_accumulation": False,
    "cudnn.enabled": True,
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
    "mkldnn.enabled": True,
    "mkldnn.deterministic": False,
}
IEEE: dict[str, Any] = {f"{leaf}.fp32_precision": "ieee" for leaf in LEAVES} | FLAGS
THREADS = torch.get_num_threads()


def wanted(name: str) -> dict[str, Any]:
    """All switches that are set, as a precision asks for them."""
    tf32 = {f"{leaf}.fp32_precision": "tf32" for leaf in LEAVES if leaf.startswith("cu")}
    return IEEE | (tf32 if name == "tf32" else {})


def read(switch: str) -> Any:
    """A switch as torch itself has it."""
    return attrgetter(switch)(torch.backends)


def write(switch: str, value: Any) -> None:
    owner, _, name = switch.rpartition(".")
    setattr(attrgetter(owner)(torch.backends) if owner else torch.backends, name, value)


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    yield
    torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]
    set_switches("fp32", THREADS)


@pytest.mark.parametrize("name", PRECISIONS)
def test_every_switch_is_set_whatever_it_was_before(name: str) -> None:
    opposite = {"ieee": "tf32", "tf32": "ieee", True: False, False: True}
    for switch, value in wanted(name).items():
        write(switch, opposite[value])
        assert read(switch) == opposite[value]
    asked = set_switches(name, THREADS)
    assert wanted(name).items() <= asked.items()
    assert {switch: read(switch) for switch in wanted(name)} == wanted(name)
    assert read_switches() == asked
    assert json.loads(json.dumps(asked)) == asked


@pytest.mark.parametrize(("earlier", "later"), list(permutations(("fp32", "tf32", "amp-bf16"), 2)))
def test_nothing_leaks_from_one_precision_into_the_next(earlier: str, later: str) -> None:
    set_switches(earlier, THREADS)
    set_switches(later, THREADS)
    assert {switch: read(switch) for switch in wanted(later)} == wanted(later)


def test_a_setting_higher_up_does_not_reach_the_leaves() -> None:
    write("fp32_precision", "tf32")
    assert wanted("fp32").items() <= set_switches("fp32", THREADS).items()


@pytest.mark.parametrize("name", ["fp32", "tf32"])
def test_the_older_names_agree_with_the_leaves(name: str) -> None:
    """Torch raises where they do not, also in a workload that only says `torch.backends.cudnn.flags`."""
    set_switches(name, THREADS)
    assert torch.get_float32_matmul_precision() == {"fp32": "highest", "tf32": "high"}[name]
    assert read("cudnn.allow_tf32") is read("cuda.matmul.allow_tf32") is (name == "tf32")
    with torch.backends.cudnn.flags(enabled=True):
        pass


def test_a_switch_that_does_not_obey_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn:
        benchmark = property(lambda _: True, lambda *_: None)

    place = switches._place
    monkeypatch.setattr(
        switches, "_place", lambda name: (Stubborn(), "benchmark") if name == "cudnn.benchmark" else place(name)
    )
    asked = set_switches("fp32", THREADS)
    assert (asked["cudnn.benchmark"], read_switches()["cudnn.benchmark"]) == (False, True)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda: write("cudnn.benchmark", True), "cudnn.benchmark changed from False to True"),
        (lambda: write("cuda.matmul.allow_tf32", True), "cuda.matmul.fp32_precision changed from ieee to tf32"),
        (
            lambda: torch.set_float32_matmul_precision("medium"),
            "cuda.matmul.fp32_precision changed from ieee to tf32, "
            "mkldnn.matmul.fp32_precision changed from ieee to bf16",
        ),
        (
            lambda: torch.set_float32_matmul_precision("high"),
            "cuda.matmul.fp32_precision changed from ieee to tf32, "
            "mkldnn.matmul.fp32_precision changed from ieee to tf32",
        ),
        (lambda: write("cudnn.conv.fp32_precision", "tf32"), "cudnn.conv.fp32_precision changed from ieee to tf32"),
        (lambda: write("mkldnn.enabled", False), "mkldnn.enabled changed from True to False"),
        (lambda: torch.set_num_threads(THREADS + 1), f"threads changed from {THREADS} to {THREADS + 1}"),
    ],
)
def test_a_change_is_named(change: Callable[[], None], seen: str) -> None:
    asked = set_switches("fp32", THREADS)
    assert changes(asked, read_switches()) is None
    change()
    assert changes(asked, read_switches()) == f"{seen}: the workload, or what it imports, must not set it"


@pytest.mark.parametrize(
    ("set_to", "name"),
    [
        (torch.backends.cuda.enable_flash_sdp, "cuda.flash_sdp"),
        (torch.backends.cuda.enable_mem_efficient_sdp, "cuda.mem_efficient_sdp"),
        (torch.backends.cuda.enable_math_sdp, "cuda.math_sdp"),
        (torch.backends.cuda.enable_cudnn_sdp, "cuda.cudnn_sdp"),
        (torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, "cuda.fp16_bf16_reduction_math_sdp"),
        (torch.backends.mha.set_fastpath_enabled, "mha.fastpath"),
        (torch.use_deterministic_algorithms, "deterministic_algorithms"),
        (torch.autograd.set_detect_anomaly, "anomaly_detection"),
    ],
)
def test_what_is_not_set_is_read_too(set_to: Callable[[bool], Any], name: str) -> None:
    before = read_switches()
    set_to(not before[name])
    try:
        assert {key for key, value in read_switches().items() if value != before[key]} == {name}
    finally:
        set_to(before[name])


def test_modes_that_were_left_on_are_read() -> None:
    asked = set_switches("fp32", THREADS)
    with torch.autocast("cpu", torch.bfloat16):
        assert read_switches()["autocast"] == ["cpu"]
    torch.set_default_dtype(torch.float64)
    try:
        assert changes(asked, read_switches()) == (
            "default_dtype changed from torch.float32 to torch.float64: "
            "the workload, or what it imports, must not set it"
        )
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_step_that_sets_a_switch_back_is_seen() -> None:
    asked = set_switches("fp32", THREADS)
    weight = torch.ones(2, 2, requires_grad=True)
    with SwitchWatch(asked) as watch:
        (weight @ weight).sum().backward()
    assert changes(watch.asked, watch.found) is None
    with SwitchWatch(asked) as watch:
        write("cudnn.benchmark", True)
        weight @ weight
        write("cudnn.benchmark", False)
        weight + weight
    assert changes(asked, read_switches()) is None
    assert (changes(watch.asked, watch.found) or "").startswith("cudnn.benchmark changed from False to True:")


def test_a_step_that_sets_the_threads_back_is_seen() -> None:
    asked = set_switches("fp32", THREADS)
    weight = torch.ones(2, 2)
    with SwitchWatch(asked) as watch:
        torch.set_num_threads(THREADS + 1)
        weight @ weight
        torch.set_num_threads(THREADS)
        weight + weight
    assert (changes(watch.asked, watch.found) or "").startswith(f"threads changed from {THREADS} to {THREADS + 1}:")

"""Settings, threads and device: all are set and read, and changes are detected."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from crossover.config.words import PRECISIONS
from crossover.errors import InvalidError
from crossover.measurement import cell as cell_module
from crossover.measurement.cell import open_cell
from crossover.measurement.step import conditions
from crossover.measurement.step.conditions import (
    changes,
    read_switches,
    seed_all,
    set_switches,
    wrong_device,
)
from crossover.measurement.step.devices import OpenDevice
from tiny_tasks import TinyInference, linear
from trials import trial_job

THREADS = torch.get_num_threads()
JOB = trial_job("data", Path("row.parquet"))
TASK = TinyInference(linear(1.0), torch.ones(1, 1))

pytestmark = pytest.mark.usefixtures("own_switches")


def wanted(precision: str) -> dict[str, Any]:
    on_gpu = "tf32" if precision == "tf32" else "ieee"
    leaves = dict.fromkeys(("cuda.matmul", "cudnn.conv", "cudnn.rnn"), on_gpu)
    leaves |= dict.fromkeys(("mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"), "ieee")
    return {f"{leaf}.fp32_precision": value for leaf, value in leaves.items()} | conditions.DEFAULTS


def read(switch: str) -> Any:
    return attrgetter(switch)(torch.backends)


def write(switch: str, value: Any) -> None:
    owner, _, name = switch.rpartition(".")
    setattr(attrgetter(owner)(torch.backends) if owner else torch.backends, name, value)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_setting_is_set_whatever_it_was_before(precision: str) -> None:
    opposite = {"ieee": "tf32", "tf32": "ieee", True: False, False: True}
    write("fp32_precision", "tf32")  # a setting above the leaves
    for switch, value in wanted(precision).items():
        write(switch, opposite[value])
        assert read(switch) == opposite[value]
    switches = set_switches(precision, THREADS)
    assert wanted(precision).items() <= switches.items()
    assert {switch: read(switch) for switch in wanted(precision)} == wanted(precision)
    assert read_switches() == switches
    assert json.loads(json.dumps(switches)) == switches


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: write("cudnn.benchmark", True), {"cudnn.benchmark": True}),
        (lambda: write("cuda.matmul.allow_tf32", True), {"cuda.matmul.fp32_precision": "tf32"}),
        (
            lambda: torch.set_float32_matmul_precision("medium"),
            {"cuda.matmul.fp32_precision": "tf32", "mkldnn.matmul.fp32_precision": "bf16"},
        ),
        (lambda: torch.set_num_threads(THREADS + 1), {"threads": THREADS + 1}),
    ],
)
def test_a_changed_setting_is_named(change: Callable[[], None], expected: dict[str, Any]) -> None:
    switches = set_switches("fp32", THREADS)
    assert changes(switches, read_switches()) is None
    change()
    current = read_switches()
    assert {name: current[name] for name in switches if current[name] != switches[name]} == expected
    named = ", ".join(f"{name} changed from {switches[name]} to {value}" for name, value in expected.items())
    assert str(changes(switches, current)).startswith(named)


@pytest.mark.parametrize(
    ("set_to", "name"),
    [
        (torch.backends.cuda.enable_flash_sdp, "cuda.flash_sdp"),
        (torch.use_deterministic_algorithms, "deterministic_algorithms"),
        (lambda on: torch.set_default_dtype(torch.float64 if on else torch.float32), "default_dtype"),
    ],
)
def test_settings_that_are_not_set_are_read_too(set_to: Callable[[bool], Any], name: str) -> None:
    before = read_switches()
    original = False if name == "default_dtype" else before[name]
    set_to(not original)
    try:
        assert {key for key, value in read_switches().items() if value != before[key]} == {name}
    finally:
        set_to(original)


def test_the_number_of_threads_is_set_and_must_not_change() -> None:
    cell = open_cell(replace(JOB, threads=THREADS + 1))
    assert torch.get_num_threads() == THREADS + 1
    cell.check(TASK)
    torch.set_num_threads(THREADS)
    with pytest.raises(InvalidError, match=f"threads changed from {THREADS + 1} to {THREADS}"):
        cell.check(TASK)


def test_on_an_accelerator_threads_may_change_but_settings_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data loader's pinning thread sets the number of threads."""
    monkeypatch.setattr(cell_module, "open_device", lambda _: OpenDevice(torch.device("xpu"), lambda: None))
    cell = open_cell(replace(JOB, threads=THREADS + 1))
    torch.set_num_threads(THREADS)
    with pytest.raises(InvalidError, match="tensors lie on cpu, not on xpu"):
        cell.check(TASK)
    monkeypatch.setattr(cell_module, "wrong_device", lambda *_: None)
    cell.check(TASK)
    write("cudnn.benchmark", True)
    with pytest.raises(InvalidError, match=r"cudnn\.benchmark changed"):
        cell.check(TASK)


def test_another_gpu_than_the_leased_one_is_found() -> None:
    gpu = OpenDevice(torch.device("cpu"), lambda: None, uuid="GPU-1")
    for board in ("GPU-1", None):
        assert wrong_device(TASK, gpu, "GPU-1", board) is None
    for board in ("GPU-2", None):
        assert "GPU-1 ran, not the leased GPU-2" in str(wrong_device(TASK, gpu, "GPU-2", board))
    assert wrong_device(TASK, replace(gpu, uuid=None), "GPU-2", "GPU-2") is None


def test_another_mig_instance_than_the_leased_one_is_found() -> None:
    """Torch reports an instance by its own UUID or that of its GPU, both with the prefix of a GPU."""
    for name, right in (("GPU-instance", True), ("GPU-board", True), ("GPU-other", False)):
        gpu = OpenDevice(torch.device("cpu"), lambda: None, uuid=name)
        assert (wrong_device(TASK, gpu, "MIG-instance", "GPU-board") is None) is right
        assert wrong_device(TASK, gpu, "MIG-instance", None) is None  # the GPU that holds the instance is unknown


@pytest.mark.parametrize("seed", [0, 2**32, 2**40 + 1])
def test_a_seed_determines_the_numbers_of_every_generator(seed: int) -> None:
    def drawn(seed: int) -> tuple[float, ...]:
        seed_all(seed)
        return random.random(), float(np.random.rand()), float(torch.rand(1))

    assert drawn(seed) == drawn(seed)
    assert not set(drawn(seed)) & set(drawn(seed + 1))

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from crossover.machine import discovery
from crossover.machine.discovery import (
    Machine,
    Nodes,
    find_machine,
    hand_down,
    handed_down,
    sent_elsewhere,
    torch_built_for,
)
from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two NVIDIA GPUs, the second of which is split."""
    split = FakeGpu("GPU-4567-89ab", instances=(FakeGpu("MIG-0123-4567"),))
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(FakeGpu("GPU-0123-4567"), split))


@pytest.fixture
def no_nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)


@pytest.fixture
def cuda_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "torch_built_for", lambda: {"cuda": "13.0"})


@pytest.mark.usefixtures("no_nvidia")
def test_a_machine_without_gpu_has_its_cpu() -> None:
    machine = find_machine({})
    assert "cpu" in machine.devices
    assert "cuda" not in machine.devices
    assert machine.driver_version is None


@pytest.mark.usefixtures("nvidia", "cuda_torch")
@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ({}, True),
        ({"CUDA_VISIBLE_DEVICES": "1"}, True),
        ({"CUDA_VISIBLE_DEVICES": ""}, False),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, False),
        ({"CUDA_VISIBLE_DEVICES": "2"}, False),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, False),
        ({"CUDA_VISIBLE_DEVICES": "GPU-0123"}, True),
        ({"CUDA_VISIBLE_DEVICES": "MIG-0123"}, True),
    ],
)
def test_visible_gpus_count(environment: dict[str, str], there: bool) -> None:
    machine = find_machine(environment)
    assert ("cuda" in machine.devices) is there
    assert machine.driver_version == "580.1"


@pytest.mark.usefixtures("nvidia")
def test_a_gpu_that_torch_cannot_use_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "torch_built_for", lambda: {})
    machine = find_machine({})
    assert machine.devices == ("cpu",)
    assert "built without CUDA" in str(machine.note)


@pytest.mark.usefixtures("nvidia")
def test_a_driver_too_old_for_torch_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "torch_built_for", lambda: {"cuda": "14.0"})
    machine = find_machine({})
    assert machine.devices == ("cpu",)
    assert "its driver 580.1 is too old for the installed torch, built for CUDA 14.0" in str(machine.note)


@pytest.mark.parametrize(
    ("source", "built_for"),
    [
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", {"cuda": "13.0"}),
        ("cuda = None\nhip = '7.0'\nxpu = '2026'\n", {"hip": "7.0", "xpu": "2026"}),
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", {}),
    ],
)
def test_torchs_build_is_read_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, built_for: dict[str, str]
) -> None:
    (tmp_path / "version.py").write_text(f"from typing import Optional\n{source}")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(discovery.importlib.util, "find_spec", lambda _: spec)
    assert torch_built_for() == built_for


def test_without_torch_it_is_built_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Any) -> None:
        return None

    monkeypatch.setattr(discovery.importlib.util, "find_spec", nothing)
    assert torch_built_for() == {}


def test_a_job_reads_what_the_main_process_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(discovery.HANDED_DOWN, "")
    machine = Machine(("cpu", "cuda"), "2.13.0", "580.1")
    hand_down(machine)
    assert handed_down() == machine


LOGIN = Machine(("cpu", "mps"), "2.13.0", None, note="this machine has a GPU that cannot be used")


@pytest.mark.parametrize(("cpus_per_gpu", "devices"), [(24, ("cpu", "cuda")), (None, ("cpu",))])
def test_auto_means_the_devices_of_a_clusters_nodes(cpus_per_gpu: int | None, devices: tuple[str, ...]) -> None:
    machine = sent_elsewhere(LOGIN, Nodes(96, cpus_per_gpu))
    assert (machine.devices, machine.note, machine.elsewhere) == (devices, None, True)


def test_a_cluster_that_nobody_describes_is_elsewhere_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = sent_elsewhere(LOGIN, None)
    assert (machine.devices, machine.nodes, machine.elsewhere) == (LOGIN.devices, None, True)
    monkeypatch.setenv(discovery.HANDED_DOWN, "")
    monkeypatch.setenv(discovery.WORKFLOW, "")
    hand_down(machine)
    assert handed_down() == machine

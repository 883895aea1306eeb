from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from crossover.errors import UserError
from crossover.machine import discovery, threads
from crossover.machine.discovery import (
    Machine,
    Nodes,
    find_machine,
    find_nodes,
    hand_down,
    handed_down,
    prefer_this_environment,
    read_nodes,
    sent_elsewhere,
    torch_built_for,
)
from crossover.plan.before_run import check_executor, devices_unknown
from fake_nvml import FakeGpu, FakeNvml
from plans import configured


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two NVIDIA GPUs, of which the second is partitioned (MIG)."""
    split = FakeGpu("GPU-4567-89ab", instances=(FakeGpu("MIG-0123-4567"),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(FakeGpu("GPU-0123-4567"), split))


@pytest.fixture
def cuda_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "torch_built_for", lambda: {"cuda": "13.0"})


@pytest.mark.usefixtures("nvidia", "cuda_torch")
def test_only_visible_gpus_make_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for visible, devices in ((None, ("cpu", "cuda")), ("", ("cpu",)), ("MIG-0123", ("cpu", "cuda"))):
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        machine = find_machine()
        assert machine.devices == devices
        assert machine.driver_version == "580.1"


@pytest.mark.usefixtures("cuda_torch")
def test_the_hardware_lists_visible_gpus_and_their_share_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with 8 cores, each of two GPUs has 4."""
    gpus = [FakeGpu(f"GPU-{name}", answers={"nvmlDeviceGetName": f"Brand {name}"}) for name in "ab"]
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*gpus))
    monkeypatch.setattr(discovery, "cpu_model", lambda: "CPU C")
    for name, value in (("usable_cpus", set(range(8))), ("cgroup_quota", None), ("_siblings", None)):
        monkeypatch.setattr(threads, name, lambda *_, value=value: value)
    monkeypatch.setattr(threads, "physical_cores", lambda cpus, _root=None: len(set(cpus)))
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 8)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    expected = {"cpu": "CPU C, 8 cores", "cuda": "Brand a and Brand b beside CPU C, 4 cores"}
    assert {name: find_machine().hardware[name] for name in expected} == expected
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert find_machine().hardware["cuda"].startswith("Brand b beside CPU C, ")
    monkeypatch.setattr(threads, "usable_cpus", lambda: {0})
    assert find_machine().hardware["cpu"] == "CPU C, 1 core"


@pytest.mark.parametrize(
    ("lost", "built_for", "note"),
    [
        (False, {}, "built without CUDA"),
        (False, {"cuda": "14.0"}, "driver 580.1 is too old"),
        (True, {"cuda": "13.0"}, "its driver does not answer (GPU is lost)"),
    ],
)
def test_the_note_explains_a_gpu_that_torch_cannot_use(
    monkeypatch: pytest.MonkeyPatch, lost: bool, built_for: dict[str, str], note: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(FakeGpu("GPU-1", lost=lost)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(discovery, "torch_built_for", lambda: built_for)
    machine = find_machine()
    assert machine.devices == ("cpu",)
    assert note in str(machine.note)


@pytest.mark.parametrize(
    ("source", "built_for"),
    [
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", {"cuda": "13.0"}),
        ("cuda = None\nhip = '7.0'\nxpu = '2026'\n", {"hip": "7.0", "xpu": "2026"}),
    ],
)
def test_the_build_of_torch_is_read_without_importing_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, built_for: dict[str, str]
) -> None:
    (tmp_path / "version.py").write_text(f"from typing import Optional\n{source}")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(discovery.importlib.util, "find_spec", lambda _: spec)
    assert torch_built_for() == built_for


LOGIN = Machine(
    ("cpu", "mps"), "2.13.0", "580.1", "a GPU that cannot be used", hardware={"cpu": "CPU A, 2 cores"}, compilers="g++"
)


@pytest.mark.parametrize("nodes", [None, Nodes(96, 24)])
def test_a_job_reads_the_machine_that_the_main_process_passed(
    monkeypatch: pytest.MonkeyPatch, nodes: Nodes | None
) -> None:
    machine = sent_elsewhere(LOGIN, nodes)
    assert machine.elsewhere
    monkeypatch.setenv(discovery.HANDED_DOWN, "")
    hand_down(machine)
    assert handed_down() == machine


@pytest.mark.parametrize(
    ("python", "executable"),
    [("/opt/env/bin/python3", "/opt/env/bin/python3"), ("/home/it's me/my env/bin/python3.11", "python3.11")],
)
def test_jobs_run_this_python(python: str, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter with a space in its path, where a shell would split it, is called by its name through PATH."""
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", "/usr/bin")
    for _ in range(2):
        prefer_this_environment()
        assert sys.executable == executable
        assert os.environ["PATH"] == f"{Path(python).parent}:/usr/bin"


SITE = """\
short* 64 (null)
short* 48 (null)
cpu 96 (null)
gpu 128 gpu:a100:4(S:0-1),shard:16
gpu 96 gpu:h200:2(S:0),gpu:h200:2(S:1)
"""


@pytest.mark.parametrize(
    ("script", "partition", "reason"),
    [
        (None, "cpu", "there is no command sinfo on this machine"),
        (
            "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1",
            "cpu",
            "sinfo failed (slurm_load",
        ),
        ("echo 'all* 2 (null)'", "cpu", "sinfo lists no partition 'cpu'"),
        ("echo 'all 2 (null)'", None, "sinfo lists no default partition"),
    ],
)
def test_what_is_not_known_of_nodes_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, partition: str | None, reason: str
) -> None:
    if script is not None:
        (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    nodes = find_nodes(partition)
    assert isinstance(nodes, str)
    assert nodes.startswith(reason)
    machine = sent_elsewhere(LOGIN, nodes)
    with pytest.raises(UserError, match=re.escape(f"but {reason}")):
        check_executor(configured(devices="auto"), machine, local=False)
    assert str(devices_unknown(configured(devices="auto"), machine)).startswith(reason)


@pytest.mark.parametrize(
    ("answer", "partition", "nodes"),
    [
        (SITE, "cpu", Nodes(96, 24)),  # 128 / 4 = 32, 96 / 4 = 24
        (SITE, None, Nodes(48, 24)),
        (SITE, "long", None),
        ("all* 2 (null)\n", None, Nodes(2, None)),
    ],
)
def test_nodes_have_the_smallest_number_of_cpus_and_share_of_a_gpu(
    answer: str, partition: str | None, nodes: Nodes | None
) -> None:
    assert read_nodes(answer, partition) == nodes

"""What a measuring command may use, on a made-up machine of 16 CPUs with two GPUs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from crossover.machine import threads
from crossover.measurement.process.holding import holding
from fake_nvml import FakeGpu, FakeNvml

NEAR = tuple(range(8)), tuple(range(8, 16))


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(
        sys.modules, "pynvml", FakeNvml(*(FakeGpu(f"GPU-{n}", near=near) for n, near in enumerate(NEAR)))
    )
    monkeypatch.setenv("CROSSOVER_LEASES", str(tmp_path / "leases"))
    for name in (*threads.THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "SLURM_CPUS_PER_TASK"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(threads, "physical_cores", lambda cpus, _root: len(cpus))
    monkeypatch.setattr(threads, "usable_cpus", lambda: set(range(16)))
    monkeypatch.setattr(threads, "cgroup_quota", lambda _root: None)


def test_a_gpu_comes_with_its_cpus_and_as_many_threads() -> None:
    before = os.sched_getaffinity(0)
    with holding("cuda", "auto", "first") as first:
        assert (first.uuid, first.cpus, first.threads) == ("GPU-0", list(NEAR[0]), 8)
        assert os.environ["OMP_NUM_THREADS"] == "8"
        os.environ.pop("CUDA_VISIBLE_DEVICES")  # as another command
        with holding("cuda", 3, "second") as second:
            assert (second.uuid, second.cpus, second.threads) == ("GPU-1", list(NEAR[1]), 3)
    assert os.sched_getaffinity(0) == before


def test_a_cpu_cell_has_all_cores() -> None:
    with holding("cpu", "auto", "") as held:
        assert (held.uuid, held.cpus, held.threads) == (None, None, 16)


def test_a_quota_is_divided_among_the_gpus_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cgroup_quota", lambda _root: 6.0)
    with holding("cuda", "auto", "") as held:
        assert (held.cpus, held.threads) == (list(NEAR[0]), 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    with holding("cuda", "auto", "") as held:
        assert (held.cpus, held.threads) == (list(NEAR[1]), 6)
    with holding("cpu", "auto", "") as held:
        assert held.threads == 6


def test_a_system_that_binds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity")
    with holding("cuda", "auto", "") as held:
        assert (held.cpus, held.threads) == (None, 16)

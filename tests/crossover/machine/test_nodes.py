from __future__ import annotations

from pathlib import Path

import pytest

from crossover.machine.discovery import Nodes, find_nodes, read_nodes

SITE = """\
short* 64 (null)
short* 48 (null)
cpu 96 (null)
gpu 128 gpu:a100:4(S:0-1),shard:16
gpu 96 gpu:h200:2(S:0),gpu:h200:2(S:1)
"""


def test_the_smallest_node_of_the_partition_and_the_smallest_share_of_a_gpu() -> None:
    assert read_nodes(SITE, "cpu") == Nodes(cpus=96, cpus_per_gpu=24)  # 128 / 4 = 32, 96 / 4 = 24


def test_without_a_partition_the_default_one_counts() -> None:
    assert read_nodes(SITE, None) == Nodes(cpus=48, cpus_per_gpu=24)
    assert read_nodes(SITE, "short") == read_nodes(SITE, None)


def test_gpus_without_a_type_are_counted() -> None:
    assert read_nodes("all* 2 gpu:2\n", None) == Nodes(cpus=2, cpus_per_gpu=1)


def test_a_gpu_has_one_cpu_at_least() -> None:
    assert read_nodes("all* 2 gpu:4\n", None) == Nodes(cpus=2, cpus_per_gpu=1)


def test_a_cluster_without_gpus() -> None:
    assert read_nodes("all* 2 (null)\n", None) == Nodes(cpus=2, cpus_per_gpu=None)


def test_a_partition_that_does_not_exist_has_no_nodes() -> None:
    assert read_nodes(SITE, "long") is None


@pytest.mark.parametrize(("answer", "found"), [("echo 'all* 8 gpu:2'", Nodes(8, 4)), ("exit 1", None)])
def test_slurm_is_asked(answer: str, found: Nodes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text(f"#!/bin/sh\n{answer}\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nodes(None) == found


def test_no_slurm_no_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nodes(None) is None

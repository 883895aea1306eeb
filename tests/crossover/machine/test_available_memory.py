from __future__ import annotations

from pathlib import Path

import psutil

from crossover.machine.kernel import available_bytes

UNLIMITED = 9223372036854771712  # what version 1 says where there is no limit


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def in_group(root: Path, line: str) -> None:
    write(root / "proc/self", cgroup=line)


def test_without_a_control_group_it_is_the_hosts(tmp_path: Path) -> None:
    assert available_bytes(tmp_path, 5000) == 5000


def test_this_host_has_some() -> None:
    assert 0 < available_bytes() <= psutil.virtual_memory().total


def test_the_tightest_group_counts_and_its_cache_is_available(tmp_path: Path) -> None:
    in_group(tmp_path, "0::/job/step\n")
    base = tmp_path / "sys/fs/cgroup"
    write(base / "job/step", memory__max="max\n", memory__current="700\n")
    write(
        base / "job",
        memory__max="3000\n",
        memory__current="1000\n",
        memory__stat="anon 300\ninactive_file 400\nfile 500\n",
    )
    assert available_bytes(tmp_path, 5000) == 3000 - 1000 + 400
    assert available_bytes(tmp_path, 2000) == 2000


def test_version_1_counts_too(tmp_path: Path) -> None:
    in_group(tmp_path, "4:memory:/job\n2:cpu:/other\n")
    base = tmp_path / "sys/fs/cgroup/memory"
    write(
        base / "job",
        memory__limit_in_bytes="2000\n",
        memory__usage_in_bytes="1500\n",
        memory__stat="inactive_file 7\ntotal_inactive_file 100\n",
    )
    write(base, memory__limit_in_bytes=str(UNLIMITED), memory__usage_in_bytes="4000\n")
    assert available_bytes(tmp_path, 5000) == 600


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    in_group(tmp_path, "0::/\n")
    write(tmp_path / "sys/fs/cgroup", memory__max="1000\n", memory__current="1200\n")
    assert available_bytes(tmp_path, 5000) == 0

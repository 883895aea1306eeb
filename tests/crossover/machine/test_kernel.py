from __future__ import annotations

from pathlib import Path

import pytest

from crossover.machine.kernel import cpu_control_groups, read_kernel, read_number


def test_a_kernel_file_is_stripped_and_a_missing_one_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "governor").write_text("powersave\n")
    assert read_kernel(tmp_path / "governor") == "powersave"
    assert read_kernel(tmp_path / "missing") is None
    assert read_kernel(tmp_path) is None  # refuses to be read


@pytest.mark.parametrize(("text", "number"), [("42\n", 42), ("-1\n", -1), ("max\n", None), ("", None)])
def test_numbers_are_read_as_numbers(tmp_path: Path, text: str, number: int | None) -> None:
    (tmp_path / "file").write_text(text)
    assert read_number(tmp_path / "file") == number


def test_control_groups_are_listed_from_our_own_upwards(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("3:memory:/elsewhere\n2:cpu,cpuacct:/job\n0::/user/job\n")
    base = tmp_path / "sys/fs/cgroup"
    assert list(cpu_control_groups(tmp_path)) == [
        *(base / "cpu/job", base / "cpu"),
        *(base / "user/job", base / "user", base),
    ]
    assert list(cpu_control_groups(tmp_path / "nowhere")) == []

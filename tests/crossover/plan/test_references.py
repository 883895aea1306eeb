"""Which references a run takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from crossover.errors import UserError
from crossover.plan.references import check_both_kinds, reference_files, reference_folders
from crossover.tables.references import Facts, write_facts

FACTS = Facts("h200", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)


@dataclass
class Config:
    reference: Any


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    for name in ("a100", "h200"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trials.parquet").write_bytes(b"rows")
        write_facts(replace(FACTS, name=name), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "devices", "names"),
    [
        ("auto", ["cpu"], ["a100", "h200"]),
        ("auto", ["cpu", "cuda"], []),
        ("none", ["cpu"], []),
        (("none",), ["cpu"], []),
        (("h200",), ["cpu", "cuda"], ["h200"]),
        ("h200", ["cpu", "cuda"], ["h200"]),
    ],
)
def test_those_shipped_count_without_an_accelerator_or_by_name(
    shipped: Path, reference: Any, devices: list[str], names: list[str]
) -> None:
    folders = reference_folders(Config(reference), devices, shipped)  # type: ignore[arg-type]
    assert [folder.name for folder in folders] == names
    assert len(reference_files(folders)) == 2 * len(names)


def test_a_folder_of_ones_own_counts_and_an_unknown_name_is_one_line(shipped: Path) -> None:
    folder = str(shipped / "h200")
    assert reference_folders(Config((folder,)), ["cpu"], shipped / "none") == [Path(folder)]  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"reference: 'h20' is unknown; allowed: a100, h200 \(did you mean 'h200'\?\)"):
        reference_folders(Config(("h20",)), ["cpu"], shipped)  # type: ignore[arg-type]


@pytest.mark.parametrize("devices", [["cpu"], ["cuda"]])
def test_a_reference_needs_the_cpu_and_an_accelerator(devices: list[str]) -> None:
    check_both_kinds(["cpu", "cuda"])
    with pytest.raises(
        UserError, match=rf"the run measures {devices[0]}; allowed: the CPU and an accelerator together"
    ):
        check_both_kinds(devices)


def test_two_of_one_name_would_be_one_machine(shipped: Path) -> None:
    (shipped / "copy").mkdir()
    for file in (shipped / "h200").iterdir():
        (shipped / "copy" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match="reference: two are called 'h200'; allowed: one"):
        reference_folders(Config(("h200", str(shipped / "copy"))), ["cpu"], shipped)  # type: ignore[arg-type]


def test_a_damaged_one_ends_a_run_before_it_measures(shipped: Path) -> None:
    (shipped / "h200" / "trials.parquet").write_bytes(b"other rows")
    with pytest.raises(UserError, match=r"trials.parquet: is not the file that reference.json names"):
        reference_folders(Config("auto"), ["cpu"], shipped)  # type: ignore[arg-type]
    assert reference_folders(Config("none"), ["cpu"], shipped) == []  # type: ignore[arg-type]

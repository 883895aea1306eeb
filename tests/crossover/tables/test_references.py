"""Machines measured elsewhere, as folders: written, read back, and refused where they are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.config.words import DIRTY
from crossover.errors import UserError
from crossover.machine.code_key import code_of
from crossover.tables.columns import COLUMNS
from crossover.tables.references import FACTS_FILE, KEPT, LARGEST_BYTES, TRIALS_FILE, read_reference, write_reference

Row = Callable[..., dict[str, Any]]

HOST = {
    "cpu_model": "Xeon",
    "physical_cores": 16,
    "torch_version": "2.13.0",
    "python_version": "3.12.3",
    "operating_system": "Linux",
    "code_version": "abc",
    "model_key": "key",
}


@pytest.fixture
def run(row: Row) -> pd.DataFrame:
    """The trials of a finished run."""
    devices = {"cpu": "Xeon", "cuda": "NVIDIA H200"}
    rows = [
        row(device=device, device_name=name, size=size, started_at=f"2026-11-2{size}T10:00:00Z", **HOST)
        for device, name in devices.items()
        for size in (3, 2)
    ]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def test_a_run_is_written_and_read_back(run: pd.DataFrame, tmp_path: Path) -> None:
    write_reference(run, "h200", "snakemake --cores 1", tmp_path / "h200")
    found = read_reference(tmp_path / "h200")
    facts = found.facts
    assert (facts.name, facts.device_name, facts.cpu_model, facts.physical_cores) == ("h200", "NVIDIA H200", "Xeon", 16)
    assert (facts.measured_on, facts.command) == ("2026-11-22", "snakemake --cores 1")
    assert set(found.trials["machine"]) == {"h200"}
    assert found.trials[list(KEPT)].sort_values(["device", "size"])["step_time_s"].tolist() == pytest.approx(
        run.sort_values(["device", "size"])["step_time_s"].tolist()
    )
    assert list(found.trials.columns) == list(COLUMNS)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / TRIALS_FILE).unlink(), "no such table"),
        (lambda folder: (folder / FACTS_FILE).unlink(), "no such reference"),
        (lambda folder: (folder / FACTS_FILE).write_text("{}"), "not a reference of version 1; export it again"),
        (lambda folder: _without(folder, "cpu_model"), "lacks some of its facts; export it again"),
        (lambda folder: _with(folder, "cpu_model", 7), "cpu_model is not of type str; export it again"),
        (lambda folder: _with(folder, "name", "here"), "name is 'here', as reports call the own machine"),
        (lambda folder: _with_other_trials(folder), "is not the file that reference.json names; export both again"),
    ],
)
def test_a_damaged_one_is_one_line(
    run: pd.DataFrame, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    write_reference(run, "h200", None, tmp_path)
    spoil(tmp_path)
    with pytest.raises(UserError, match=message):
        read_reference(tmp_path)


def _without(folder: Path, fact: str) -> None:
    known = json.loads((folder / FACTS_FILE).read_text())
    del known["facts"][fact]
    (folder / FACTS_FILE).write_text(json.dumps(known))


def _with(folder: Path, fact: str, value: object) -> None:
    known = json.loads((folder / FACTS_FILE).read_text())
    known["facts"][fact] = value
    (folder / FACTS_FILE).write_text(json.dumps(known))


def _with_other_trials(folder: Path) -> None:
    pd.read_parquet(folder / TRIALS_FILE).head(1).to_parquet(folder / TRIALS_FILE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "node"}, "node: a reference is one machine without a name"),
        ({"device": "cpu"}, "the run lacks the CPU or an accelerator; measure both on one machine"),
        (
            {"code_version": "abc-dirty"},
            r"with uncommitted changes \(commit abc-dirty\), .*; commit them, or give them",
        ),
    ],
)
def test_what_is_no_reference_is_not_written(
    run: pd.DataFrame, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        write_reference(run.assign(**change), "h200", None, tmp_path)
    assert not list(tmp_path.iterdir())


ROOT = Path(__file__).parents[3]
SHIPPED = sorted(ROOT.glob("config/reference/*"))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: str(folder.name))
def test_a_shipped_reference_is_whole_small_and_of_the_models_as_they_are(folder: Path) -> None:
    found = read_reference(folder)
    assert found.facts.name == folder.name
    assert {path.name for path in folder.iterdir()} == {FACTS_FILE, TRIALS_FILE}
    assert (folder / TRIALS_FILE).stat().st_size <= LARGEST_BYTES
    assert found.facts.command
    docs = (ROOT / "docs/how-to/machines.md").read_text()
    for fact in ("name", "measured_on", "torch_version", "driver_version"):
        assert str(getattr(found.facts, fact)) in docs
    if str(found.facts.code_version).endswith(DIRTY):
        assert f"`{folder.name}` with code that had uncommitted changes" in docs
    keys = found.trials.groupby("workload")["model_key"].unique()
    assert {name: list(own) for name, own in keys.items()} == {
        name: [code_of("trial", str(name)).model_key] for name in keys.index
    }

"""Folders of reference machines: written, read back, and rejected if they are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import export_reference
from crossover.compare.cells import summarise
from crossover.config.models import Model
from crossover.config.workloads import OWN
from crossover.errors import UserError
from crossover.machine.code_key import code_of
from crossover.report.run_checks import check_reference, check_rows
from crossover.tables.columns import COLUMNS, arrow_schema
from crossover.tables.frames import records, write_rows, write_run
from crossover.tables.reference_files import (
    CHECKSUM,
    FACTS_FILE,
    KEPT,
    KEPT_OF_ROOFS,
    LARGEST_BYTES,
    TRIALS_FILE,
    read_facts,
    read_reference,
    with_cell_flags,
    write_facts,
    write_reference,
)
from crossover.tables.run_tables import run_tables, table_of
from plans import configured

Row = Callable[..., dict[str, Any]]

HOST = {
    "cpu_model": "Xeon",
    "physical_cores": 16,
    "torch_version": "2.13.0",
    "python_version": "3.12.3",
    "operating_system": "Linux",
    "code_version": "abc",
    "model_key": "a" * 32,
}


@pytest.fixture
def run(row: Row) -> pd.DataFrame:
    devices = {"cpu": "Xeon", "cuda": "NVIDIA H200"}
    rows = [
        row(device=device, device_name=name, size=size, started_at=f"2026-11-2{size}T10:00:00Z", **HOST)
        for device, name in devices.items()
        for size in (3, 2)
    ]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def test_a_run_is_written_and_read_back(run: pd.DataFrame, tmp_path: Path) -> None:
    write_reference(run, "h200", "snakemake --cores 1", tmp_path / "h200")
    reference = read_reference(tmp_path / "h200")
    facts = reference.facts
    assert (facts.name, facts.device_name, facts.cpu_model, facts.physical_cores) == ("h200", "NVIDIA H200", "Xeon", 16)
    assert (facts.measured_on, facts.command) == ("2026-11-22", "snakemake --cores 1")
    assert set(reference.trials["machine"]) == {"h200"}
    assert reference.trials[list(KEPT)].sort_values(["device", "size"])["step_time_s"].tolist() == pytest.approx(
        run.sort_values(["device", "size"])["step_time_s"].tolist()
    )
    assert list(reference.trials.columns) == list(COLUMNS)


def test_the_roofs_of_the_accelerator_and_the_cpu_are_exported(run: pd.DataFrame, tmp_path: Path) -> None:
    peak = {"roof": "matmul", "precision": "fp32", "value": 2.0, "lowest": 1.0, "highest": 3.0, "unit": "FLOP/s"}
    of_devices = [{"machine": "here", "device": device, "hostname": "host"} | peak for device in ("cpu", "cuda", "mps")]
    roofs = write_reference(run, "h200", None, tmp_path, table_of("roofs", of_devices)).roofs
    assert records(roofs.dropna(axis=1)) == [{"machine": "h200", "device": device} | peak for device in ("cpu", "cuda")]
    write_facts(read_facts(tmp_path), tmp_path, [dict.fromkeys(KEPT_OF_ROOFS) | peak | {"value": "fast"}])
    with pytest.raises(UserError, match="its roofs are not rows of table roofs; export it again"):
        read_reference(tmp_path)


def test_the_flags_of_cells_are_exported(run: pd.DataFrame) -> None:
    """A drift of a trial whose cell does not drift is left out; `quota` is the trial's own."""
    cells = run.assign(flag_names=[["above_roof"], [], ["above_roof", "drift"], []])
    flagged = with_cell_flags(run.assign(flag_names=[["quota"], ["drift"], [], []]), cells.iloc[::-1])
    assert flagged["flag_names"].tolist() == [["above_roof", "quota"], [], ["above_roof", "drift"], []]


def test_the_export_prints_the_next_commands(
    run: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(pa.Table.from_pylist(records(run), schema=arrow_schema()), tmp_path / "measurements.parquet")
    write_run(run_tables(cells=summarise(run)), tmp_path)
    (tmp_path / "provenance.json").write_text('{"run": {"command": "snakemake --cores 1"}}')
    output = tmp_path / "reference" / "h200"
    export_reference.main([str(tmp_path), "--name=h200", f"--output={output}"])
    output_lines = capsys.readouterr().out.splitlines()
    assert output_lines[0].startswith(f"{output}: 4 trials on NVIDIA H200 and Xeon, ")
    assert f"  cp -r {output} config/reference/" in output_lines
    assert output_lines[-1].startswith("Note: config/reference/h200 is there already")
    assert read_reference(output).facts.command == "snakemake --cores 1"


def test_inconsistent_rows_are_not_exported(run: pd.DataFrame, tmp_path: Path) -> None:
    measured = run.assign(samples_s=[[1e-3]] * 4)
    write_run(run_tables(cells=summarise(measured)), tmp_path)
    (tmp_path / "provenance.json").write_text("{}")
    halved = measured.assign(step_time_s=measured["step_time_s"].where(measured["device"] == "cpu", 0.5e-3))
    write_rows(pa.Table.from_pylist(records(halved), schema=arrow_schema()), tmp_path / "measurements.parquet")
    message = r"their mean 0\.001 \(2 findings, which scripts/check_run\.py lists\); measure again"
    with pytest.raises(UserError, match=message):
        export_reference.main([str(tmp_path), "--name=h200", f"--output={tmp_path / 'h200'}"])
    assert not (tmp_path / "h200").exists()


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"model_key": ["a" * 32, "a" * 32, "a" * 32, "b" * 32]}, "2 values of model_key; expected: one"),
        ({"model_key": ["a" * 31] * 4}, "is not a key of 32 hexadecimal digits"),
        ({"step_time_s": [1.0, 1.0, 1.0, -1.0]}, "status ok with a step time of -1.0"),
        ({"status": "good"}, "status 'good'; allowed: ok"),
        ({"status": "oom"}, "status oom with a step time of 0.001"),
        ({"size": 2}, "trials 1, 1; expected: 1 to 2"),
    ],
)
def test_wrong_trials_are_found_even_if_the_checksum_is_right(
    run: pd.DataFrame, tmp_path: Path, change: dict[str, Any], finding: str
) -> None:
    reference = write_reference(run, tmp_path.name, None, tmp_path)
    assert check_reference(tmp_path) == []
    pd.read_parquet(tmp_path / TRIALS_FILE).assign(**change).to_parquet(tmp_path / TRIALS_FILE)
    write_facts(reference.facts, tmp_path)
    assert finding in " ".join(entry.what for entry in check_reference(tmp_path) if entry.is_wrong)


def test_only_rows_of_one_machine_must_have_the_same_code_key(run: pd.DataFrame) -> None:
    keys = {"code_key": ["a" * 32, "b" * 32] * 2}
    assert list(check_rows(run.assign(**keys, machine=["a100", "h200"] * 2))) == []
    assert list(check_rows(run.assign(**keys))) == ["disc_depth, disc_mlp: 2 values of code_key; expected: one"]


def test_a_roof_lies_between_its_lowest_and_highest_repeat(run: pd.DataFrame, tmp_path: Path) -> None:
    roof = {"machine": "here", "device": "cuda", "roof": "matmul", "lowest": 1.0, "value": 20.0, "highest": 3.0}
    write_reference(run, tmp_path.name, None, tmp_path, table_of("roofs", [roof]))
    (finding,) = check_reference(tmp_path)
    assert (finding.what, finding.is_wrong) == ("roof matmul: value 20.0; expected: 1.0 to 3.0", True)


def test_unusual_but_possible_values_are_notes(run: pd.DataFrame, tmp_path: Path) -> None:
    """A missing trial, a folder with another name (an error in the checkout), a file without checksum."""
    for folder, wrong in ((tmp_path / "colleague", 0), (tmp_path / "config" / "reference" / "a", 1)):
        write_reference(run.assign(trial=[1, 1, 1, 2]), "h200", None, folder)
        facts = folder / FACTS_FILE
        facts.write_text(json.dumps({**json.loads(facts.read_text()), CHECKSUM: None}))
        findings = check_reference(folder)
        assert [finding.is_wrong for finding in findings] == [False, False, bool(wrong)]
        assert "trials 2; expected: 1 to 1" in findings[0].what


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / TRIALS_FILE).unlink(), "no such table"),
        (lambda folder: (folder / FACTS_FILE).write_text("{}"), "not a reference of version 1; export it again"),
        (lambda folder: edit(folder, cpu_model=7), "facts are missing or have the wrong type; export it again"),
        (lambda folder: edit(folder, name="here"), "name is 'here', which means this machine"),
        (lambda folder: edit(folder, measured_on="2026-01-01"), "was edited: the checksum of its facts and roofs"),
        (
            lambda folder: pd.read_parquet(folder / TRIALS_FILE).head(1).to_parquet(folder / TRIALS_FILE),
            "is not the file that reference.json names; export both again",
        ),
    ],
)
def test_a_damaged_reference_is_rejected(
    run: pd.DataFrame, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    write_reference(run, "h200", None, tmp_path)
    spoil(tmp_path)
    with pytest.raises(UserError, match=message):
        read_reference(tmp_path)


def edit(folder: Path, **facts: object) -> None:
    content = json.loads((folder / FACTS_FILE).read_text())
    content["facts"] |= facts
    (folder / FACTS_FILE).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "node"}, "node: a reference is one machine without a name"),
        ({"device": "cpu"}, "the run lacks the CPU or an accelerator; measure both on one machine"),
        (
            {"code_version": "abc-dirty"},
            r"with uncommitted changes \(commit abc-dirty\), .*; commit them, or set them",
        ),
    ],
)
def test_unsuitable_runs_are_not_exported(
    run: pd.DataFrame, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        write_reference(run.assign(**change), "h200", None, tmp_path)
    assert not list(tmp_path.iterdir())


ROOT = Path(__file__).parents[3]
SHIPPED = sorted(ROOT.glob("config/reference/*"))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: str(folder.name))
def test_shipped_references_are_valid_and_match_the_current_models(folder: Path) -> None:
    reference = read_reference(folder)
    assert check_reference(folder) == []
    assert reference.facts.name == folder.name
    assert {path.name for path in folder.iterdir()} == {FACTS_FILE, TRIALS_FILE}
    assert (folder / TRIALS_FILE).stat().st_size <= LARGEST_BYTES
    models = reference.trials.groupby(["study", "workload"])["model_key"].unique()
    for (study, workload), model_keys in models.items():
        model = model_of(study) if workload == OWN else None
        if workload != OWN or model:
            assert list(model_keys) == [code_of("trial", workload, model=model).model_key], study


def model_of(study: str) -> Model | None:
    """The model of a shipped study; None if the checkout has no such study."""
    is_shipped = (ROOT / "config" / "studies" / f"{study}.yaml").is_file()
    return configured(studies=[study]).studies[0].user_model if is_shipped else None

"""Provenance of merged runs, and differences between machines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.command import build_command
from crossover.config.configuration import read_configuration
from crossover.config.layers import read_layers
from crossover.machine.invocation import Checkout, Invocation
from crossover.report.provenance import differing_software, on_all_devices, read_provenances
from plans import ROOT

COMPLETE: dict[str, Any] = {
    "made_at": "then",
    "code": {},
    "config": {},
    "studies": {},
    "rerun": [],
    "files": [],
    "runs": [],
}


CPU_ONLY = {"devices": ["cpu"], "trials": 2}
OTHERS = {"hsf_width": CPU_ONLY, "tf32_matmul": {"devices": ["cuda"]}}


@pytest.mark.parametrize("typed", ["crossover disc_depth tf32_matmul", None])
@pytest.mark.parametrize(
    ("file", "given", "kept"),
    [
        ({"devices": ["cpu"]}, {}, {}),
        ({}, {"devices": ["cpu"]}, {}),
        ({"devices": ["cpu"]}, {"devices": ["cpu"]}, {}),
        ({"overrides": {"disc_depth": CPU_ONLY, **OTHERS}}, {}, {"trials": 2}),
        ({}, {"overrides": {"disc_depth": CPU_ONLY}}, {"trials": 2}),
        (
            {"overrides": {"disc_depth": CPU_ONLY, **OTHERS}},
            {"overrides": {"disc_depth": {"trials": 1}}},
            {"trials": 1},
        ),
        ({}, {}, {}),
    ],
)
def test_the_command_for_a_gpu_cancels_each_choice_of_devices(
    file: dict[str, Any], given: dict[str, Any], kept: dict[str, Any], typed: str | None
) -> None:
    """The study disc_depth is measured on all devices there; tf32_matmul keeps a choice of GPUs."""
    file = {"studies": ["disc_depth", "tf32_matmul"], **file}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    options = [word for key, value in texts.items() for word in (f"--{key}", value)]
    entries = [f"{key}={value}" for key, value in texts.items()]
    command = shlex.join(["snakemake", *(["--config", *entries] if entries else [])])
    run = Invocation(command, "/here", Checkout(), typed and shlex.join([*typed.split(), *options]))
    here = read_configuration([("config.yaml", file), *read_layers([], entries)], ROOT / "config")
    printed = shlex.split(run.into("gpu", on_all_devices(here.complete, run)))
    words = build_command(printed[1:]) if typed else printed
    there = words[words.index("--config") + 1 :]
    config = read_configuration([("config.yaml", file), *read_layers([], there)], ROOT / "config")
    assert config.results == "gpu"
    assert config.devices is None
    assert [study.devices for study in config.studies] == [None, ("cuda",) if "overrides" in file else None]
    assert config.complete["overrides"].get("disc_depth", {}).get("trials") == kept.get("trials")


def read(folder: Path, text: str | None) -> dict[str, Any]:
    (folder / "measurements.parquet").write_bytes(b"rows")
    if text is not None:
        (folder / "provenance.json").write_text(text)
    (run,) = read_provenances([("h200", folder)])
    return run


@pytest.mark.parametrize(
    ("text", "caveat"),
    [
        (None, "no_file"),
        ("{", "unreadable"),
        (json.dumps(COMPLETE | {"rerun": 1}), "unreadable"),
        (json.dumps(COMPLETE | {"files": [{"name": "measurements.parquet", "sha256": "0"}]}), "other_rows"),
        (json.dumps(COMPLETE), None),
    ],
)
def test_a_run_with_unreliable_provenance_has_a_caveat(tmp_path: Path, text: str | None, caveat: str | None) -> None:
    run = read(tmp_path, text)
    assert (run["name"], run["caveat"]) == ("h200", caveat)
    assert (run["provenance"] is not None) is (caveat in (None, "other_rows"))


def test_differences_between_machines(row: Callable[..., dict[str, Any]]) -> None:
    def measured(machine: str, torch: str, timed_min_s: float) -> dict[str, Any]:
        packages = {"python": "3.12", "torch": torch, "transformers": "5.17.0"}
        effort = {"blocks_min": 5, "timed_min_s": timed_min_s}
        return row(
            machine=machine, torch_version=torch, packages=json.dumps(packages), effort=json.dumps(effort), size=2
        )

    rows = [measured("a", "2.11", 1.0), measured("a", "2.11", 2.0), measured("b", "2.13", 1.0)]
    differences = differing_software(pd.DataFrame([*rows, row(machine="b", status="timeout")]))
    assert differences == [
        {"what": "version of torch", "each": "2.11 on a, 2.13 on b"},
        {"what": "effort timed_min_s", "each": "1.0 and 2.0 on a, 1.0 on b"},
    ]

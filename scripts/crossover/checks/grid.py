"""A copy of the workflow with a grid of cells that do nothing, to see what the workflow itself takes."""

from __future__ import annotations

import gc
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import yaml

from crossover.config.configuration import Configuration, read_configuration
from crossover.config.options import trial_options
from crossover.config.validation import read_layers
from crossover.config.workloads import NULL
from crossover.files import atomic_path
from crossover.machine.code_key import code_of
from crossover.measurement.null_trial import run_null_trial
from crossover.measurement.process.requests import Request
from crossover.tables.row_files import write_record

PARTS = ("Snakefile", "rules", "scripts", "config", "envs", "profiles", "report", "CITATION.cff")
BATCH_SIZES = 10
"""Cells of a size."""

STUDY = "null_grid"


def make_grid(source: Path, folder: Path, cells: int) -> None:
    """Copy the workflow from `source` to `folder`, with one trial each of so many cells, a multiple of BATCH_SIZES."""
    for part in PARTS:
        origin = source / part
        if origin.is_dir():
            shutil.copytree(origin, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, folder / part)
    study = {
        "title": "Cells that do nothing",
        "question": "What does the workflow itself take?",
        "workload": NULL,
        "sizes": list(range(1, cells // BATCH_SIZES + 1)),
        "batch_sizes": list(range(1, BATCH_SIZES + 1)),
        "figures": ["times"],
    }
    config = {"studies": [STUDY], "devices": ["cpu"], "trials": 1}
    (folder / "config" / "studies" / f"{STUDY}.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def write_rows(folder: Path) -> list[str]:
    """Write the rows of all cells of a grid as if they were measured there; returns their paths below the folder."""
    config = _configuration(folder)
    gc.collect()
    gc.freeze()  # a trial looks for garbage before it begins
    settings = {"seed": config.seed, "cpu_threads": config.cpu_threads, "time_limit_s": config.time_limit_s}
    key = code_of("trial", NULL).key
    paths = []
    for cell in config.studies[0].cells(["cpu"]):
        path = f"results/cells/{cell.path}/trial-1.parquet"
        options = [*trial_options(cell, **settings, effort=config.effort), "--trial=1"]
        command = ["python3", "scripts/measure_cell.py", *options, "--dataset=", f"--output={path}"]
        request = Request(cell, 1, config.seed, None, path, 1, config.time_limit_s, config.effort, code_key=key)
        with atomic_path(folder / path) as temporary:
            write_record(run_null_trial(replace(request, command=shlex.join(command))), temporary)
        paths.append(path)
    return paths


def _configuration(folder: Path) -> Configuration:
    file = folder / "config" / "config.yaml"
    return read_configuration(read_layers([file], ()), file.parent)

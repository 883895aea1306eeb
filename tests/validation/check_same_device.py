"""Run the whole workflow on one device under two names, `cpu` and `cuda`, and count the statuses of its crossovers.

    python tests/validation same_device FOLDER --device=cpu --batches=34

No significant difference is expected. A series is one workload at one batch size, over its sizes. The same command
resumes an interrupted run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import UserError
from crossover.tables.frames import read_table
from workflow_copy import copy_workflow, write_config

SIZES = {"disc_mlp": [2, 3, 4, 5], "higgs_mlp": [8, 32, 64, 128], "digits_mlp": [8, 32, 64, 128]}


def prepare(folder: Path, device: str, batches: int, sizes: int, effort: str) -> None:
    """Copy the workflow to `folder`, with one study per workload, and with same_device.py as its measuring scripts."""
    copy_workflow(folder)
    studies = {
        f"null_{workload}": {
            "title": f"One device twice: {workload}",
            "question": "Does anything differ?",
            "workload": workload,
            "sizes": SIZES[workload][:sizes],
            "batch_sizes": [4 + 2 * number for number in range(batches)],
            "figures": ["speedups"],
        }
        for workload in SIZES
    }
    config = {
        "studies": list(studies),
        "devices": ["cpu", "cuda"],
        "reference": "none",
        "effort": effort,
        "cluster": {"check_devices": False},
    }
    write_config(folder, config, studies)
    scripts = folder / "scripts"
    (scripts / "same_device").write_text(device, encoding="utf-8")
    for name in ("measure_cell.py", "probe_roofs.py"):
        (scripts / name).rename(scripts / f"real_{name}")
        shutil.copy2(Path(__file__).with_name("same_device.py"), scripts / name)


def conclusions(results: Path) -> pd.DataFrame:
    crossovers = read_table(results / "crossovers.parquet")
    times = crossovers[(crossovers["pair"] == "device") & (crossovers["cost"] == "time")]
    return times.groupby("status").size().rename("series").reset_index()


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, help="folder of the copy; an existing one is resumed")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="device that is measured")
    parser.add_argument("--batches", default=34, type=int, help="number of batch sizes of each workload")
    parser.add_argument("--sizes", default=4, type=int, help="number of sizes of each workload, at most 4")
    parser.add_argument("--effort", default="quick")
    options = parser.parse_args(arguments)
    if not options.folder.exists():
        prepare(options.folder, options.device, options.batches, options.sizes, options.effort)
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--resources", "gpu=1", "--quiet", "all"]
    if status := subprocess.run(command, cwd=options.folder, check=False).returncode:
        raise UserError(f"{options.folder}: the run ended with status {status}; run the same command again")
    print(conclusions(options.folder / "results").to_string(index=False))

"""Runs the whole workflow on one device under two names, `cpu` and `cuda`, and counts what it concludes.

    python tests/validation/null_run.py FOLDER --device=cpu --batches=34

Nothing may differ. A line is one workload at one batch size, over its sizes. The run can be resumed; on a machine
without a GPU only --device=cpu can run.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from crossover.checks.overhead import copy_workflow

ROOT = Path(__file__).parents[2]
SIZES = {"disc_mlp": [2, 3, 4, 5], "higgs_mlp": [8, 32, 64, 128], "digits_mlp": [8, 32, 64, 128]}


def prepare(folder: Path, device: str, batches: int, sizes: int, effort: str) -> None:
    """Copy the workflow to `folder`, with one study a workload and the scripts that measure replaced."""
    copy_workflow(ROOT, folder)
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
    for name, study in studies.items():
        (folder / "config" / "studies" / f"{name}.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    config = {
        "studies": list(studies),
        "devices": ["cpu", "cuda"],
        "reference": "none",
        "effort": effort,
        "cluster": {"check_devices": False},
    }
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    scripts = folder / "scripts"
    (scripts / "same_device").write_text(device, encoding="utf-8")
    for name in ("measure_cell.py", "probe_roofs.py"):
        (scripts / name).rename(scripts / f"real_{name}")
        shutil.copy2(ROOT / "tests" / "validation" / "same_device.py", scripts / name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--batches", default=34, type=int, help="batch sizes of each workload")
    parser.add_argument("--sizes", default=4, type=int, help="sizes of each workload, at most 4")
    parser.add_argument("--effort", default="quick")
    options = parser.parse_args()
    if not options.folder.exists():
        prepare(options.folder, options.device, options.batches, options.sizes, options.effort)
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--resources", "gpu=1", "--quiet", "all"]
    return subprocess.run(command, cwd=options.folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

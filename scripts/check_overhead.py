"""Compares the wall time of whole trials with what they cannot avoid, and prints the ratio.

What a trial cannot avoid: a bare process that imports torch, constructs an optimizer and initialises the device, and
the seconds of the trial's own first step, warm-up and timing. Bare processes and trials alternate, so that a slow
minute hits both.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crossover.files import atomic_path
from crossover.records import DEVICES

BARE = """
import sys, torch
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device=sys.argv[1]))], lr=0.1)
"""


def wall_s(command: list[str]) -> float:
    """Seconds that a command takes; raises CalledProcessError where it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def compare(device: str, dataset: Path, folder: Path) -> dict[str, float | str]:
    """One bare process and one trial, in seconds, and the trial over the least it could take."""
    import pyarrow.parquet as pq

    row_path = folder / "row.parquet"
    script = Path(__file__).with_name("measure_cell.py")
    options = ["--workload=disc_mlp", "--batch-size=100", "--size=8", f"--device={device}", f"--dataset={dataset}"]
    bare_s = wall_s([sys.executable, "-c", BARE, device])
    trial_s = wall_s([sys.executable, str(script), *options, f"--output={row_path}"])
    (row,) = pq.read_table(row_path).to_pylist()
    measuring_s = row["first_step_s"] + row["warmup_s"] + row["timed_s"]
    return {
        "device": device,
        "bare_s": bare_s,
        "measuring_s": measuring_s,
        "trial_s": trial_s,
        "ratio": trial_s / (bare_s + measuring_s),
    }


def main(arguments: list[str]) -> None:
    """Compare on every device asked for, print the table and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", required=True, type=Path, help="the disc dataset")
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write")
    parser.add_argument("--devices", nargs="+", default=["cpu"], choices=DEVICES)
    parser.add_argument("--repeats", default=5, type=int)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            compare(device, options.dataset, Path(folder)) for _ in range(options.repeats) for device in options.devices
        ]
    with atomic_path(options.output) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for device in options.devices:
        own = [row for row in rows if row["device"] == device]
        medians = {key: statistics.median(float(row[key]) for row in own) for key in rows[0] if key != "device"}
        print(device, *(f"{key} {value:.2f}" for key, value in medians.items()), f"(medians of {len(own)})")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Measure steps with known bottlenecks, and check that they are found.

    python tests/validation bottlenecks --device=cuda --output=results/checks/bottlenecks.csv

Exits with status 1 if fewer than 95 % are found. Takes about five minutes per device.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from crossover.compare.cells import summarise
from crossover.config.options import DEVICE_CHOICES, device, new_parser
from crossover.config.words import is_cpu
from crossover.tables.registry import BOTTLENECKS
from crossover.tables.roof_files import read_roofs
from crossover.tables.rows import collect_rows
from crossover.topics.bottlenecks.bounds import with_roofs
from crossover.topics.bottlenecks.table import with_bottlenecks
from planting import plant

PLANTED_STEPS = Path(__file__).with_name("planted_steps.py")
SIZES_MS = (2, 4, 8)
WANTED = 0.95

CAUSES = {"sleep": "loader", "decode": "loader", "pageable": "transfer", "pinned": "transfer", "act": "host"}
"""The bottleneck that a part causes, unless both have the same name."""

VARIANTS = {
    "cpu": (
        *("sleep", "decode", "host", "launch", "memory", "compute"),
        *("sleep_compute", "decode_memory", "memory_compute", "launch_compute"),
        *("sleep_host", "host_launch", "host_memory", "host_compute"),
    ),
    "cuda": (
        *("sleep", "decode", "pageable", "pinned", "host", "act", "launch", "memory", "compute"),
        *("sleep_launch", "decode_launch", "sleep_pageable", "pageable_compute", "pinned_memory", "memory_compute"),
        # Host work that does not wait for the device runs in parallel with it, so `host` is not paired with the
        # device's work.
        *("sleep_host", "host_launch", "act_memory", "act_compute"),
    ),
}
BATCH_SIZES = {"cpu": 512, "cuda": 4096}


def main(arguments: Sequence[str]) -> None:
    """Exit with status 1 if too few planted steps are found."""
    parser = new_parser(__doc__)
    parser.add_argument("--device", default="cpu", type=device, choices=list(VARIANTS), help=DEVICE_CHOICES)
    parser.add_argument(
        "--variants", nargs="+", choices=sorted({*VARIANTS["cpu"], *VARIANTS["cuda"]}), help="steps (default: all)"
    )
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cells = measure(options.device, options.variants or VARIANTS[options.device], Path(folder))
    cells["planted"] = [" ".join(sorted(planted(variant, options.device))) for variant in cells["variant"]]
    pairs = zip(cells["bottleneck"], cells["second_bottleneck"], strict=True)
    cells["found"] = [" ".join(sorted(filter(pd.notna, pair))) for pair in pairs]
    right = cells["planted"] == cells["found"]
    cells = cells.assign(right=right)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    cells.to_csv(options.output, index=False)
    columns = ["variant", "size", "planted", "found", "right", "remedy", "gain", "predicted_gain"]
    print(cells[columns].to_string(index=False, float_format="{:.2f}".format))
    print(f"{right.sum()} of {len(right)} found")
    sys.exit(int(right.mean() < WANTED))


def planted(variant: str, device: str) -> set[str]:
    causes = CAUSES | ({"launch": "overhead"} if is_cpu(device) else {})
    return {causes.get(part, part) for part in variant.split("_")}


def measure(device: str, variants: Sequence[str], folder: Path) -> pd.DataFrame:
    """The bottlenecks found in planted steps on a device, one row per variant and size."""
    roofs, script = folder / "roofs.json", plant(folder, PLANTED_STEPS.read_text())
    _run(script.with_name("probe_roofs.py"), "{}", f"--device={device}", f"--output={roofs}")
    rows = []
    for variant in variants:
        for size in SIZES_MS:
            rows.append(folder / f"{variant}-{size}.parquet")
            cell = {"workload": "planted", "protocol": "as_published", "variant": variant}
            cell |= {"size": size, "batch_size": BATCH_SIZES[device]}
            effort = {"warmup_max_s": 1.0, "timed_min_s": 0.3, "timed_max_s": 1.0}
            job = json.dumps({"cell": cell, "effort": effort})
            _run(script, job, f"--device={device}", f"--output={rows[-1]}")
    measurements = collect_rows(rows).to_pandas()
    cells = with_roofs(summarise(measurements), measurements, read_roofs([roofs]))
    return with_bottlenecks(cells, measurements)[["variant", "size", *BOTTLENECKS]]


def _run(script: Path, *options: str) -> None:
    subprocess.run([sys.executable, str(script), *options], check=True)

"""Made-up rows of large runs, to see what each stage of the analysis takes as their number grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from crossover.tables.columns import Measurement, arrow_schema

PRECISIONS = ("fp32", "tf32", "amp-bf16", "bf16", "fp64")
BATCH_SIZES = (8, 32, 128, 512)
DEVICES = ("cpu", "cuda")
SAMPLES = 110
"""Blocks of a trial; real ones with the default effort have 90 to 150."""

STUDY = "synthetic"


def synthetic_measurements(lines: int, sizes: int, trials: int, samples: int = SAMPLES) -> pa.Table:
    """One row a trial: so many lines (20 at most), each with so many sizes on the CPU and a GPU, and its trials.

    A step takes the CPU 2 us + 3 ns n^1.5 and the GPU 60 us + 0.1 ns n^1.5 at size n, longer with each line.
    """
    chosen = list(product(BATCH_SIZES, PRECISIONS))[:lines]
    grid = list(product(range(lines), scale_of(sizes), DEVICES, range(1, trials + 1)))
    random = np.random.default_rng(0)
    # A trial differs by 1 % from the next, a block by 2 %.
    of_trials = random.lognormal(0, 0.01, len(grid))
    columns: dict[str, list[Any]] = {name: [] for name in arrow_schema().names}
    for (line, size, device, trial), factor in zip(grid, of_trials, strict=True):
        on_gpu = device == "cuda"
        constant_s, growing_s = (60e-6, 0.1e-9) if on_gpu else (2e-6, 3e-9)
        seconds = (constant_s + growing_s * size**1.5) * (1 + 0.1 * line) * factor
        blocks = seconds * random.lognormal(0, 0.02, samples)
        batch_size, precision = chosen[line]
        row = _plain(on_gpu) | {
            "batch_size": batch_size,
            "precision": precision,
            "size": size,
            "device": device,
            "trial": trial,
            "parameters": 4 * size**2 + size,
            "step_time_s": float(np.median(blocks)),
            "step_time_mean_s": float(blocks.mean()),
            "samples_s": blocks.tolist(),
            "device_samples_s": blocks.tolist() if on_gpu else None,
            "flops_per_step": 12 * size**2 * batch_size,
            "peak_allocated_bytes": 48 * size**2 if on_gpu else None,
            "started_at": f"2026-01-01T{trial:02}:00:00.000+00:00",
            "command": _command(batch_size, precision, size, device, trial),
        }
        for name, values in columns.items():
            values.append(row.get(name))
    return pa.table(columns, schema=arrow_schema())


def scale_of(sizes: int) -> list[int]:
    """So many different sizes from 16 to about 16,000, evenly spaced on a logarithmic axis as far as whole ones are."""
    found: list[int] = []
    for value in np.geomspace(16, 16_000, sizes):
        found.append(max(round(float(value)), found[-1] + 1 if found else 1))
    return found


def synthetic_study(figures: Sequence[str] = ("times", "speedups", "utilisation")) -> dict[str, Any]:
    """The study's file, completed with defaults, as the rules hand it to the scripts."""
    return {
        "name": STUDY,
        "title": "Synthetic rows",
        "question": "From which width on does the GPU pay?",
        "published": None,
        "figures": list(figures),
        "x_axis": "size",
        "steps_per_run": None,
        "precisions": list(PRECISIONS),
        "batch_sizes": list(BATCH_SIZES),
        "variants": ["plain"],
        "protocols": ["resident"],
        "executions": ["eager"],
    }


def as_read(table: pa.Table) -> pd.DataFrame:
    """The rows as the stages read them from their file."""
    return table.to_pandas()


def _plain(on_gpu: bool) -> dict[str, Any]:
    both = {
        "schema_version": Measurement.schema_version,
        "study": STUDY,
        "workload": "linear_stack",
        "variant": "plain",
        "protocol": "resident",
        "execution": "eager",
        "size_name": "width",
        "seed": 0,
        "status": "ok",
        "flags": [],
        "hostname": "here",
        "cpu_model": "Brand C1",
        "cpu_capability": "AVX2",
        "threads": 8,
        "physical_cores": 8,
        "logical_cpus": 16,
        "affinity": list(range(16)),
        "torch_version": "2.13.0",
        "python_version": "3.11.9",
        "operating_system": "Linux",
        "isolation": "server",
        "attempts": 1,
        "load_before": 0.5,
        "load_after": 1.0,
        "backend_settings": '{"matmul_tf32": false, "cudnn_tf32": false}',
        "effort": '{"blocks_min": 30, "timed_min_s": 0.5}',
        "base_rss_bytes": 10**9,
        "peak_rss_bytes": 2 * 10**9,
        "device_name": "Brand C1",
    }
    if not on_gpu:
        return both
    return both | {
        "device_name": "Brand G1",
        "device_uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "device_memory_bytes": 80 * 10**9,
        "driver_version": "580.1",
        "cuda_version": "13.0",
    }


def _command(batch_size: int, precision: str, size: int, device: str, trial: int) -> str:
    return (
        f"python3 scripts/measure_cell.py --study={STUDY} --workload=linear_stack --protocol=resident "
        f"--batch-size={batch_size} --precision={precision} --execution=eager --size={size} --device={device} "
        f"--trial={trial} --output=results/cells/{STUDY}/trial-{trial}.parquet"
    )

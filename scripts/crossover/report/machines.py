"""The hardware and software that measured."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from crossover.figures.style import device_label
from crossover.tables.frames import on_all_cores

MACHINE_COLUMNS = {
    "hostname": "host",
    "cpu_model": "CPU",
    "physical_cores": "usable physical cores",
    "threads": "threads of torch",
    "cpu_capability": "instruction set",
    "driver_version": "GPU driver",
    "cuda_version": "CUDA",
    "cudnn_version": "cuDNN",
    "torch_version": "torch",
    "python_version": "Python",
    "operating_system": "operating system",
    "crossover_version": "Crossover",
}


def machines(tables: Sequence[pd.DataFrame]) -> list[dict[str, str]]:
    """The distinct combinations of device, host and software that measured or trained."""
    columns = ["machine", "device", "device_name", *MACHINE_COLUMNS]
    measured = [on_all_cores(table)[columns].astype(object) for table in tables if len(table)]
    if not measured:
        return []
    rows = pd.concat(measured)
    found = []
    for _, row in rows.drop_duplicates().iterrows():
        facts = {words: str(row[key]) for key, words in MACHINE_COLUMNS.items() if not pd.isna(row[key])}
        found.append({"device": device_label(row["device"], row["device_name"], row["machine"])} | facts)
    return found

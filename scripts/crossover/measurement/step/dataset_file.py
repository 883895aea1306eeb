"""The file of a dataset, as a measuring process reads it."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from crossover.config.workloads import workload_traits
from crossover.errors import UserError


def read_dataset(path: str | None, workload: str) -> dict[str, torch.Tensor]:
    """The tensors that a workload reads from a safetensors file, on the host, none without a path.

    Raises UserError for another file, and for one of another dataset than the workload's.
    """
    if path is None:
        return {}
    if not Path(path).is_file():
        state = "is no file" if Path(path).exists() else "does not exist"
        raise UserError(f"--dataset: {path} {state}; make it with scripts/make_dataset.py's rule")
    try:
        with safe_open(path, framework="pt") as file:
            held = (file.metadata() or {}).get("dataset")
        data = load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"--dataset: {path} is not a readable safetensors file: {error}; delete it, and the run makes it again"
        ) from None
    wanted = workload_traits(workload).dataset
    if wanted is not None and held not in (None, wanted):
        raise UserError(f"--dataset: {path} holds '{held}', but workload '{workload}' reads '{wanted}'; give its file")
    counts = {name: tensor.shape[0] for name, tensor in data.items() if tensor.ndim}
    if wanted is not None and not 0 < counts.get("features", 0) == counts.get("labels", 0):
        raise UserError(
            f"--dataset: {path} holds no 'features' and 'labels' with equally many rows, which workload '{workload}' "
            "reads; delete it, and the run makes it again"
        )
    return data

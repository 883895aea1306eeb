"""Make one dataset and write it as safetensors."""

import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from crossover.datasets import MAKERS, is_generated
from crossover.errors import UserError, logged
from crossover.files import atomic_path
from crossover.machine.kernel import available_bytes
from crossover.machine.turns import computing

snakemake: Any  # injected by Snakemake


def make_dataset(name: str, options: Mapping[str, Any], key: str, path_to_dataset: Path) -> None:
    """Write dataset `name`, made with `options`, with its key; raises UserError if it does not fit in memory."""
    import json

    import numpy as np
    from safetensors.numpy import save_file

    try:
        arrays = {key: np.ascontiguousarray(values) for key, values in MAKERS[name](options).items()}
    except MemoryError as error:
        raise UserError(
            f"datasets.{name}: its data do not fit into this machine's memory ({error}); use fewer rows"
        ) from None
    with atomic_path(path_to_dataset) as temporary:
        facts = {"dataset": name, "options": json.dumps(options), "generated": json.dumps(is_generated(name, options))}
        save_file(arrays, temporary, metadata={"key": key, **facts})


def refuse_more_than(free_bytes: int) -> None:
    """Limit this process's memory, so that allocations fail before Linux kills the process."""
    if sys.platform == "linux":
        held_bytes = psutil.Process().memory_info().data
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = held_bytes + free_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        refuse_more_than(available_bytes())
        make_dataset(
            name=snakemake.wildcards.dataset,
            options=snakemake.params.options,
            key=snakemake.params.key,
            path_to_dataset=Path(snakemake.output.dataset),
        )

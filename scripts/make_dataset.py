"""Makes one dataset and writes it as safetensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.datasets import MAKERS
from crossover.errors import logged
from crossover.files import atomic_path

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def make_dataset(name: str, options: Mapping[str, Any], path_to_dataset: Path) -> None:
    """Write dataset `name`, made with `options`, to `path_to_dataset`."""
    import json

    import numpy as np
    from safetensors.numpy import save_file

    arrays = {key: np.ascontiguousarray(values) for key, values in MAKERS[name](options).items()}
    with atomic_path(path_to_dataset) as temporary:
        save_file(arrays, temporary, metadata={"dataset": name, "options": json.dumps(options)})


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        make_dataset(
            name=snakemake.wildcards.dataset,
            options=snakemake.params.options,
            path_to_dataset=Path(snakemake.output.dataset),
        )

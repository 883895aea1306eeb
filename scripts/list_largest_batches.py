"""List the largest batch of each cell, and what limits it, as text for the terminal."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.files import atomic_path
from crossover.machine.turns import computing
from crossover.tables.rows import collect_searches
from crossover.topics.largest_batch import largest_batches_text

snakemake: Any  # injected by Snakemake

if __name__ == "__main__":
    with logged(snakemake.log[0]), computing(), atomic_path(Path(snakemake.output.text)) as temporary:
        searches = collect_searches([Path(path) for path in snakemake.input.searches])
        temporary.write_text(largest_batches_text(searches), encoding="utf-8")

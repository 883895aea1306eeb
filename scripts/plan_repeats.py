"""Plan which disturbed trials to measure again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan.stages import write_stage
from crossover.tables.rows import collect_rows, disturbed_trials

snakemake: Any  # injected by Snakemake


def plan_repeats(paths_to_rows: Sequence[Path], repeat: int, path_to_plan: Path) -> None:
    """Write the disturbed trials and their flags as JSON."""
    trials = disturbed_trials(collect_rows(paths_to_rows))
    why = [
        {**cell.values, "trial": trial, "flags": flags}
        for cell, numbers in trials.items()
        for trial, flags in numbers.items()
    ]
    write_stage(path_to_plan, repeat, {cell: list(numbers) for cell, numbers in trials.items()}, why)


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing("planning repeats"):
        plan_repeats(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            repeat=int(snakemake.wildcards.repeat),
            path_to_plan=Path(snakemake.output.plan),
        )

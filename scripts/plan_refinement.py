"""Plan trials that narrow down the crossovers, and trials that may decide inconclusive claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.claims.trials import trials_of_claims
from crossover.config.studies import Candidates, Refinement
from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan.stages import write_stage
from crossover.statistics.refinement import plan_stage
from crossover.tables.guards import check_environments
from crossover.tables.rows import collect_rows

snakemake: Any  # injected by Snakemake


def plan_refinement(
    paths_to_rows: Sequence[Path],
    stage: int,
    refinements: Mapping[str, Refinement],
    x_axes: Mapping[str, str],
    trials: Mapping[str, int],
    candidates: Mapping[str, Candidates],
    claims: Sequence[Mapping[str, Any]],
    steps_per_run: Mapping[str, Any],
    several_hosts: bool,
    path_to_plan: Path,
) -> None:
    """Write the trials that a stage adds, and the reason for each series and claim, as JSON."""
    rows = collect_rows(paths_to_rows)
    check_environments(rows, several_hosts)
    measurements = rows.to_pandas()
    near, why = plan_stage(measurements, stage, refinements, x_axes, trials, candidates)
    claimed, claims_why = trials_of_claims(claims, measurements, stage, refinements, trials, steps_per_run)
    cells = sorted({*near, *claimed}, key=lambda cell: cell.path)
    added = {cell: sorted({*near.get(cell, ()), *claimed.get(cell, ())}) for cell in cells}
    write_stage(path_to_plan, stage, added, [*why, *claims_why])


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing("planning a refinement"):
        plan_refinement(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            stage=int(snakemake.wildcards.stage),
            refinements={name: Refinement(**values) for name, values in snakemake.params.refinements.items()},
            x_axes=snakemake.params.x_axes,
            trials=snakemake.params.trials,
            candidates={name: Candidates(**values) for name, values in snakemake.params.candidates.items()},
            claims=snakemake.params.claims,
            steps_per_run=snakemake.params.steps_per_run,
            several_hosts=snakemake.params.several_hosts,
            path_to_plan=Path(snakemake.output.plan),
        )

"""Plan trials that narrow down the crossovers, and trials that may decide inconclusive claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.compare.refinement import all_trials, plan_stage
from crossover.config.studies import Refinement
from crossover.config.study import Study, study_of
from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan.stages import write_stage
from crossover.tables.guards import check_environments
from crossover.tables.rows import collect_rows
from crossover.topics.claims.trials import trials_of_claims

snakemake: Any  # injected by Snakemake


def plan_refinement(
    paths_to_rows: Sequence[Path],
    stage: int,
    refinements: Mapping[str, Refinement],
    studies: Mapping[str, Study],
    trials: Mapping[str, int],
    several_hosts: bool,
    path_to_plan: Path,
) -> None:
    """Write the trials that a stage adds, and the reason for each series and claim, as JSON."""
    rows = collect_rows(paths_to_rows)
    check_environments(rows, several_hosts)
    measurements = rows.to_pandas()
    x_axes = {name: study.x_axis for name, study in studies.items()}
    candidates = {name: study for name, study in studies.items() if study.candidates}
    requests = plan_stage(measurements, stage, refinements, x_axes, trials, candidates)
    requests += trials_of_claims(studies, measurements, stage, refinements, trials)
    write_stage(path_to_plan, stage, all_trials(requests), [request.why for request in requests])


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        plan_refinement(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            stage=int(snakemake.wildcards.stage),
            refinements={name: Refinement(**values) for name, values in snakemake.params.refinements.items()},
            studies={name: study_of(values) for name, values in snakemake.params.studies.items()},
            trials=snakemake.params.trials,
            several_hosts=snakemake.params.several_hosts,
            path_to_plan=Path(snakemake.output.plan),
        )

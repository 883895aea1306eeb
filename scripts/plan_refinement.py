"""Plan trials that narrow down the crossovers, and trials that may decide inconclusive claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crossover.compare.best import of_own_grid
from crossover.compare.budget import fit_stage
from crossover.compare.pairings import with_costs
from crossover.compare.plane import plan_planes
from crossover.compare.refinement import all_trials, plan_stage
from crossover.config.studies import Refinement
from crossover.config.study import Study, study_of
from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan.stages import stages_of, write_stage
from crossover.tables.frames import in_study_order, of_study
from crossover.tables.guards import check_environments
from crossover.tables.reference_files import read_reference
from crossover.tables.rows import collect_rows, disturbed_trials
from crossover.tables.trial_times import TrialTimes
from crossover.topics.claims.trials import trials_of_claims
from crossover.topics.references.table import pairs_with_references

snakemake: Any  # injected by Snakemake

REPEATS_SHARE = 0.25
"""Largest share of the time left that a stage keeps for repeats of disturbed trials."""


def plan_refinement(
    paths_to_rows: Sequence[Path],
    stage: int,
    refinements: Mapping[str, Refinement],
    studies: Mapping[str, Study],
    trials: Mapping[str, int],
    several_hosts: bool,
    minutes: float | None,
    repeats: int,
    folders_of_references: Sequence[Path],
    path_to_plan: Path,
) -> None:
    """Write the trials that a stage adds, and the reason for each series and claim, as JSON.

    A stage after the last one, for what repeats have changed, is as all of a study's stages after the bisections.

    With `minutes`, it adds only what fits into the time left, of which some is kept for repeats of disturbed trials.
    """
    rows = collect_rows(paths_to_rows)
    check_environments(rows, several_hosts)
    measurements = in_study_order(rows.filter(pc.is_in(rows["study"], pa.array([*studies]))).to_pandas(), studies)
    x_axes = {name: study.x_axis for name, study in studies.items()}
    candidates = {name: study for name, study in studies.items() if study.candidates}
    references = [read_reference(folder) for folder in folders_of_references]
    predicted = pairs_with_references(of_own_grid(measurements, candidates), references, x_axes)
    last = {name: stages_of(refinement, trials[name]) for name, refinement in refinements.items()}
    is_further, requests = stage > max(last.values()), []
    for name, refinement in refinements.items():
        own = of_study(measurements, name)
        of_pairs = [pairing for pairing in predicted if pairing.study == name]
        for own_stage in range(refinement.bisections + 1, last[name] + 1) if is_further else (stage,):
            requests += plan_stage(own, own_stage, refinements, x_axes, trials, candidates, of_pairs)
            requests += trials_of_claims({name: studies[name]}, own, own_stage, refinements, trials)
            if "plane" in refinement.pairs:
                timed = with_costs(of_own_grid(own, candidates), None)
                requests += plan_planes(timed, own_stage, refinement, trials[name])
    why = [request.why for request in requests]
    if minutes is None:
        write_stage(path_to_plan, stage, all_trials(requests), why)
        return
    times = TrialTimes.of(rows)
    left_s = times.left_s(minutes)
    if repeats:
        disturbed = ((cell, len(numbers)) for cell, numbers in disturbed_trials(rows).items())
        left_s -= min(sum(count * times.cost_s(cell) for cell, count in disturbed), max(left_s, 0) * REPEATS_SHARE)
    fitted = fit_stage(requests, times.by_cell, times.cost_s, left_s)
    stages = max(own.bisections + len(own.trials_of_stages(trials[study])) for study, own in refinements.items())
    is_last = not fitted.trials and (fitted.is_cut or stage >= stages)
    write_stage(path_to_plan, stage, fitted.trials, why, fitted.note(left_s), is_last)


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        plan_refinement(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            stage=int(snakemake.wildcards.stage),
            refinements={name: Refinement(**values) for name, values in snakemake.params.refinements.items()},
            studies={name: study_of(values) for name, values in snakemake.params.studies.items()},
            trials=snakemake.params.trials,
            several_hosts=snakemake.params.several_hosts,
            minutes=snakemake.params.minutes,
            repeats=snakemake.params.repeats,
            folders_of_references=[Path(folder) for folder in snakemake.params.references],
            path_to_plan=Path(snakemake.output.plan),
        )

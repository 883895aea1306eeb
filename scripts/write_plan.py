"""Write the plan of a run; with it, the run can be analysed and reported at any time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.plan import plan_file
from crossover.plan.plan_file import Plan
from crossover.plan.run_plan import RunPlan

snakemake: Any  # injected by Snakemake


def write_plan(
    run: RunPlan,
    config: Mapping[str, Any],
    keys: Sequence[Mapping[str, Any]],
    several_hosts: bool,
    references: Sequence[str],
    note: str | None,
    path_to_plan: Path,
) -> None:
    plan = Plan(
        config=config,
        studies=run.study,
        devices=run.devices,
        cells=[cell.values for cell in run.cells],
        trials=run.rounds,
        rows=run.rows(run.trials_of_grid),
        trainings=run.trainings,
        searches=run.planned_searches,
        keys=keys,
        several_hosts=several_hosts,
        references=references,
        note=note,
    )
    plan_file.write(plan, path_to_plan)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        write_plan(
            run=RunPlan.from_values(snakemake.params.run),
            config=snakemake.params.config,
            keys=snakemake.params.planned_keys,
            several_hosts=snakemake.params.several_hosts,
            references=snakemake.params.references,
            note=snakemake.params.note,
            path_to_plan=Path(snakemake.output.plan),
        )

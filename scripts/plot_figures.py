"""Draw the figures of a run that have data, as `{folder}/{study}/{kind}{suffix}`."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.report.figure_files import draw_run, figures_of
from crossover.tables.frames import read_run

snakemake: Any  # injected by Snakemake

if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        path_to_plan, folder = Path(snakemake.input.plan), Path(snakemake.output.folder)
        folder.mkdir(exist_ok=True)
        plan, tables = plan_file.read(path_to_plan), read_run(path_to_plan.parent)
        currency = (plan.config["prices"] or {}).get("currency")
        draw_run(tables, plan.studies, folder, figures_of(tables, plan.studies), currency, snakemake.params.suffixes)

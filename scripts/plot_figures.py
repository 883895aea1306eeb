"""Draw the figures of a run as files, `{folder}/{study}/{kind}.{format}`."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.report.figure_files import write_figures
from crossover.tables.frames import read_run

snakemake: Any  # injected by Snakemake

if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        path_to_plan = Path(snakemake.input.plan)
        plan, tables = plan_file.read(path_to_plan), read_run(path_to_plan.parent)
        currency = (plan.config["prices"] or {}).get("currency")
        write_figures(tables, plan.studies, Path(snakemake.output.folder), currency)

"""Draw the figures of a run."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.report.figure_files import draw_run
from crossover.tables.frames import read_run

snakemake: Any  # injected by Snakemake


def plot_figures(path_to_plan: Path, path_to_results: Path, figures: list[Path]) -> None:
    """Draw the figures whose files are `{results}/figures/{study}/{kind}.{suffix}`, all in the same formats."""
    plan = plan_file.read(path_to_plan)
    wanted = dict.fromkeys((path.parent.name, path.stem) for path in figures)
    suffixes = list(dict.fromkeys(path.suffix for path in figures))
    currency = (plan.config["prices"] or {}).get("currency")
    draw_run(read_run(path_to_results), plan.studies, path_to_results / "figures", wanted, currency, suffixes)


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        plan = Path(snakemake.input.plan)
        plot_figures(plan, plan.parent, [Path(path) for path in snakemake.output])

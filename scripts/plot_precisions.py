"""Draws the speed-up of each precision and execution for one study."""

from typing import TYPE_CHECKING

from crossover.figures.figure_files import draw_for_rule
from crossover.figures.precisions import plot_precisions

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_precisions, snakemake)

"""Compares the cells of one study."""

from typing import TYPE_CHECKING

from crossover.figures.comparison import plot_comparison
from crossover.figures.figure_files import draw_for_rule

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_comparison, snakemake)

"""Draws the speed-up over size for one study."""

from typing import TYPE_CHECKING

from crossover.figures.figure_files import draw_for_rule
from crossover.figures.figures import plot_speedups

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_speedups, snakemake)

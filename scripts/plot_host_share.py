"""Draws the host's share of a step for one study."""

from typing import TYPE_CHECKING

from crossover.figures.figure_files import draw_for_rule
from crossover.figures.host_share import plot_host_share

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_host_share, snakemake)

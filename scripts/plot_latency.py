"""Draws the latencies of one study, measured right and wrong."""

from typing import TYPE_CHECKING

from crossover.figures.figure_files import draw_for_rule
from crossover.figures.latency import plot_latency

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_latency, snakemake)

"""Draws time against memory for one study."""

from typing import TYPE_CHECKING

from crossover.figures.figure_files import draw_for_rule
from crossover.figures.trade_off import plot_trade_off

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_trade_off, snakemake)

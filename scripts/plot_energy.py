"""Draws the energy and the money of a step for one study."""

from typing import TYPE_CHECKING

from crossover.figures.energy import plot_energy
from crossover.figures.figure_files import draw_for_rule

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    draw_for_rule(plot_energy, snakemake)

"""Draws the achieved rate over size for one study."""

from typing import TYPE_CHECKING

from crossover.analysis.figure_files import save_study_figure
from crossover.analysis.many_lines import plot_utilisation
from crossover.errors import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        save_study_figure(
            plot_utilisation,
            spec=snakemake.params.study,
            path_to_measurements=snakemake.input.measurements,
            path_to_cells=snakemake.input.cells,
            path_to_crossovers=snakemake.input.crossovers,
            path_to_published=snakemake.input.published,
            paths_to_figures=[snakemake.output.svg, snakemake.output.png],
        )

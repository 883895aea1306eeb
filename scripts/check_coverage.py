"""Simulates crossovers that are known, and tells how often their interval holds them and what refinement saves."""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from crossover.checks.coverage import INSIDE, Case, cases, coverage_rows
from crossover.checks.savings import savings
from crossover.errors import logged
from crossover.tables.frames import write_csv

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def check_coverage(simulations: int, seed: int, processes: int, path_to_csv: Path, path_to_savings: Path) -> str:
    """Write one row a case, method and status, and one a case and dense grid; return what both amount to as text."""
    every = cases()
    saving = [case for case in every if case.crossing == INSIDE and case.factor == 3]
    with ProcessPoolExecutor(processes) as pool:

        def simulated(of: Callable[[Case], pd.DataFrame], chosen: list[Case]) -> pd.DataFrame:
            return pd.concat(pool.map(of, chosen), ignore_index=True)

        coverage = simulated(partial(coverage_rows, simulations=simulations, seed=seed), every)
        saved = simulated(partial(savings, simulations=max(simulations // 10, 20), seed=seed), saving)
    write_csv(coverage, path_to_csv)
    write_csv(saved, path_to_savings)
    found = coverage["status"] == "bracketed"
    inside, columns = coverage["crossing"] == INSIDE, ["share", "coverage", "half_width", "error"]
    by_shape = coverage[found & inside].groupby(["shape", "trials", "method"])[columns].mean()
    false = coverage["status"].isin(["bracketed", "reversed", "multiple"])
    wrong = coverage[~inside].assign(share=coverage["share"].where(false, 0))
    worst = wrong[wrong["method"] == "ours"].groupby(["crossing", "trials"])["share"].max().unstack()
    texts = (table.round(3).to_string() for table in (by_shape, worst, saved))
    titles = ("Crossings within the range", "Crossings beyond it: largest share of false ones", "Timed seconds")
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(titles, texts, strict=True))


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        # Every process has one core: a second thread of the numerical libraries would only wait for it.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        text = check_coverage(
            simulations=snakemake.params.simulations,
            seed=snakemake.params.seed,
            processes=snakemake.threads,
            path_to_csv=Path(snakemake.output.csv),
            path_to_savings=Path(snakemake.output.savings),
        )
        print(text)
    print(f"\n{text}\n")

"""All statistics of a run, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from crossover.config.words import threads_of_side
from crossover.statistics.cells import summarise
from crossover.statistics.cores_worth import cores_worth_of
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.latencies import latencies_of
from crossover.statistics.problems import list_problems
from crossover.statistics.quality import quality_pairs_of, quality_table
from crossover.statistics.ratios import ratios_of
from crossover.tables.finished import MissingResult
from crossover.tables.run_tables import RunTables, run_tables


def tables_of(
    measurements: pd.DataFrame,
    trainings: pd.DataFrame,
    searches: pd.DataFrame,
    studies: Mapping[str, Mapping[str, Any]],
    prices: Mapping[str, float] | None = None,
    missing: Iterable[MissingResult] = (),
    *,
    grids_known: bool = True,
) -> RunTables:
    """All tables of a run but its claims and answers, which are empty.

    `measurements` has one row a trial, `trainings` one a training, and `searches` is what `collect_searches` gives; all
    may be empty. `studies` holds the files of the measured studies by name, completed with defaults, `prices` the price
    of an hour on the machine of each device. `grids_known` is False for runs of other machines, which may have begun
    with other sizes than the studies have here: then no size counts as refined.
    """
    known = {name: studies.get(name, {}) for name in measurements["study"].unique()}
    sizes = {name: study["sizes"] for name, study in known.items() if "sizes" in study}
    x_axes = {name: study.get("x_axis", "size") for name, study in known.items()}
    class_names = {name: (study.get("quality") or {}).get("classes") for name, study in studies.items()}
    cells = summarise(measurements, sizes if grids_known else {}, prices)
    quality = quality_table(trainings, class_names)
    on_fewer_cores = {
        study for study, side in zip(cells["study"], cells["device"], strict=True) if threads_of_side(side) is not None
    }
    return run_tables(
        measurements=measurements,
        cells=cells,
        ratios=ratios_of(measurements),
        crossovers=crossovers_of(measurements, x_axes, prices),
        latencies=latencies_of(measurements),
        cores_worth=cores_worth_of(measurements[measurements["study"].isin(on_fewer_cores)]),
        quality=quality,
        quality_pairs=quality_pairs_of(quality),
        largest_batches=searches,
        problems=list_problems({"trial": measurements, "training": trainings, "search": searches}, cells, missing),
    )

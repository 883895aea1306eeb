"""The caveats of claims: those of the cells that a verdict rests on."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from crossover.config.claim_forms import Claim, CrossoverBetween, RatioWithin
from crossover.config.study import Study
from crossover.tables.frames import of_study, on_all_cores, records
from crossover.tables.registry import DETERMINISTIC
from crossover.tables.run_tables import RunTables
from crossover.topics.caveats import by_importance, flags_of
from crossover.topics.claims.findings import NO_DATA, pinned
from crossover.topics.claims.table import machines_of, single_line
from crossover.topics.crossovers.sides import caveats_of_series


def with_caveats(checked: pd.DataFrame, studies: Mapping[str, Study], tables: RunTables) -> pd.DataFrame:
    """Table `claims`, the result of `check_claims` for these studies and tables, with column `caveats`."""
    claims = [(study.name, claim) for study in studies.values() for claim in study.claims]
    judged = [(*claim, machine) for claim in claims for machine in machines_of(*claim, tables)]
    caveats = [
        [] if verdict == NO_DATA else by_importance(_caveats(*judgement, tables))
        for judgement, verdict in zip(judged, checked["verdict"], strict=True)
    ]
    return checked.assign(caveats=pd.Series(caveats, checked.index, object))


def _caveats(study: str, claim: Claim, machine: str, tables: RunTables) -> list[str]:
    """Without those on the number of trials, of which the reason for the verdict speaks."""
    if isinstance(claim.form, CrossoverBetween):
        crossovers = tables.crossovers[tables.crossovers["machine"] == machine]
        (line,) = records(single_line(crossovers, study, claim.form).to_frame().T)
        return caveats_of_series(line, tables)
    if not isinstance(claim.form, RatioWithin):
        return []  # the quality of a trained model does not depend on the load
    sides = claim.form.of, claim.form.over
    if {side.metric for side in sides} <= DETERMINISTIC.keys():
        return []
    cells = on_all_cores(of_study(tables.cells, study))
    cells = cells[cells["machine"] == machine]
    return flags_of(pd.concat([pinned(cells, side.axes) for side in sides]))

"""More trials for the cells of inconclusive claims."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from crossover.compare.refinement import Request
from crossover.config.claim_forms import RatioWithin
from crossover.config.studies import Cell, Refinement
from crossover.config.study import Study
from crossover.config.words import AXES
from crossover.tables.frames import first_row, of_study, on_all_cores
from crossover.tables.registry import DETERMINISTIC
from crossover.topics.claims.cell_claims import open_finding
from crossover.topics.claims.findings import NoFindingError, pinned


def trials_of_claims(
    studies: Mapping[str, Study],
    measurements: pd.DataFrame,
    stage: int,
    refinements: Mapping[str, Refinement],
    trials: Mapping[str, int],
) -> list[Request]:
    """The trials that a stage (from 1) adds for each inconclusive claim about a ratio, on each machine.

    Claims that even the trials of the last stage are not expected to decide get none. `refinements` and `trials` are by
    study.
    """
    requests = []
    for study, claim in ((of.name, claim) for of in studies.values() for claim in of.claims):
        form = claim.form
        if not isinstance(form, RatioWithin) or {form.of.metric, form.over.metric} <= DETERMINISTIC.keys():
            continue
        refinement = refinements[study]
        later_stages = dict(enumerate(refinement.trials_of_stages(trials[study]), refinement.bisections + 1))
        if stage not in later_stages:
            continue
        most = max(later_stages.values())
        numbers = {*range(refinement.first(trials[study]) + 1, later_stages[stage] + 1)}
        for machine, rows in on_all_cores(of_study(measurements, study)).groupby("machine"):
            try:
                finding = open_finding(form, study, rows, studies[study].steps_per_run, most)
            except NoFindingError:
                continue
            if finding:
                sides = [first_row(pinned(rows, side.axes)) for side in (form.of, form.over)]
                why = {
                    "study": study,
                    "machine": machine,
                    "claim": claim.statement,
                    "ratio": finding.measured,
                    "interval": (finding.low, finding.high),
                    "decision": "add_trials",
                }
                requests.append(Request({Cell(**{axis: side[axis] for axis in AXES}): numbers for side in sides}, why))
    return requests

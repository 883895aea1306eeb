"""Published statements held against the measurements: one verdict a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.claims.claim_crossovers import check_crossover
from crossover.claims.claim_quality import check_quality
from crossover.claims.claim_quantities import quantity, x_axis_of, x_axis_words
from crossover.claims.claim_ratios import check_ratio
from crossover.claims.findings import NOT_TESTABLE, VERDICTS, Finding
from crossover.claims.selections import NothingToTestError
from crossover.config.claim_forms import FORMS, Claim, CrossoverBetween, RatioWithin, read_claim
from crossover.config.words import HERE
from crossover.tables.frames import on_all_cores

CLAIM_COLUMNS = {
    "study": "study that the claim belongs to",
    "machine": "machine whose measurements it is held against",
    "statement": "what the source says, or we do",
    "source": "author, title and date of the source; `ours` for a statement of our own",
    "published": "value that the source gives, and the range that is tested where that is another; of ours, the latter",
    "measured": "the same, measured; empty where the data do not give it",
    "measured_low": "lower end of its 95 % interval, or of what is known of it; empty where there is none",
    "measured_high": "upper end of its 95 % interval, or of what is known of it; empty where there is none",
    "quantity": "what is measured, in words",
    "form": ", ".join(FORMS) + ": the form of the claim in the study's file",
    "tested_low": "lower end of the range that is tested; empty where the form has none",
    "tested_high": "upper end of the range that is tested; empty where the form has none",
    "x_axis": "what a crossover is read over: size or parameters; empty for other forms, or without rows",
    "verdict": ", ".join(VERDICTS),
    "reason": "what the verdict rests on, or what is missing",
}
"""The columns of a claim."""


def check_claims(
    claims: Sequence[Mapping[str, Any]],
    measurements: pd.DataFrame,
    crossovers: pd.DataFrame,
    quality: pd.DataFrame | None = None,
    steps_per_run: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """One row a claim and machine, in the claims' order; a machine that lacks the study has none, unless all lack it.

    A claim has the keys of config/schema.yaml and `study`. `measurements` has one row a trial, `crossovers` one a line
    and accelerator (as `compare_lines` makes it), `quality` one a training; `steps_per_run` maps a study to the steps
    of its published run. Raises UserError where a claim is not in one of the forms, or selects several cells.
    """
    rows = []
    measurements = on_all_cores(measurements) if len(measurements) else measurements
    for number, values in enumerate(claims):
        study = str(values["study"])
        claim = read_claim(values, study, f"study '{study}': claims.{number}")
        for machine in _machines(claim, measurements, quality):
            own, lines, models = (_of_machine(table, machine) for table in (measurements, crossovers, quality))
            found = _check(claim, own, lines, models, (steps_per_run or {}).get(study))
            crosses = isinstance(claim.form, CrossoverBetween)
            rows.append(
                {
                    "study": claim.study,
                    "machine": machine,
                    "statement": claim.statement,
                    "source": claim.source,
                    "published": claim.published,
                    "measured": found.measured,
                    "measured_low": found.low,
                    "measured_high": found.high,
                    "quantity": quantity(claim, x_axis_words(crossovers, study)),
                    "form": claim.form_name,
                    "tested_low": getattr(claim.form, "low", None),
                    "tested_high": getattr(claim.form, "high", None),
                    "x_axis": x_axis_of(crossovers, study) if crosses else None,
                    "verdict": found.verdict,
                    "reason": found.reason,
                }
            )
    table = pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))
    numbers = ("measured", "measured_low", "measured_high", "tested_low", "tested_high")
    return table.astype({name: "Float64" if name in numbers else "string" for name in CLAIM_COLUMNS})


def _machines(claim: Claim, *tables: pd.DataFrame | None) -> list[str]:
    """The machines that measured or trained what a claim is about; HERE stands for none."""
    studies = {claim.study, getattr(claim.form, "study", None)}
    found = [
        table.loc[table["study"].isin(studies), "machine"].tolist()
        for table in tables
        if table is not None and "machine" in table
    ]
    return list(dict.fromkeys(name for names in found for name in names)) or [HERE]


def _of_machine(table: Any, machine: str) -> Any:
    return table[table["machine"] == machine] if table is not None and "machine" in table else table


def _check(
    claim: Claim,
    measurements: pd.DataFrame,
    crossovers: pd.DataFrame,
    quality: pd.DataFrame | None,
    steps_per_run: Any,
) -> Finding:
    try:
        if isinstance(claim.form, CrossoverBetween):
            return check_crossover(claim.form, claim.study, measurements, crossovers)
        if isinstance(claim.form, RatioWithin):
            return check_ratio(claim.form, claim.study, measurements, steps_per_run)
        return check_quality(claim.form, claim.study, quality)
    except NothingToTestError as error:
        return Finding(NOT_TESTABLE, str(error))

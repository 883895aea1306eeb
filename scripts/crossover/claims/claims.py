"""Published statements held against the measurements: one verdict a claim and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from crossover.claims.cell_claims import check_quality, check_ratio
from crossover.claims.crossover_claims import check_crossover
from crossover.claims.findings import Finding, NoFindingError, axes_label
from crossover.config.claim_forms import Claim, CrossoverBetween, RatioWithin, SameQuality, read_claim
from crossover.config.words import HERE
from crossover.tables.frames import of_study, on_all_cores
from crossover.tables.labels import axis_label
from crossover.tables.registry import table_of
from crossover.tables.run_tables import RunTables


def check_claims(
    claims: Sequence[Mapping[str, Any]], tables: RunTables, steps_per_run: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """The table of claims: one row a claim and machine that measured its study, or one of HERE if none did.

    A claim has the keys of config/schema.yaml and `study`. Measurements, crossovers, quality and quality_pairs of
    `tables` are read; `steps_per_run` maps a study to the steps of its published run. Raises UserError if a claim is
    malformed or selects several cells.
    """
    tables = replace(tables, measurements=on_all_cores(tables.measurements))
    rows = []
    for number, values in enumerate(claims):
        study = str(values["study"])
        claim = read_claim(values, study, f"study '{study}': claims.{number}")
        for machine in _machines(claim, tables):
            found = _check(claim, _of_machine(tables, machine), (steps_per_run or {}).get(study))
            rows.append(
                {
                    "study": study,
                    "machine": machine,
                    "statement": claim.statement,
                    "source": claim.source,
                    "published": claim.published,
                    "measured": found.measured,
                    "measured_low": found.low,
                    "measured_high": found.high,
                    "form": claim.form_name,
                    **_measure(claim.form),
                    "tested_low": getattr(claim.form, "low", None),
                    "tested_high": getattr(claim.form, "high", None),
                    **_x_axis(claim, tables.crossovers),
                    "verdict": found.verdict,
                    "reason": found.reason,
                    "place": found.place,
                }
            )
    return table_of("claims", rows)


def _machines(claim: Claim, tables: RunTables) -> list[str]:
    """The machines that measured or trained what a claim is about, or HERE."""
    studies = [claim.study, getattr(claim.form, "study", None)]
    found = [table.loc[table["study"].isin(studies), "machine"] for table in (tables.measurements, tables.quality)]
    return list(dict.fromkeys(pd.concat(found))) or [HERE]


def _of_machine(tables: RunTables, machine: str) -> RunTables:
    names = ("measurements", "crossovers", "quality", "quality_pairs")
    own = {name: getattr(tables, name) for name in names}
    return replace(tables, **{name: table[table["machine"] == machine] for name, table in own.items()})


def _check(claim: Claim, tables: RunTables, steps_per_run: Any) -> Finding:
    try:
        if isinstance(claim.form, CrossoverBetween):
            return check_crossover(claim.form, claim.study, tables.crossovers)
        if isinstance(claim.form, RatioWithin):
            return check_ratio(claim.form, claim.study, tables.measurements, steps_per_run)
        return check_quality(claim.form, claim.study, tables.quality, tables.quality_pairs)
    except NoFindingError as error:
        return error.finding


def _measure(form: CrossoverBetween | RatioWithin | SameQuality) -> dict[str, str | None]:
    """What a claim measures: the metrics of both sides, and labels of both and of what they share."""
    if isinstance(form, CrossoverBetween):
        return {"where": axes_label(form.where) or None}
    if isinstance(form, SameQuality):
        return {"metric": form.metric, "where": axes_label(form.where) or None}
    of, over = form.of.axes, form.over.axes
    shared = {axis: value for axis, value in of.items() if over.get(axis) == value}
    labels = [axes_label({axis: axes[axis] for axis in axes if axis not in shared}) or None for axes in (of, over)]
    return {
        "metric": form.of.metric,
        "over_metric": form.over.metric if form.over.metric != form.of.metric else None,
        "side": labels[0],
        "over": labels[1],
        "where": axes_label(shared) or None,
    }


def _x_axis(claim: Claim, crossovers: pd.DataFrame) -> dict[str, str]:
    """What a study's crossovers are read over; nothing for other forms, and if nothing of the study was measured."""
    lines = of_study(crossovers, claim.study)
    if not isinstance(claim.form, CrossoverBetween) or lines.empty:
        return {}
    return {"x_axis": str(lines["x_axis"].iloc[0]), "unit": axis_label(dict(lines.iloc[0]))}

"""Table `claims`: published statements, checked against the measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from crossover.compare.cells import means_of, summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.config.claim_forms import OURS, Claim, CrossoverBetween, Form, PaybackWithin, RatioWithin, SameQuality
from crossover.config.study import Study
from crossover.config.words import HERE
from crossover.tables.frames import first_row, headline_rows, of_study, on_all_cores, with_parameters
from crossover.tables.labels import axis_label, product_family, side_word, with_article
from crossover.tables.reference_files import Reference
from crossover.tables.registry import DETERMINISTIC, SERIES_AXES
from crossover.tables.run_tables import RunTables, run_tables, table_of
from crossover.text import listed, place_text
from crossover.topics.caveats import by_importance, flags_of
from crossover.topics.claims.cell_claims import check_quality, check_ratio
from crossover.topics.claims.findings import NO_DATA, Finding, NoFindingError, axes_label, check_single, judge, pinned
from crossover.topics.crossovers.sides import caveats_of_series


def check_claims(
    studies: Mapping[str, Study],
    tables: RunTables,
    together: Mapping[str, int] | None = None,
    references: Sequence[Reference] = (),
) -> pd.DataFrame:
    """One row per claim and machine on which its study was measured, or with machine HERE if there is no such machine.

    A published claim that no machine of the run can judge, for lack of an accelerator, has further rows: of each of
    `references` that can. By study, `together` has the number of comparisons for which its ratios are corrected. Raises
    UserError if a claim selects several cells for a side or several series.
    """
    tables = replace(tables, measurements=on_all_cores(tables.measurements))
    elsewhere: dict[tuple[str, str], RunTables] = {}
    rows = []
    for study, claim in ((of, claim) for of in studies.values() for claim in of.claims):
        checked = [
            _row(study, claim, machine, _of_machine(tables, machine), (together or {}).get(study.name, 1))
            for machine in _machines(study.name, claim, tables)
        ]
        is_alone = claim.source != OURS and {row["reason"] for row in checked} == {"no_accelerator"}
        for facts, trials in ((each.facts, each.trials) for each in references if is_alone):
            key = facts.name, study.name
            if key not in elsewhere:
                elsewhere[key] = _of_reference(trials, tables.measurements, study)
            gpu = f"{with_article(product_family(facts.device_name))} measured elsewhere ({facts.measured_on})"
            row = _row(study, claim, facts.name, elsewhere[key], len(study.claims)) | {"elsewhere": gpu}
            checked += [row] if row["verdict"] != NO_DATA else []
        rows += checked
    return table_of("claims", rows)


def _row(study: Study, claim: Claim, machine: str, tables: RunTables, together: int) -> dict[str, Any]:
    finding, caveats = _check(study, claim, tables, together)
    return {
        "study": study.name,
        "machine": machine,
        "elsewhere": "",
        "statement": claim.statement,
        "source": claim.source,
        "published": claim.shown,
        "measured": finding.measured,
        "measured_low": finding.low,
        "measured_high": finding.high,
        "form": claim.form_name,
        **_measure(claim.form),
        "tested_low": getattr(claim.form, "low", None),
        "tested_high": getattr(claim.form, "high", None),
        **_x_axis(study.name, claim, tables.crossovers),
        "verdict": finding.verdict,
        "reason": finding.reason,
        "place": finding.place,
        "caveats": caveats,
    }


def _of_reference(trials: pd.DataFrame, measurements: pd.DataFrame, study: Study) -> RunTables:
    """The tables of a reference's trials in the series of this run's, with the same code of the model."""
    here = of_study(measurements, study.name)[OF_SERIES].dropna(subset="model_key").drop_duplicates()
    agreeing = with_parameters(trials.merge(here, on=OF_SERIES))
    means = means_of(agreeing)
    crossovers = crossovers_of(pairings(agreeing, {study.name: study.x_axis}))
    return run_tables(
        measurements=on_all_cores(agreeing), cells=summarise(agreeing, means), crossovers=crossovers, means=means
    )


OF_SERIES = [*(axis for axis in SERIES_AXES if axis != "machine"), "model_key"]


def _machines(study: str, claim: Claim, tables: RunTables) -> list[str]:
    """The machines on which a study's claim is checked, or HERE if the study was not measured."""
    studies = [study, getattr(claim.form, "study", None)]
    machines = [table.loc[table["study"].isin(studies), "machine"] for table in (tables.measurements, tables.quality)]
    return list(dict.fromkeys(pd.concat(machines))) or [HERE]


def _of_machine(tables: RunTables, machine: str) -> RunTables:
    names = ("measurements", "cells", "crossovers", "quality")
    parts = {name: (table := getattr(tables, name))[table["machine"] == machine] for name in names}
    return replace(tables, **parts)


def _check(study: Study, claim: Claim, tables: RunTables, together: int) -> tuple[Finding, list[str]]:
    """The finding, and its caveats by importance."""
    try:
        if isinstance(claim.form, CrossoverBetween):
            finding = check_crossover(claim.form, study.name, tables.crossovers)
        elif isinstance(claim.form, RatioWithin):
            finding = check_ratio(claim.form, study.name, tables.measurements, study.steps_per_run, together)
        else:
            finding = check_quality(claim.form, study.name, tables.quality)
        caveats = [] if finding.verdict == NO_DATA else by_importance(_caveats(study.name, claim, tables))
    except NoFindingError as error:
        return error.finding, []
    return finding, caveats


def _caveats(study: str, claim: Claim, tables: RunTables) -> list[str]:
    """Those of the cells that a verdict rests on, without those on the number of trials, which its reason names."""
    if isinstance(claim.form, CrossoverBetween):
        return caveats_of_series(single_line(tables.crossovers, study, claim.form), tables)
    if not isinstance(claim.form, RatioWithin):
        return []  # the quality of a trained model does not depend on the load
    sides = claim.form.of, claim.form.over
    if {side.metric for side in sides} <= DETERMINISTIC.keys():
        return []
    cells = on_all_cores(of_study(tables.cells, study))
    return flags_of(pd.concat([pinned(cells, side.axes) for side in sides]))


def _measure(form: Form) -> dict[str, str | None]:
    if isinstance(form, CrossoverBetween):
        return {"condition": axes_label(form.where) or None}
    if isinstance(form, SameQuality):
        return {"metric": form.metric, "condition": axes_label(form.where) or None}
    of, over = form.of.axes, form.over.axes
    shared = {axis: value for axis, value in of.items() if over.get(axis) == value}
    labels = [axes_label({axis: axes[axis] for axis in axes if axis not in shared}) or None for axes in (of, over)]
    return {
        "metric": "payback_steps" if isinstance(form, PaybackWithin) else form.of.metric,
        "over_metric": form.over.metric if form.over.metric != form.of.metric else None,
        "side": labels[0],
        "over": labels[1],
        "condition": axes_label(shared) or None,
    }


def _x_axis(study: str, claim: Claim, crossovers: pd.DataFrame) -> dict[str, str]:
    if isinstance(claim.form, PaybackWithin):
        return {"unit": "steps"}
    lines = of_study(crossovers, study)
    if not isinstance(claim.form, CrossoverBetween) or lines.empty:
        return {}
    line = first_row(lines)
    return {"x_axis": line["x_axis"], "unit": axis_label(line)}


AT_MOST_ONE = ("bracketed", "incomplete")
"""Statuses for which at most one crossing was found."""


def check_crossover(form: CrossoverBetween, study: str, crossovers: pd.DataFrame) -> Finding:
    """Compare the crossover of a series with the claimed range: by its 95 % set, or without a set by the sizes with a
    significant difference.

    Without a set, a claim is contradicted by an accelerator that is significantly slower at or above the upper end of
    the range, or faster at or below the lower end. If there is at most one crossing, the claimed range is compared
    with the range from a significantly slower to a significantly faster size. Raises NoFindingError without data or
    with several devices, and UserError if several series are selected otherwise.
    """
    line = single_line(crossovers, study, form)
    if line["status"] == "no_accelerator":
        raise NoFindingError("no_accelerator" if line["trials"] else "no_times")
    if line["status"] == "incomplete" and line["caveat"] == "no_common_size":
        raise NoFindingError("no_common_size", listed([side_word(line["baseline"]), side_word(line["device"])]))
    ends = [line[name] for name in ("crossover", "crossover_low", "crossover_high")]
    point, low, high = ends if line["status"] == "bracketed" else (None, None, None)
    if low is not None and high is not None:
        return judge(point, low, high, form.low, form.high)
    return _by_sizes(form, line, point)


def single_line(crossovers: pd.DataFrame, study: str, form: CrossoverBetween) -> dict[str, Any]:
    """The row of `crossovers` that a claim is about; errors as in `check_crossover`."""
    lines = headline_rows(of_study(crossovers, study)) if len(crossovers) else crossovers
    if lines.empty:
        raise NoFindingError("no_rows")
    rows = pinned(lines, form.where)
    check_single(rows, study, form.where, free="device")
    if len(rows) > 1:
        raise NoFindingError("several_devices", listed(rows["device"].tolist()))
    return first_row(rows)


def _by_sizes(form: CrossoverBetween, line: Mapping[str, Any], point: float | None) -> Finding:
    status, slower, faster = line["status"], line["slower_up_to"], line["faster_from"]
    low, high = (None, None) if slower is not None and faster is not None and slower >= faster else (slower, faster)
    if faster is not None and faster <= form.low:
        return Finding("faster_before", point, low, high, _places(line, [faster]))
    if slower is not None and slower >= form.high:
        return Finding("slower_after", point, low, high, _places(line, [slower]))
    if low is not None and high is not None and status in AT_MOST_ONE:
        return judge(point, low, high, form.low, form.high, _places(line, [low, high]))
    if status == "bracketed" or (low is None and high is None and line["trials"] == 1):
        bracket = [end for end in (line["bracket_low"], line["bracket_high"]) if end is not None]
        return Finding("one_trial", point, low, high, _places(line, bracket))
    places = {"below_range": [high], "above_range": [low], "multiple": line["roots"]}.get(status, line["caveat_at"])
    return Finding(status, point, low, high, _places(line, places))


def _places(line: Mapping[str, Any], points: Sequence[float]) -> str | None:
    if len(points) == 0:
        return None
    return f"{listed([place_text(x, line['x_axis']) for x in points])} {axis_label(line)}"

"""What a schema cannot say of a study's claims, checked before any job starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossover.claim_forms import (
    OURS,
    PINNABLE,
    CrossoverBetween,
    RatioWithin,
    claims_of,
    read_claim,
    selects,
    several_cells,
)
from crossover.errors import UserError
from crossover.records import DEVICES
from crossover.studies import Study
from crossover.validation import allowed_names

SOURCES = f"author, title and date, or '{OURS}'"
"""What a claim's source may be, in words."""


def check_claims_of(study: Study, place: str, studies: Sequence[str]) -> None:
    """Raise UserError naming the key where a claim of a study cannot be checked, whatever is measured.

    `studies` are the names of all that there are.
    """
    on_all_cores = replace(study, cpu_threads=())  # of the CPU, claims mean all cores
    cells = [{axis: getattr(cell, axis) for axis in PINNABLE} for cell in on_all_cores.cells(DEVICES)]
    for number, values in enumerate(claims_of([study])):
        here = f"{place}: claims.{number}"
        inherited = values["source"] and not study.claims[number].get("source")
        _check_source(values["source"], f"{place}: published.source" if inherited else f"{here}.source")
        form = read_claim(values, study.name, here).form
        if isinstance(form, CrossoverBetween):
            _check_single(form.where, cells, [axis for axis in PINNABLE if axis not in ("size", "device")], here)
        elif isinstance(form, RatioWithin):
            for side in (form.of, form.over):
                _check_single(side.axes, cells, PINNABLE, here)
                if side.metric == "run_time_s" and study.steps_per_run is None:
                    raise UserError(f"{here}: run_time_s needs the steps of the published run; set steps_per_run")
        elif form.study is not None and form.study not in studies:
            raise UserError(
                f"{here}.same_quality.study: '{form.study}' is unknown; {allowed_names(form.study, studies)}"
            )


def _check_source(source: str | None, place: str) -> None:
    """A statement is somebody's, or marked as ours in the one spelling that the report counts apart."""
    if source is None or not source.strip():
        raise UserError(f"{place}: missing; allowed: {SOURCES}")
    if source != OURS and source.strip().lower() == OURS:
        raise UserError(f"{place}: {source!r} is not allowed; allowed: {SOURCES}")


def _check_single(axes: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], free: Sequence[str], place: str) -> None:
    """A selection must leave one value of every axis, wherever it lies on the study's grid."""
    chosen = [cell for cell in cells if selects(axes, cell)]
    loose = [axis for axis in free if len({cell[axis] for cell in chosen}) > 1]
    if loose:
        raise UserError(f"{place}: {several_cells(axes, loose)}")

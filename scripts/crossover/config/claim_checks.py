"""What a schema cannot say of a study's claims, checked before any job starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossover.config.claim_forms import (
    FORMS,
    OURS,
    PINNABLE,
    CrossoverBetween,
    RatioWithin,
    SameQuality,
    claims_of,
    read_claim,
    selects,
    several_cells,
)
from crossover.config.studies import Study
from crossover.config.validation import allowed_names
from crossover.config.words import BASELINE, DEVICES
from crossover.errors import UserError

SOURCES = f"author, title and date, or '{OURS}'"
"""What a claim's source may be, in words."""


ON_GRID = tuple(axis for axis in PINNABLE if axis not in ("size", "device"))
"""Axes that a claim may pin to the study's own values only; sizes and devices are cut down, and the claims stay."""

MISTAKES = tuple(f"latencies_{mistake}_s" for mistake in ("cold", "unsynchronised", "transfer"))
"""Metrics that only `latency_mistakes` measures."""


def check_claims_of(study: Study, place: str, studies: Sequence[str], read: Callable[[str], Study]) -> None:
    """Raise UserError naming the key where a claim of a study cannot be checked, whatever is measured.

    `studies` are the names of all that there are; `read` gives another one of them from its file.
    """
    for number, values in enumerate(claims_of([study])):
        here = f"{place}: claims.{number}"
        inherited = values["source"] and not study.claims[number].get("source")
        _check_source(values["source"], f"{place}: published.source" if inherited else f"{here}.source")
        form = read_claim(values, study.name, here).form
        key = next(name for name in FORMS if values.get(name))
        if isinstance(form, SameQuality):
            _check_quality(form, values[key], study, f"{here}.{key}", studies, read)
            continue
        if not study.timed:
            raise UserError(f"{here}.{key}: the study times nothing; allowed: same_quality, or timed: true")
        _check_on_grid(values[key], study, f"{here}.{key}")
        cells = _cells(study)
        if isinstance(form, CrossoverBetween):
            _check_single(form.where, cells, ON_GRID, here)
            continue
        for side in (form.of, form.over):
            _check_single(side.axes, cells, PINNABLE, here)
            _check_metric(side.metric, study, here)
        _check_differ(form, cells, f"{here}.{key}")


def _check_source(source: str | None, place: str) -> None:
    """A statement is somebody's, or marked as ours in the one spelling that the report counts apart."""
    if source is None:
        raise UserError(f"{place}: missing; allowed: {SOURCES}")
    if source != OURS and source.strip().lower() == OURS:
        raise UserError(f"{place}: {source!r} is not allowed; allowed: {SOURCES}")


def _check_metric(metric: str, study: Study, place: str) -> None:
    """A metric must be one that the study's trials have."""
    if metric == "run_time_s" and study.steps_per_run is None:
        raise UserError(f"{place}: run_time_s needs the steps of the published run; set steps_per_run")
    if metric.startswith("latenc") and not study.latency_steps:
        raise UserError(f"{place}: {metric} needs latency_steps, which is 0; allowed: at least 300")
    if metric in MISTAKES and not study.latency_mistakes:
        raise UserError(f"{place}: {metric} needs latency_mistakes, which is false; set it to true")


def _check_quality(
    form: SameQuality,
    values: Mapping[str, Any],
    study: Study,
    place: str,
    studies: Sequence[str],
    read: Callable[[str], Study],
) -> None:
    """The study that trains the models must exist and train those that are pinned, beside the CPU's in fp32."""
    if form.study is not None and form.study not in studies:
        raise UserError(f"{place}.study: '{form.study}' is unknown; {allowed_names(form.study, studies)}")
    trained = study if form.study in (None, study.name) else read(form.study or "")
    if trained.quality is None:
        raise UserError(f"{place}.study: '{trained.name}' trains no models; allowed: a study with quality")
    _check_on_grid(values, trained, place)
    chosen = [cell for cell in _cells(replace(trained, timed=True)) if selects(form.where, cell)]
    if chosen and all((cell["device"], cell["precision"]) == (BASELINE, "fp32") for cell in chosen):
        raise UserError(
            f"{place}.where: it leaves the CPU in fp32 alone, which is what the others are compared with; "
            f"allowed: another device, or another precision of {', '.join(trained.precisions)}"
        )


def _check_on_grid(values: Mapping[str, Any], study: Study, place: str) -> None:
    """A pinned value must be one of the study's own, on the axes that are not cut down."""
    for part in ("where", "slow", "fast", "of", "over"):
        for axis, value in (values.get(part) or {}).items():
            own = getattr(study, f"{axis}s") if axis in ON_GRID else (value,)
            if value not in own:
                raise UserError(
                    f"{place}.{part}.{axis}: {value!r} is not measured by study '{study.name}'; "
                    f"allowed: {', '.join(map(str, own))}"
                )


def _check_differ(form: RatioWithin, cells: Sequence[Mapping[str, Any]], place: str) -> None:
    """A ratio of a cell's metric to itself is 1, whatever is measured."""
    if form.of.metric != form.over.metric:
        return
    of, over = ([cell for cell in cells if selects(side.axes, cell)] for side in (form.of, form.over))
    if form.of.axes == form.over.axes or (of and of == over):
        raise UserError(f"{place}: both sides are the same cell ({form.of.words}); let them differ in an axis")


def _cells(study: Study) -> list[dict[str, Any]]:
    """The study's grid on every device; of the CPU, claims mean all cores."""
    return [{axis: getattr(cell, axis) for axis in PINNABLE} for cell in replace(study, cpu_threads=()).cells(DEVICES)]


def _check_single(axes: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], free: Sequence[str], place: str) -> None:
    """A selection must leave one value of every axis, wherever it lies on the study's grid."""
    chosen = [cell for cell in cells if selects(axes, cell)]
    loose = [axis for axis in free if len({cell[axis] for cell in chosen}) > 1]
    if loose:
        raise UserError(f"{place}: {several_cells(axes, loose)}")

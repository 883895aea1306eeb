"""Check that a study measures what its claims compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from crossover.config.claim_forms import (
    MISTAKES,
    OURS,
    CrossoverBetween,
    RatioWithin,
    SameQuality,
    axes_words,
    selects,
    several_cells,
)
from crossover.config.studies import LATENCY_STEPS_MIN
from crossover.config.study import Study
from crossover.config.words import AXES, BASELINE, DEVICES, X_AXES
from crossover.errors import UserError, allowed_names

PINNABLE = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))
"""The axes that a claim may pin. Its study and workload are given, and it is tested on each machine separately."""

ON_GRID = tuple(axis for axis in PINNABLE if axis not in ("size", "device"))
"""Axes whose pinned values must be in the study. A size or device may be missing, since users may remove some."""


def check_claims_of(study: Study, file: str, studies: Sequence[str], read: Callable[[str], Study]) -> None:
    """Raise UserError for a claim that its study cannot test; the message names the key."""
    for number, claim in enumerate(study.claims):
        key = f"{file}: claims.{number}"
        if claim.source is None:
            raise UserError(f"{key}.source: missing; allowed: author, title and date, or '{OURS}'")
        values = asdict(getattr(claim, claim.form_name))
        if isinstance(claim.form, SameQuality):
            problems = _quality_problems(claim.form, values, study, studies, read)
        else:
            problems = _problems(claim.form, values, study)
        for text in problems:
            raise UserError(f"{key}.{claim.form_name}{text}")


def _problems(form: CrossoverBetween | RatioWithin, values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield the problems of a claim about cells, each as the end of a message that begins with the claim's key."""
    if not study.timed:
        yield ": the study times nothing; allowed: same_quality, or timed: true"
    yield from off_grid(values, study)
    cells = _cells(study)
    if isinstance(form, CrossoverBetween):
        along = X_AXES[study.x_axis]
        if along in form.where and along != "device":
            yield f".where.{along}: {form.where[along]!r} is not allowed; the crossover is over it; leave it out"
        yield from _several(form.where, cells, [axis for axis in PINNABLE if axis not in (along, "device")])
        return
    for side in (form.of, form.over):
        yield from _several(side.axes, cells, PINNABLE)
        if side.metric == "run_time_s" and study.steps_per_run is None:
            yield ": run_time_s needs the steps of the published run; set steps_per_run"
        if side.metric.startswith("latenc") and not study.latency_steps:
            yield f": {side.metric} needs latency_steps, which is 0; allowed: at least {LATENCY_STEPS_MIN}"
        if side.metric in MISTAKES and not study.latency_mistakes:
            yield f": {side.metric} needs latency_mistakes, which is false; set it to true"
    of, over = ([cell for cell in cells if selects(side.axes, cell)] for side in (form.of, form.over))
    if form.of.metric == form.over.metric and (form.of.axes == form.over.axes or (of and of == over)):
        pinned = axes_words(form.of.axes) or "the only one"
        yield f": both sides are the same cell ({pinned}); let them differ in an axis"


def _quality_problems(
    form: SameQuality, values: Mapping[str, Any], study: Study, studies: Sequence[str], read: Callable[[str], Study]
) -> Iterator[str]:
    if form.study is not None and form.study not in studies:
        yield f".study: '{form.study}' is unknown; {allowed_names(form.study, studies)}"
    trained = study if form.study in (None, study.name) else read(form.study or "")
    if trained.quality is None:
        yield f".study: '{trained.name}' trains no models; allowed: a study with quality"
    yield from off_grid(values, trained)
    selected = [cell for cell in _cells(replace(trained, timed=True)) if selects(form.where, cell)]
    if selected and all((cell["device"], cell["precision"]) == (BASELINE, "fp32") for cell in selected):
        yield (
            ".where: selects only the CPU in fp32, the baseline of the comparison; allowed: another device, or "
            f"another precision of {', '.join(trained.precisions)}"
        )


def off_grid(values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield a problem for each value of an axis in ON_GRID that is pinned but not measured by the study."""
    for part in ("where", "slow", "fast", "of", "over"):
        for axis, value in (values.get(part) or {}).items():
            if axis in ON_GRID and value not in (measured := getattr(study, f"{axis}s")):
                allowed = ", ".join(map(str, measured))
                yield f".{part}.{axis}: {value!r} is not measured by study '{study.name}'; allowed: {allowed}"


def _several(pinned: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> Iterator[str]:
    selected = [cell for cell in cells if selects(pinned, cell)]
    loose = [axis for axis in axes if len({cell[axis] for cell in selected}) > 1]
    if loose:
        yield f": {several_cells(pinned, loose)}"


def _cells(study: Study) -> list[dict[str, Any]]:
    return [{axis: getattr(cell, axis) for axis in PINNABLE} for cell in replace(study, cpu_threads=()).cells(DEVICES)]

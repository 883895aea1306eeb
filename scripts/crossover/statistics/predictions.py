"""Your size: the time to expect on each device, what was measured first, the cost model where nothing was."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.answers.naming import varying
from crossover.answers.prediction_words import said
from crossover.answers.sentences import line_words
from crossover.answers.wording import count_text, known_count_text, listed
from crossover.errors import UserError
from crossover.figures.style import device_label, number_text, percent_text, seconds_text
from crossover.statistics.cost_model import FLAT, CostModel
from crossover.statistics.cost_models import cost_model_of
from crossover.statistics.interpolation import Interpolation
from crossover.tables.frames import DEVICE_LINE_AXES, LINE_AXES, of_study, records, rows_with

LARGE_RESIDUAL = 0.25
"""A model that misses a measured size by more than this share is warned of."""

CLEAR = 2.0
"""Standard deviations of a ratio by which a device has to be ahead before it is said to be."""

FAR = 4.0
"""So many times outside of the measured sizes, or of the times at their ends, nobody is said to be ahead.

A model's exponent is not that well known, and where times grow steeply a little outside of the sizes is far.
"""

TOO_FAR = 100.0
"""So many times outside, no number is given: it would be a curve's, and no measurement's."""


@dataclass(frozen=True)
class Expectation:
    """The time of a step to expect on a device, in s, or why there is none."""

    label: str
    step_time_s: float | None
    spread: float | None
    """Standard deviation of one more trial about it, as a share; None: not known."""
    words: str
    """Where the time comes from, or why there is none."""
    warnings: tuple[str, ...] = ()
    outside: float = 1.0
    """By what factor the size lies outside of the measured ones, or its time of theirs, if that is more; 1 within."""
    miss: float = 0.0
    """By what share its model misses a measured size at the worst; 0 where the time was measured."""
    limited: bool = False
    """Whether it lies outside of the measured sizes, by a model whose exponent is at a limit."""
    too_far: bool = False
    """Whether it has no time because its size lies too far outside of those measured."""


def prediction_text(cells: pd.DataFrame, models: pd.DataFrame, study: str, size: int) -> str:
    """The times to expect of a study's steps and run at a size, line by line; the tables are those of a run.

    Raises UserError where the study was not measured, where the size is not above 0, and where nothing is known.
    """
    own_models = of_study(models, study)
    if own_models.empty:
        known = ", ".join(sorted(models["study"].unique())) or "none"
        raise UserError(f"--study: '{study}' is not among the studies of these results; allowed: {known}")
    if size <= 0:
        raise UserError(f"--size: {said('no_size', size=size, kind='size')}")
    own_cells = of_study(cells, study)
    several = varying(own_models, LINE_AXES)
    blocks, known_any = [], False
    for _, rows in own_models.groupby(LINE_AXES, sort=False):
        lines = records(rows)
        expected = [_expectation(_cells_of(own_cells, row), row, size) for row in lines]
        known_any |= any(one.step_time_s is not None or one.too_far for one in expected)
        blocks.append("\n".join([line_words(lines[0], several), *_block(expected, lines[0]["run_steps"])]))
    if not known_any:
        reasons = "; ".join(sorted(set(own_models["reason"].dropna())))
        raise UserError(said("nothing", study=study, size=size, reasons=reasons))
    return "\n\n".join([_heading(own_cells, study, size, str(own_models["size_name"].iloc[0])), *blocks])


def _cells_of(cells: pd.DataFrame, row: dict[str, Any]) -> list[dict[str, Any]]:
    return records(rows_with(cells, DEVICE_LINE_AXES, row))


def _heading(cells: pd.DataFrame, study: str, size: int, size_name: str) -> str:
    known = cells.dropna(subset=["parameters"])
    parameters = ""
    if len(known) and known["size"].min() <= size <= known["size"].max():
        count = Interpolation(known["size"], known["parameters"])(size) or 0
        if size in set(known["size"]):
            parameters = said("parameters", count=known_count_text(count))
        else:
            parameters = said("parameters_between", count=count_text(count))
    return said("heading", study=study, size=f"{size:,}", size_name=size_name, parameters=parameters)


def _expectation(cells: Sequence[dict[str, Any]], row: dict[str, Any], size: int) -> Expectation:
    label = device_label(row["device"], row["device_name"])
    for cell in cells:
        if cell["size"] == size:
            return _measured(label, cell, row["trial_spread"])
    model = cost_model_of(row)
    if model is None:
        return Expectation(label, None, None, said("no_model", reason=row["reason"]))
    if _too_far(model, size):
        low, high = f"{model.smallest_size:,.0f}", f"{model.largest_size:,.0f}"
        words = said("too_far", low=low, high=high, size_name=row["size_name"])
        return Expectation(label, None, None, words, too_far=True)
    template = "by_model" if model.trial_spread is not None else "by_model_of_single_trials"
    words = said(template, sizes=model.sizes)
    # How far the model is off beyond the measured sizes, its misses at these do not tell.
    within = model.beyond(size) == 1
    step_time_s = model.seconds(size)
    if not within:
        end = model.end(size)
        step_time_s *= _measured_s(cells, end) / model.seconds(end)
        words = said("from_end", words=words, end=f"{end:,.0f}")
    return Expectation(
        label,
        step_time_s,
        model.spread if within else None,
        words,
        tuple(_warnings(model, cells, size)),
        max(model.beyond(size), model.time_beyond(size)),
        model.largest_residual,
        model.limited and not within,
    )


def _too_far(model: CostModel, size: int) -> bool:
    """Whether no time is told of a size. Sizes come first: one of hundreds of digits is too large for a float."""
    inside = model.smallest_size / TOO_FAR <= size <= model.largest_size * TOO_FAR
    return not inside or model.time_beyond(size) > TOO_FAR


def _measured_s(cells: Sequence[dict[str, Any]], size: float) -> float:
    """The time of a step of the cell at a size, in s: a size that a model was fitted to has one."""
    return float(next(cell["step_time_s"] for cell in cells if cell["size"] == size))


def _measured(label: str, cell: dict[str, Any], spread: float | None) -> Expectation:
    if cell["step_time_s"] is None:
        template = "measured_without_time_why" if cell["reason"] else "measured_without_time"
        return Expectation(label, None, None, said(template, status=cell["status"], reason=cell["reason"]))
    flags = ", ".join(cell["flags"])
    warnings = (said("flagged", flags=flags),) if flags else ()
    words = said("measured_once")
    if cell["step_time_high_s"] is not None:
        low, high = (seconds_text(cell[f"step_time_{end}_s"]) for end in ("low", "high"))
        words = said("measured", low=low, high=high, trials=cell["trials"])
    return Expectation(label, cell["step_time_s"], spread, words, warnings)


def _warnings(model: CostModel, cells: Sequence[dict[str, Any]], size: int) -> Iterator[str]:
    beyond = model.beyond(size)
    if beyond > 1:
        template, end = ("above", model.largest_size) if size > model.largest_size else ("below", model.smallest_size)
        yield said(template, size=f"{size:,}", end=f"{end:,.0f}", factor=count_text(beyond, 3))
        if (steep := model.time_beyond(size)) > FAR >= beyond:
            yield said("steep", size=f"{size:,}", end=f"{end:,.0f}", factor=count_text(steep, 3))
        if model.limited:
            yield said("limited", exponent=number_text(model.c))
    if size > model.largest_size and model.growth < FLAT:
        yield said("flat")
    if model.largest_residual > LARGE_RESIDUAL:
        yield said("rough", largest=percent_text(model.largest_residual), rms=percent_text(model.rms_residual))
    lost = min((cell["size"] for cell in cells if cell["step_time_s"] is None and cell["size"] < size), default=None)
    if lost is not None:
        status = next(cell["status"] for cell in cells if cell["size"] == lost)
        yield said("lost", size=f"{lost:,}", status=status)


def _block(expected: Sequence[Expectation], run_steps: int | None) -> Iterator[str]:
    for one in expected:
        yield f"  {said('device', device=one.label, time=_time(one, run_steps), words=one.words)}"
    timed = sorted((one for one in expected if one.step_time_s is not None), key=lambda one: one.step_time_s or 0)
    if len(timed) > 1:
        yield f"  {_ahead(timed[0], timed[1])}"
    warned: dict[str, list[str]] = {}
    for one in expected:
        for warning in one.warnings:
            warned.setdefault(warning, []).append(one.label)
    for warning, labels in warned.items():
        yield f"  {said('warning', devices=listed(labels), warning=warning)}"


def _time(one: Expectation, run_steps: int | None) -> str:
    if one.step_time_s is None:
        return ""
    spread = said("spread", share=percent_text(one.spread)) if one.spread is not None else ""
    run = said("run", time=seconds_text(one.step_time_s * run_steps), steps=f"{run_steps:,}") if run_steps else ""
    return said("time", time=seconds_text(one.step_time_s), spread=spread, run=run)


def _ahead(first: Expectation, second: Expectation) -> str:
    """Which is ahead, and how sure that is; nobody where the models are asked for more than they can tell."""
    if max(first.outside, second.outside) > FAR:
        return said("ahead_far", far=f"{FAR:g}")
    if limited := [one.label for one in (first, second) if one.limited]:
        return said("ahead_limited", devices=listed(limited))
    ratio = (second.step_time_s or 0) / (first.step_time_s or 1)
    by = said("by", first=first.label, ratio=number_text(ratio), second=second.label)
    unsure = first.spread is None or second.spread is None
    both = CLEAR * math.hypot(math.log1p(first.spread or 0), math.log1p(second.spread or 0))
    if not unsure and math.log(ratio) <= both:
        return said("ahead_open", by=by)
    if math.log(ratio) <= math.log1p(first.miss) + math.log1p(second.miss):
        return said("ahead_rough", by=by)
    return said("ahead_unsure" if unsure else "ahead", by=by)

"""Answers on the plane of sizes and batch sizes: where each side is certified faster, and the simplest rule for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossover.compare.pairings import with_costs
from crossover.compare.plane import Plane, planes_of
from crossover.compare.rules import Fit, Rule, simplest_rule
from crossover.config.study import Study
from crossover.config.words import BASELINE
from crossover.tables.frames import rows_with
from crossover.tables.labels import name_by, side_word, varying
from crossover.tables.registry import SERIES_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import UNITS_OF, count_text, number_text, percent_text
from crossover.topics.answer import Answer
from crossover.topics.caveats import basis
from crossover.topics.wording import interval_text, position_text, range_text


@dataclass(frozen=True, kw_only=True)
class InPlane(Answer):
    """The regions of sizes and batch sizes in which a side is significantly faster throughout, and a rule for them."""

    kind = "plane"
    statuses = ("certified", "single_trial")

    winner: str
    loser: str
    unit: str
    """What the sizes count."""
    rule_unit: str
    """The first variable of the rule: `parameters` if the study's x axis is, else `unit`."""
    sizes: tuple[int, int]
    batch_sizes: tuple[int, int]
    batch_unit: str | None
    """What a second size of a function counts; None for samples in a batch."""
    arguments: Sequence[str]
    """The function's arguments for the sizes and the second sizes; empty for batch sizes."""
    winner_share: float
    """Of the area on logarithmic axes; so is `loser_share`."""
    loser_share: float
    contradictions: Sequence[int]
    """Number of points whose side differs from what the first grid certifies there, and of all that could differ."""
    triangles: Mapping[str, Sequence[Sequence[int]]]
    """The certified regions of `gpu` and `cpu`, as triangles: the size and the batch size of three corners."""
    axes: Mapping[str, Any]
    """The axes of the plane, and the contender's device."""
    rule: dict[str, Any] | None
    """The fields of `Fit`; None if one side is faster nearly everywhere, or if nothing is certified."""

    def sentence(self) -> str:
        batches = f"batches of {interval_text(self.batch_sizes, '')}"
        second = range_text(self.batch_sizes, self.batch_unit) if self.batch_unit else batches
        region = f"{range_text(self.sizes, self.unit)} and {second}"
        lead = "at least twice as fast" if self.status == "single_trial" else "certified faster"
        shares = f"on {percent_text(self.winner_share)}, {self.loser} on {percent_text(self.loser_share)}"
        return f"Of the plane of {region}, {self.winner} is {lead} {shares}{self._rule_text()}"

    def _rule_text(self) -> str:
        if self.rule is None:
            return ""
        return f". Rule: {self.winner} {rule_text(Rule(**self.rule['rule']), self.rule_unit, self.batch_unit)}"

    def details(self) -> list[str]:
        details = []
        differ, tested = self.contradictions
        if differ:
            then = "" if self.winner_share or self.loser_share else ", so nothing is certified"
            details.append(f"{differ} of {tested} points within regions of the first grid contradict these{then}")
        if self.rule is not None:
            fit = Fit(**self.rule)
            of = "" if fit.points == fit.measured else f", of {fit.measured} measured"
            held_out = f"{fit.held_out_wrong} when held out{_cost(fit.held_out_wrong, fit.held_out_worst)}"
            cost = _cost(fit.wrong, fit.worst)
            details.append(f"wrong at {fit.wrong} of {fit.points} significant points{of}{cost}; {held_out}")
        return details


def _cost(wrong: int, worst: float) -> str:
    return f", at most {number_text(worst)}x slower there" if wrong else ""


def rule_text(rule: Rule, unit: str, batch_unit: str | None = None) -> str:
    """Where the contender is to be used: `where parameters x batch is at least 1.94 million`."""
    if rule.by_batch is not None:
        names = [name_by({"batch_size": batch, "batch_name": batch_unit}, ["batch_size"]) for batch, _ in rule.by_batch]
        return ", ".join(f"{_from(size, unit)} at {name}" for name, (_, size) in zip(names, rule.by_batch, strict=True))
    if not rule.size_exponent or not rule.batch_exponent or not rule.least:
        return _from(rule.least, unit if rule.size_exponent else batch_unit or "samples per batch")
    sign, exponent = "x" if rule.batch_exponent > 0 else "/", abs(rule.batch_exponent)
    power = "" if exponent == 1 else f"^{count_text(exponent)}"
    first, second = (name.removeprefix(UNITS_OF) for name in (unit, batch_unit or "batch"))
    return f"where {first} {sign} {second}{power} is at least {count_text(rule.least)}"


def _from(least: float | None, unit: str) -> str:
    if least is None:
        return "never"
    whole = math.ceil(round(least, 6)) if least < 1000 else least  # sizes are whole numbers
    return f"from {position_text(whole, unit)}" if least else "always"


def plane_answers(tables: RunTables, study: Study, together: int) -> list[InPlane]:
    """The answers of a study over sizes and batch sizes, which are its main ones if it refines the plane."""
    if not study.has_plane:
        return []
    main = "plane" in (study.refinement or {}).get("pairs", ())
    varied_axes = [axis for axis in varying(tables.cells, SERIES_AXES) if axis not in ("batch_size", "device")]
    planes = planes_of(with_costs(tables.measurements, None), together)
    with_area = [plane for plane in planes if len(plane.triangles)]
    return [replace(_answer(plane, tables, study, varied_axes), main=main) for plane in with_area]


def _answer(plane: Plane, tables: RunTables, study: Study, varied_axes: Sequence[str]) -> InPlane:
    of_series = rows_with(tables.cells, list(plane.series), plane.series)
    cells = of_series[of_series["device"].isin([BASELINE, plane.contender])]
    points, unit = plane.points, str(cells["size_name"].iloc[0])
    model = study.user_model
    if study.x_axis == "parameters":
        parameters = cells.groupby("size")["parameters"].first()
        points = np.column_stack([parameters[points[:, 0].tolist()].to_numpy(np.int64), points[:, 1]])
    (low_size, low_batch), (high_size, high_batch) = (
        plane.points.min(axis=0).tolist(),
        plane.points.max(axis=0).tolist(),
    )
    timed = plane.timed
    is_certified = plane.has_intervals and bool(plane.share(1) or plane.share(-1))
    fit = simplest_rule(points[timed], plane.mean[timed], plane.signs[timed]) if is_certified else None
    corners = plane.points[plane.triangles].reshape(-1, 6)
    return InPlane(
        machine=str(plane.series["machine"]),
        series=name_by(plane.series, varied_axes),
        status="certified" if plane.has_intervals else "single_trial",
        winner=side_word(plane.contender),
        loser=side_word(BASELINE),
        unit=unit,
        rule_unit="parameters" if study.x_axis == "parameters" else unit,
        sizes=(low_size, high_size),
        batch_sizes=(low_batch, high_batch),
        batch_unit=model.batch_name if model else None,
        arguments=model.axes if model else (),
        winner_share=plane.share(1),
        loser_share=plane.share(-1),
        contradictions=plane.contradictions,
        triangles={name: corners[plane.sides == side].tolist() for name, side in (("gpu", 1), ("cpu", -1))},
        axes={**plane.series, "device": plane.contender},
        rule=None if fit is None else vars(fit) | {"rule": vars(fit.rule)},
        **basis(int(plane.trials[timed].min()), cells),
    )

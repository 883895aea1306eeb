"""Published statements in checkable form: a study's claims as values.

Both the configuration and the analysis read this module, so it imports neither torch nor pandas.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.config.studies import Study
from crossover.config.validation import allowed_names, did_you_mean
from crossover.config.words import AXES, BASELINE
from crossover.errors import UserError
from crossover.tables.columns import Measurement

FORMS = ("crossover_between", "speedup_between", "ratio_between", "ratio_below", "same_quality")
"""The forms that a claim can take; exactly one of them is a key of it."""

DERIVED_METRICS = ("samples_per_s", "run_time_s")
"""Metrics made of a trial's columns: batch size over step time, and step time times the steps of the published run."""

OURS = "ours"
"""The source of a statement of our own."""

PINNABLE = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))
"""The axes that a claim may pin; a study has one name and one workload, and each machine is held to it by itself."""


@dataclass(frozen=True)
class Side:
    """One cell, and what is read of its trials."""

    axes: Mapping[str, Any]
    metric: str

    @property
    def words(self) -> str:
        """The cell in words, 'device cuda, size 2000'."""
        return axes_words(self.axes)


@dataclass(frozen=True)
class CrossoverBetween:
    """The crossover lies in [low, high] on the study's x axis."""

    low: float
    high: float
    where: Mapping[str, Any]

    @property
    def claimed(self) -> str:
        """The claimed value in words."""
        return f"{short_number(self.low)} to {short_number(self.high)}"


@dataclass(frozen=True)
class RatioWithin:
    """The ratio of one side to another lies in [low, high]; without a low end, it lies below high."""

    of: Side
    over: Side
    low: float | None
    high: float

    @property
    def claimed(self) -> str:
        """The claimed value in words."""
        if self.low is None:
            return f"below {short_number(self.high)}"
        return f"{short_number(self.low)} to {short_number(self.high)}"


@dataclass(frozen=True)
class SameQuality:
    """A metric of the trained model differs nowhere by more than `within` from the CPU's in fp32."""

    metric: str
    within: float
    where: Mapping[str, Any]
    study: str | None = None
    """The study that trains the models, where it is another one than the claim's."""

    @property
    def claimed(self) -> str:
        """The claimed value in words."""
        return f"within ±{short_number(self.within)}"


@dataclass(frozen=True)
class Claim:
    """What a source says, and how to check it."""

    study: str
    statement: str
    source: str | None
    published: str
    """The value that the source gives, if any does, with what is tested where that is something else."""
    form_name: str
    """The key that gives the form, one of FORMS."""
    form: CrossoverBetween | RatioWithin | SameQuality


def read_claim(values: Mapping[str, Any], study: str, place: str) -> Claim:
    """A claim from the keys of a study's file; raises UserError that starts with `place`, its file and key."""
    named = [name for name in FORMS if values.get(name)]
    if len(named) != 1:
        found = ", ".join(named) if named else "none"
        raise UserError(f"{place}: {found} given; allowed: exactly one of {', '.join(FORMS)}")
    form = _read_form(named[0], values[named[0]], f"{place}.{named[0]}")
    published = values.get("published")
    if values.get("source") == OURS:
        if published is not None:
            raise UserError(f"{place}.published: {published!r} is not allowed; allowed: null, as the source is {OURS}")
        published = "none"
    text = published if isinstance(published, str | None) else short_number(published)
    return Claim(
        study,
        values["statement"],
        values.get("source"),
        form.claimed if text is None else f"{text} (tested: {form.claimed})",
        named[0],
        form,
    )


def claims_of(studies: Sequence[Study]) -> list[dict[str, Any]]:
    """All claims of the studies, each with its study and, unless it names another one, the study's source."""
    return [
        {**claim, "study": study.name, "source": claim.get("source") or (study.published or {}).get("source")}
        for study in studies
        for claim in study.claims
    ]


def selects(axes: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether a cell has the pinned values."""
    return all(cell[axis] == value for axis, value in axes.items())


def axes_words(axes: Mapping[str, Any]) -> str:
    """Pinned axes in words, 'device cuda, size 2000'."""
    return ", ".join(f"{axis} {value}" for axis, value in axes.items()) or "the only cell"


def short_number(value: float) -> str:
    """A number with three digits, and all of them before the decimal point: 0.00123, 4.77, 703,142."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def metrics() -> dict[str, bool]:
    """Every metric that a claim may name; True where a trial has a list of values, of which the mean counts."""
    found = dict.fromkeys(DERIVED_METRICS, False)
    for name, hint in typing.get_type_hints(Measurement).items():
        kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
        if name not in (*AXES, "schema_version", "trial", "seed") and kinds & {int, float, list[float]}:
            found[name] = list[float] in kinds
    return found


def _read_form(name: str, values: Mapping[str, Any], place: str) -> CrossoverBetween | RatioWithin | SameQuality:
    where = dict(values.get("where") or {})
    _check_axes(where, f"{place}.where")
    if name == "same_quality":
        return SameQuality(values["metric"], float(values["within"]), where, values.get("study"))
    low, high = (None, float(values["limit"])) if name == "ratio_below" else _read_range(values["range"], place)
    if name == "crossover_between":
        assert low is not None
        for axis, value in where.items():
            if axis == "size" or (axis == "device" and value == BASELINE):
                raise UserError(
                    f"{place}.where.{axis}: {value!r} is not allowed; a crossover is read over the sizes and "
                    f"compares with the {BASELINE}; allowed: other axes, or an accelerator"
                )
        return CrossoverBetween(low, high, where)
    keys = ("slow", "fast") if name == "speedup_between" else ("of", "over")
    of, over = (_read_side(name, values, key, where, place) for key in keys)
    return RatioWithin(of, over, low, high)


def _read_side(form: str, values: Mapping[str, Any], key: str, where: Mapping[str, Any], place: str) -> Side:
    own = dict(values[key])
    metric = own.pop("metric", None)
    shared = "step_time_s" if form == "speedup_between" else values.get("metric")
    if (metric is None) == (shared is None):
        raise UserError(f"{place}: name one metric for '{key}', either beside it or inside of it")
    name = str(metric or shared)
    if name not in metrics():
        raise UserError(
            f"{place}: metric '{name}' is unknown{did_you_mean(name, list(metrics()), 3)}; allowed: "
            f"{', '.join(DERIVED_METRICS)}, and the numbers of measurements.parquet, which results/README.md describes"
        )
    _check_axes(own, f"{place}.{key}")
    twice = sorted(own.keys() & where.keys())
    if twice:
        raise UserError(f"{place}.{key}: {', '.join(twice)} pinned in 'where' as well; allowed: one of both places")
    return Side({**where, **own}, name)


def _read_range(values: Sequence[float], place: str) -> tuple[float, float]:
    low, high = values
    if low > high:
        raise UserError(f"{place}.range: [{low:g}, {high:g}] is reversed; allowed: lowest, highest")
    return float(low), float(high)


def _check_axes(axes: Mapping[str, Any], place: str) -> None:
    for axis in axes:
        if axis not in PINNABLE:
            raise UserError(f"{place}: {axis}: unknown axis; {allowed_names(axis, PINNABLE)}")


def several_cells(axes: Mapping[str, Any], loose: Sequence[str]) -> str:
    """What is wrong with a selection that leaves several cells, and what to do."""
    chosen = axes_words(axes) if axes else "no axis pinned"
    return f"the selection ({chosen}) leaves cells that differ in {', '.join(loose)}; pin {', '.join(loose)} in 'where'"

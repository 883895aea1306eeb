"""The claims of a study: their keys, and the form in which each is tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from crossover.config.key_types import (
    KEYS,
    MOST_PUBLISHED,
    Count,
    Device,
    Execution,
    OneOf,
    PartOf,
    Positive,
    Precision,
    Protocol,
    Range,
    Text,
    problem,
)
from crossover.config.words import BASELINE

FORMS = ("crossover_between", "speedup_between", "ratio_between", "ratio_below", "payback_between", "same_quality")
"""Keys of a claim's form; each claim has exactly one of them."""

DERIVED_METRICS = ("samples_per_s", "run_time_s")
"""Metrics computed from a trial's columns: samples per second, and the step time × the steps of the published run."""

MISTAKES = tuple(f"latencies_{mistake}_s" for mistake in ("cold", "unsynchronised", "transfer"))
"""Metrics measured only in a study with `latency_mistakes`."""

OURS = "ours"
"""The `source` of our own statements."""

TESTED = "tested: "


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Axes:
    protocol: Protocol = Field(default="", description="What a step includes.")
    batch_size: Count = Field(default=1, description="Samples in a step.")
    precision: Precision = Field(default="", description="Arithmetic.")
    execution: Execution = Field(default="", description="How the step runs.")
    size: Count = Field(default=1, description="Point on the workload's size axis.")
    variant: Text = Field(default="", description="Option of the workload.")
    device: Device = Field(default="", description="Kind of device.")


@dataclass(frozen=True, kw_only=True, config=KEYS)
class AxesAndMetric(Axes):
    metric: Text = Field(
        default="",
        description="Numeric column of measurements.parquet (lists are averaged), samples_per_s or run_time_s.",
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class TrainedAxes:
    precision: Precision = Field(default="", description="Arithmetic of the training.")
    device: Device = Field(default="", description="Kind of device.")


AxisValues = Annotated[Mapping[str, Any], PartOf(Axes)]
SideValues = Annotated[Mapping[str, Any], PartOf(AxesAndMetric)]

WHERE = "Values of the axes that both sides share, as many as needed to select one cell (for a crossover, one series)."
RANGE = "Lowest and highest claimed value."
SIDE = "Values of this side's axes, and `metric` if the sides' metrics differ."


@plain_dataclass(frozen=True)
class Side:
    """One side of a ratio: the values of axes that select a cell, and a metric."""

    axes: Mapping[str, Any]
    metric: str


@plain_dataclass(frozen=True)
class RatioWithin:
    """The ratio `of` / `over` lies in [low, high]; if `low` is None, below `high`."""

    of: Side
    over: Side
    low: float | None
    high: float

    @property
    def limits(self) -> Sequence[float]:
        """The ratios of which the verdict tells on which side the measured one is."""
        return [limit for limit in (self.low, self.high) if limit]


@plain_dataclass(frozen=True)
class PaybackWithin(RatioWithin):
    """`of` has the faster step, and has made up for its start-up after a number of steps in [low, high]."""

    @property
    def limits(self) -> Sequence[float]:
        return [1.0]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class CrossoverBetween:
    """The crossover lies in [low, high] on the study's x axis."""

    range: Range = Field(description=RANGE)
    where: AxisValues = Field(default_factory=dict, description=WHERE)

    @property
    def low(self) -> float:
        return self.range[0]

    @property
    def high(self) -> float:
        return self.range[1]

    @model_validator(mode="after")
    def _with_an_accelerator(self) -> CrossoverBetween:
        if self.where.get("device") == BASELINE:
            raise problem(
                f"where.device: '{BASELINE}' is not allowed; a crossover is between the {BASELINE} and an accelerator; "
                "allowed: an accelerator"
            )
        return self


class Ratio:
    """A form that compares two sides; `ratio` raises an error if they are not well defined."""

    @property
    def ratio(self) -> RatioWithin:
        raise NotImplementedError

    @model_validator(mode="after")
    def _has_sides(self) -> Ratio:
        _ = self.ratio
        return self


@dataclass(frozen=True, kw_only=True, config=KEYS)
class SpeedupBetween(Ratio):
    slow: AxisValues = Field(description="Values of this side's axes.")
    fast: AxisValues = Field(description="Values of this side's axes.")
    where: AxisValues = Field(default_factory=dict, description=WHERE)
    range: Range = Field(description=RANGE)

    @property
    def ratio(self) -> RatioWithin:
        of, over = (_side(name, getattr(self, name), "step_time_s", self.where) for name in ("slow", "fast"))
        return RatioWithin(of, over, *self.range)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class RatioOfMetrics(Ratio):
    metric: Text | None = Field(default=None, description="The metric of both sides.")
    of: SideValues = Field(description=SIDE)
    over: SideValues = Field(description=SIDE)
    where: AxisValues = Field(default_factory=dict, description=WHERE)

    def within(self, low: float | None, high: float) -> RatioWithin:
        of, over = (_side(name, getattr(self, name), self.metric, self.where) for name in ("of", "over"))
        return RatioWithin(of, over, low, high)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class RatioBetween(RatioOfMetrics):
    range: Range = Field(description=RANGE)

    @property
    def ratio(self) -> RatioWithin:
        return self.within(*self.range)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class RatioBelow(RatioOfMetrics):
    limit: Positive = Field(description="The ratio lies below this value.")

    @property
    def ratio(self) -> RatioWithin:
        return self.within(None, self.limit)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class PaybackBetween(Ratio):
    of: AxisValues = Field(description="Values of the axes of the side that is to pay off.")
    over: AxisValues = Field(description=SIDE.partition(",")[0] + ".")
    where: AxisValues = Field(default_factory=dict, description=WHERE)
    range: Range = Field(description="Lowest and highest claimed number of steps.")

    @property
    def ratio(self) -> PaybackWithin:
        of, over = (_side(name, getattr(self, name), "step_time_s", self.where) for name in ("of", "over"))
        return PaybackWithin(of, over, *self.range)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class SameQuality:
    """For each cell that `where` selects, a metric differs by at most `within` from that of the CPU in fp32."""

    metric: Annotated[str, OneOf(("accuracy", "macro_f1", "weighted_f1"))] = Field(
        description="Measure of quality on the held-out rows."
    )
    within: Positive = Field(description="Largest difference that counts as the same.")
    study: Text | None = Field(default=None, description="Study that trains the models; null for the claim's own.")
    where: Annotated[Mapping[str, Any], PartOf(TrainedAxes)] = Field(
        default_factory=dict, description="Restricts the claim to a device or precision; by default all."
    )


Form = CrossoverBetween | RatioWithin | SameQuality


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Claim:
    """A statement with its source and the form in which it is tested."""

    statement: Text = Field(description="The statement, in a clause.")
    source: Text | None = Field(
        default=None,
        description="Author, title and date of the source, or `ours` for our own statements; null takes "
        "`published.source`.",
    )
    published: Annotated[float, Field(strict=True, ge=0, le=MOST_PUBLISHED)] | Text | None = Field(
        default=None,
        description="The published value; null if the source gives none, so that only the tested range is shown.",
    )
    crossover_between: CrossoverBetween | None = Field(
        default=None, description="The accelerator overtakes the CPU between two values on the study's x axis."
    )
    speedup_between: SpeedupBetween | None = Field(
        default=None, description="The ratio of two cells' step times, `slow` over `fast`, lies between two values."
    )
    ratio_between: RatioBetween | None = Field(
        default=None, description="A ratio of two cells, or of two columns of one cell, lies between two values."
    )
    ratio_below: RatioBelow | None = Field(
        default=None, description="A ratio of two cells, or of two columns of one cell, lies below a value."
    )
    payback_between: PaybackBetween | None = Field(
        default=None,
        description="A cell with a faster step and a longer start-up is ahead of another after a number of steps "
        "between two values.",
    )
    same_quality: SameQuality | None = Field(
        default=None,
        description="The trained model is as good on every device and in every precision as on the CPU in fp32.",
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Claim:
        names = [name for name in FORMS if getattr(self, name)]
        if len(names) != 1:
            raise problem(f"{', '.join(names) or 'none'} given; allowed: exactly one of {', '.join(FORMS)}")
        if self.source == OURS and self.published is not None:
            raise problem(f"published: {self.published} is not allowed; allowed: null, as the source is {OURS}")
        return self

    @property
    def form_name(self) -> str:
        return next(name for name in FORMS if getattr(self, name))

    @property
    def form(self) -> Form:
        form = getattr(self, self.form_name)
        return form.ratio if isinstance(form, Ratio) else form

    @property
    def shown(self) -> str:
        """The published value, if the claim has one, and the tested range; starts with TESTED if not."""
        tested = f"{TESTED}{_claimed(self.form)}"
        text = self.published if isinstance(self.published, str | None) else short_number(self.published)
        return tested if text is None else f"{text} ({tested})"


def _claimed(form: Form) -> str:
    if isinstance(form, SameQuality):
        return f"within ±{short_number(form.within)}"
    if form.low is None:
        return f"below {short_number(form.high)}"
    return f"{short_number(form.low)} to {short_number(form.high)}"


def selects(axes: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether a cell has these values of its axes."""
    return all(cell[axis] == value for axis, value in axes.items())


def axes_words(axes: Mapping[str, Any]) -> str:
    """Pinned axes in words: "device cuda, size 2000"."""
    return ", ".join(f"{axis} {value}" for axis, value in axes.items())


def several_cells(axes: Mapping[str, Any], loose: Sequence[str]) -> str:
    """The message for a selection that matches several cells."""
    pinned = axes_words(axes) or "no axis pinned"
    return f"the selection ({pinned}) leaves cells that differ in {', '.join(loose)}; pin {', '.join(loose)} in 'where'"


def short_number(value: float) -> str:
    """Format a number with up to three significant digits or, if large, as a whole number: 0.00123, 4.77, 703,142."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _side(name: str, values: Mapping[str, Any], shared_metric: str | None, where: Mapping[str, Any]) -> Side:
    axes = dict(values)
    metric = axes.pop("metric", None)
    if (metric is None) == (shared_metric is None):
        raise problem(f"{name}: give one metric, either for each side or for both")
    if repeated := sorted(axes.keys() & where.keys()):
        raise problem(f"{name}: {', '.join(repeated)} pinned in 'where' as well; pin each once")
    return Side({**where, **axes}, str(metric or shared_metric))

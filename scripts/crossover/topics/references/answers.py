"""Answers with machines measured elsewhere: estimated crossovers, speed-ups, limits, and like devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any, Self

import pandas as pd

from crossover.compare.cells import cell_key
from crossover.compare.crossover import ESTIMATED
from crossover.compare.intervals import INCONCLUSIVE, SampleMean
from crossover.compare.pairings import REFERENCE
from crossover.config.study import Study
from crossover.config.words import BASELINE, is_cpu, series_axes
from crossover.tables.frames import first_row, records, with_x
from crossover.tables.labels import axis_label, machine_side, name_by, product_family, short_name, varying, with_article
from crossover.tables.reference_files import facts_of
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import number_text, share_text
from crossover.topics.answer import Answer, Comparison
from crossover.topics.bottlenecks.bounds import HIGHEST_TOLD, LAUNCH
from crossover.topics.bottlenecks.bounds import PAIR as BOUND
from crossover.topics.caveats import basis, compared_ratio, flags_of
from crossover.topics.crossovers.answers import CROSSED, IS, LEADS, WOULD, Crossover, Ends
from crossover.topics.crossovers.sides import caveats_of_series, crossover_fields, reach_of
from crossover.topics.references.table import MOST_SLOWDOWN
from crossover.topics.wording import capitalised, interval_text, point_of, position_text, range_text, span_text

THIS_CPU = "this CPU"
"""The side with which GPUs measured elsewhere are compared."""


@dataclass(frozen=True, kw_only=True)
class Reference(Crossover):
    """The crossover with this CPU that is predicted for a GPU measured elsewhere."""

    kind = "reference"
    in_sentence = (*Crossover.in_sentence, "reason", "open_ends")
    cross = "would cross"

    measured_on: str
    host_slowdown: float | None = None
    """Time of small steps on this CPU over that on the GPU's own."""
    host_share: float | None = None
    """The host's share of a predicted step at the crossover."""

    @property
    def known_ends(self) -> Ends:
        """The ends of the interval or, without one, of the bracket; None for an open end.

        An interval is open where it reaches the end of the measured range.
        """
        if self.crossover_low is None and self.crossover_high is None:
            return self.ends
        low = None if self.crossover_low == self.smallest else self.crossover_low
        high = None if self.crossover_high == self.largest else self.crossover_high
        return low, high

    @property
    def open_ends(self) -> tuple[bool, bool]:
        low, high = self.known_ends
        return low is None, high is None

    @property
    def has_interval(self) -> bool:
        return self.crossover_low is not None or self.crossover_high is not None

    @property
    def is_one_sided(self) -> bool:
        """Whether it names a side that is ahead at the 95 % level, without an interval."""
        if self.status == "edge_tie" and self.reach is None:
            return False
        if self.status in CROSSED:
            return self.has_interval and self.known_ends.count(None) == 1
        return self.status in ("below_range", "above_range", "edge_tie") and self.trials != 1

    @property
    def gpu(self) -> str:
        return self.loser if self.winner == THIS_CPU else self.winner

    def sentence(self) -> str:
        return capitalised(self._estimate([self.crossover] if self.crossover is not None else []))

    def _estimate(self, crossovers: Sequence[float]) -> str:
        faster = f"{self.gpu} {WOULD.get(self.cost, '')}"
        untold = f"this run cannot tell whether {faster} than {THIS_CPU}"
        low, high = self.known_ends
        if self.status in CROSSED:
            below, above = (THIS_CPU, self.gpu) if self.status == "bracketed" else (self.gpu, THIS_CPU)
            if low is not None and high is not None:
                interval = f" ({interval_text([low, high], self.unit)})" if len(crossovers) == 1 else ""
                return f"{faster} {self._direction()} about {range_text(crossovers, self.unit)}{interval}"
            if high is not None:
                return self._lead_from(above, high)
            return untold if low is None else self._lead_up_to(below, low)
        if self.status in LEADS:
            return self._lead(self.winner, f"at {self.everywhere()}")
        if self.status == "edge_tie" and self.reach is not None:
            lead = self._lead_from if low is None else self._lead_up_to
            return lead(self.winner, self.reach)
        return untold if self.status in ("edge_tie", "undecided") else self.crossing()

    def _lead(self, side: str, where: str, open_side: str = "") -> str:
        """A side's lead over part of the points; on the other side of its end, the estimate is open."""
        untold = f"; {open_side}, this run cannot tell" if open_side else ""
        return f"{self._is_ahead(side)} {where}{self._speedups()}{untold}"

    def _ahead(self) -> str:
        return self._is_ahead(self.winner)

    def _is_ahead(self, side: str) -> str:
        verb = (IS if side == THIS_CPU else WOULD)[self.cost]
        return f"{side} {verb} than {self.loser if side == self.winner else self.winner}"

    def _lead_up_to(self, side: str, end: float) -> str:
        return self._lead(side, f"{'at' if end == self.smallest else 'up to'} {position_text(end, self.unit)}", "above")

    def _lead_from(self, side: str, end: float) -> str:
        place = position_text(end, self.unit)
        return self._lead(side, f"at {place}" if end == self.largest else f"from {place} up", "below")

    def summary_of(self, alike: Sequence[Self]) -> str:
        """What holds for each estimate, and for the one that says most."""
        weakest, strongest = _weakest(alike)
        run = f"{self.in_cost()}: " if self.cost == "run" else ""
        text = run + capitalised(weakest._estimate([one.crossover for one in alike if one.crossover is not None]))
        low, high = weakest.crossover_low, weakest.crossover_high
        if strongest is not None:
            end = f"{'from' if low is None else 'up to'} {position_text(strongest, self.unit)}"
            return f"{text}; in one series, {end}"
        if low is not None and high is not None and self.status in CROSSED and len(alike) > 1:
            return f"{text}, by series (intervals within {range_text([low, high], self.unit)})"
        return text

    def interval(self) -> list[str]:
        """Nothing, since the sentence has it, or the confidence in a side that leads without one."""
        return ["95 % confidence"] if self.is_one_sided else []

    def basis(self) -> str:
        """What the estimate is based on."""
        source = f"Estimated from its steps elsewhere ({self.measured_on})"
        interval = "; 95 % interval" if self.has_interval and None not in self.known_ends else ""
        if self.host_slowdown is None:
            return source + interval
        times, how = max(self.host_slowdown, 1 / self.host_slowdown), "slower" if self.host_slowdown >= 1 else "faster"
        share = f", {share_text(self.host_share)} of a step here," if self.host_share else ""
        return f"{source}: the host's work{share} is {number_text(times)}x {how}{' here' * (not share)}{interval}"


SPANNED: dict[str, Any] = {"smallest": min, "largest": max, "ratio_low": min, "ratio_high": max}


def _weakest(estimates: Sequence[Reference]) -> tuple[Reference, float | None]:
    """What each of several estimates allows: the shortest lead, or an interval that covers all of theirs.

    The second value is the end of the longest lead, if that differs.
    """
    lows, highs = zip(*(estimate.known_ends for estimate in estimates), strict=True)
    columns = {name: [getattr(estimate, name) for estimate in estimates] for name in (*SPANNED, "reach")}
    is_up_to, has_reach = lows[0] is not None, columns["reach"][0] is not None
    shortest, longest = (min, max) if is_up_to else (max, min)
    ends = columns["reach"] if has_reach else lows if is_up_to else highs
    is_lead = estimates[0].status in ESTIMATED and (has_reach or is_up_to != (highs[0] is not None))
    spanned: dict[str, Any] = {name: span(columns[name]) for name, span in SPANNED.items() if None not in columns[name]}
    weakest = replace(
        estimates[0],
        **spanned,
        reach=shortest(columns["reach"]) if has_reach else None,
        crossover_low=min(lows) if is_up_to else None,
        crossover_high=max(highs) if highs[0] is not None else None,
        bracket_low=None,
        bracket_high=None,
    )
    return weakest, longest(ends) if is_lead and longest(ends) != shortest(ends) else None


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Comparison):
    """How fast a GPU measured elsewhere is predicted to be beside this CPU, at the largest point of a series."""

    kind = "elsewhere"

    x: float
    unit: str
    measured_on: str

    def sentence(self) -> str:
        return self._as_fast([self], f" at {position_text(self.x, self.unit)}")

    def summary_of(self, alike: Sequence[Self]) -> str:
        return self._as_fast(alike, f" at the largest {point_of(self.unit)}")

    def _as_fast(self, alike: Sequence[Self], where: str) -> str:
        if self.status == INCONCLUSIVE:
            return capitalised(self.in_time(alike, where=where))
        verb = "is" if self.winner == THIS_CPU else "would be"
        return f"{capitalised(self.winner)} {verb} {self.ratios_text(alike)}x as fast as {self.loser}{where}"

    def details(self) -> list[str]:
        return [*super().details(), f"estimated from its times elsewhere, {self.measured_on}"]


@dataclass(frozen=True, kw_only=True)
class SetUp(Answer):
    """How much slower a device is here than the same kind of device of a reference: the geometric mean over sizes."""

    kind = "set_up"

    name_there: str
    ratio: float
    lowest: float
    highest: float
    measured_on: str

    def sentence(self) -> str:
        here, there = "CPU" if self.device == BASELINE else "GPU", f"{self.name_there} of {self.machine}"
        times = f"{number_text(self.ratio)} times as long on this {here} as on {there}"
        return f"A step takes {times} (measured elsewhere on {self.measured_on})"

    def details(self) -> list[str]:
        return [f"{span_text([self.lowest, self.highest], number_text)} times at single sizes"]


@dataclass(frozen=True, kw_only=True)
class Bound(Answer):
    """The highest speed-up over this CPU that the roofs of a GPU measured elsewhere allow, at a point of a series."""

    kind = "bound"
    in_sentence = ("gpu", "is_launch_bound")

    gpu: str
    ratio: float
    x: float
    unit: str
    launch_bound_up_to: float | None
    """The point up to which one kernel of a CUDA graph takes longer than the work of a step."""

    @property
    def is_launch_bound(self) -> bool:
        return self.launch_bound_up_to is not None

    def sentence(self) -> str:
        speed = f"at most {number_text(self.ratio)}x as fast as this CPU at {position_text(self.x, self.unit)}"
        if self.launch_bound_up_to is None:
            return f"The {self.gpu} would be {speed}"
        short = f"up to {position_text(self.launch_bound_up_to, self.unit)}, the work of a step takes less time there"
        return f"The {self.gpu} would be {speed}; {short} than one kernel of a CUDA graph"

    def summary_of(self, alike: Sequence[Self]) -> str:
        ratios = span_text([answer.ratio for answer in alike], number_text)
        return f"a GPU measured elsewhere would be at most {ratios}x as fast as this CPU"

    def details(self) -> list[str]:
        return ["a limit by the rates measured there, not an estimate: a step launches many kernels"]


@dataclass(frozen=True, kw_only=True)
class NoEstimate(Answer):
    """No GPU measured elsewhere has timed the model, and no limit is worth telling; or this CPU is too slow for one."""

    kind = "no_estimate"
    statuses = ("no_data", "too_slow")

    status: str = "no_data"

    def sentence(self) -> str:
        if self.status == "too_slow":
            return (
                f"No estimate for a GPU: steps take over {MOST_SLOWDOWN:g} times as long on this CPU as on "
                "those beside the GPUs measured elsewhere, as if other programs took it; measure again without them"
            )
        return "No estimate for a GPU: no reference of this run has these steps"


def reference_answers(tables: RunTables, x_axis: str) -> list[Reference]:
    """Answers on crossovers of each reference's GPU with this CPU."""
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    crossovers = tables.crossovers[tables.crossovers["pair"] == REFERENCE]
    return [_reference_answer(row, tables, varied_axes) for row in records(crossovers)]


def _reference_answer(row: dict[str, Any], tables: RunTables, varied_axes: Sequence[str]) -> Reference:
    gpu = with_article(product_family(row["contender_name"]))
    columns = crossover_fields(row, gpu, THIS_CPU)
    about = {
        **columns,
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "series": name_by(row, varied_axes),
        "measured_on": facts_of(tables.reference_cells)[row["machine"]].measured_on,
        "host_slowdown": row["host_slowdown"],
        "host_share": row["host_share"],
        **reach_of(row, tables, gpu, THIS_CPU),
    }
    return Reference(**about)


def set_up_answers(tables: RunTables, x_axis: str) -> list[SetUp]:
    """For each series and device, how much slower the device is here than the same kind of device of a reference."""
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] == tables.ratios["machine"])
    ]
    answers = []
    for _, line in ratios.groupby([*series_axes(x_axis), "device"], sort=False):
        first = first_row(line)
        facts = facts_of(tables.reference_cells)[first["machine"]]
        name = facts.cpu_model if is_cpu(first["device"]) else facts.device_name
        here = first | {"machine": first["baseline_machine"]}
        answers.append(
            SetUp(
                machine=first["machine"],
                series=name_by(first, varied_axes),
                ratio=geometric_mean(line["ratio"].astype(float)),
                lowest=line["ratio"].min(),
                highest=line["ratio"].max(),
                device=first["device"],
                name_there=short_name(name),
                trials=int(line["trials"].min()),
                measured_on=facts.measured_on,
                caveats=flags_of(tables.rows_with("cells", [*series_axes(x_axis), "device"], here)),
            )
        )
    return answers


def elsewhere_answers(tables: RunTables, x_axis: str, together: int) -> list[Elsewhere]:
    """How fast each product is predicted to be over this CPU, at the largest point of each series.

    The intervals are corrected for `together` comparisons.
    """
    facts = facts_of(tables.reference_cells)
    varied_axes = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    answers = []
    for row, ratio in elsewhere_ratios(tables, x_axis):
        gpu, is_ahead = with_article(product_family(facts[row["machine"]].device_name)), ratio.mean >= 0
        interval = ratio.exp_interval(together)
        answers.append(
            Elsewhere(
                machine=row["machine"],
                **compared_ratio(interval if is_ahead else interval.inverted()),
                series=name_by(row, varied_axes),
                unit=axis_label(first_row(tables.cells) | {"x_axis": x_axis}),
                winner=gpu if is_ahead else THIS_CPU,
                loser=THIS_CPU if is_ahead else gpu,
                x=row["x"],
                measured_on=facts[row["machine"]].measured_on,
                **basis(row["trials"], _cells_of_both(row, tables)),
            )
        )
    return answers


def elsewhere_ratios(tables: RunTables, x_axis: str) -> Iterator[tuple[dict[str, Any], SampleMean]]:
    """For each series and product measured elsewhere: its row of table `ratios` at the largest point, and ln(ratio)."""
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] != tables.ratios["machine"])
    ]
    products = {name: product_family(facts.device_name) for name, facts in facts_of(tables.reference_cells).items()}
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    for _, line in with_x(ratios, x_axis).groupby([*axes, ratios["machine"].map(products)], sort=False):
        row = first_row(line.sort_values("x", kind="stable").tail(1))
        there, here = (tables.means[cell_key(cell)]["time"] for cell in records(_cells_of_both(row, tables)[CELL_AXES]))
        yield row, replace(here - there, mean=math.log(row["ratio"])).widened(row["deviation"])


def _cells_of_both(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The two cells of a ratio with a reference: that of its GPU there, and that of the CPU here."""
    there = tables.rows_with("reference_cells", CELL_AXES, {**row, "device": row["contender"]})
    side_here = {**row, "machine": row["baseline_machine"], "device": row["baseline"]}
    return pd.concat([there, tables.rows_with("cells", CELL_AXES, side_here)], ignore_index=True)


def no_estimate_answers(tables: RunTables, study: Study) -> list[NoEstimate]:
    """An answer if no GPU is predicted for the model.

    Either this CPU is too slow, or no reference measured the model, which is the user's or has limits by their roofs.
    """
    beside, there = tables.ratios[tables.ratios["pair"] == REFERENCE], tables.reference_cells
    if len(beside) and (beside["contender"] == beside["machine"]).all() and not there["device"].map(is_cpu).all():
        return [NoEstimate(status="too_slow")]
    has_limits = (tables.ratios["pair"] == BOUND).any()
    is_unknown = tables.reference_cells.empty and bool(study.user_model or has_limits)
    return [NoEstimate()] if is_unknown and study.may_use_accelerator else []


def bound_answers(tables: RunTables, x_axis: str) -> list[Bound]:
    """The highest speed-up that a reference's roofs allow if the model was not measured on such a GPU.

    There is one answer per series, at the largest point, for the reference with the highest limit there; none if the
    limit is above HIGHEST_TOLD, or by the launch of a kernel, of which a step has many.
    """
    ratios = tables.ratios[tables.ratios["pair"] == BOUND]
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    varied_axes = varying(tables.cells, axes)
    answers = []
    for _, line in with_x(ratios, x_axis).groupby(axes, sort=False):
        largest = line[line["x"] == line["x"].max()]
        bound = first_row(largest.sort_values("ratio").tail(1))
        if bound["ratio"] > HIGHEST_TOLD or bound["contender"] == LAUNCH:
            continue
        side_here = bound | {"machine": bound["baseline_machine"], "device": bound["baseline"]}
        timed = tables.rows_with("cells", [*axes, "machine", "device"], side_here)
        launches = line[(line["machine"] == bound["machine"]) & (line["contender"] == LAUNCH)]
        answers.append(
            Bound(
                machine=bound["machine"],
                series=name_by(bound, varied_axes),
                ratio=bound["ratio"],
                x=bound["x"],
                unit=axis_label(first_row(tables.cells) | {"x_axis": x_axis}),
                launch_bound_up_to=launches["x"].max() if len(launches) else None,
                gpu=machine_side(bound["device"], bound["machine"]),
                **basis(bound["trials"], timed),
            )
        )
    return answers

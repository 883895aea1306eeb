"""Answers on where one side overtakes another: here, with a GPU measured elsewhere, or in their fastest settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from crossover.answers.answer import Answer
from crossover.answers.wording import (
    MOST_POINTS,
    amount_text,
    capitalised,
    ends_text,
    interval_text,
    places_text,
    point_of,
    points_text,
    position_text,
    range_text,
    span_text,
)
from crossover.statistics.crossover import DISAGREE, ESTIMATED
from crossover.tables.registry import CROSSOVER_STATUSES
from crossover.text import number_text

THIS_CPU = "this CPU"
"""The side with which GPUs measured elsewhere are compared."""

CROSSED = ("bracketed", "reversed")
LEADS = ("below_range", "above_range")

Ends = tuple[float | None, float | None]

BETTER = {"time": "faster", "energy": "takes less energy", "money": "cheaper", "run": "faster"}
IS = {"time": "is faster", "energy": "takes less energy", "money": "is cheaper"}
WOULD = {"time": "would be faster", "energy": "would take less energy", "money": "would be cheaper"}
SIGNS = {"energy": ("more", "less"), "money": ("dearer", "cheaper")}

INCOMPLETE = {
    "no_common_size": "no size has a result on both sides",
    "lost_between": "a size near the crossover has no result on one side",
    "lost_beyond": "a size beyond those measured on both sides has no result on one of them",
    "may_cross_back": "they may cross twice, which the trials do not resolve",
    "baseline_unknown": "the second side has no measured energy, or no price",
    "contender_unknown": "the first side has no measured energy, or no price",
}

SUMMED = {
    "edge_tie": "no significant difference at an end of the measured sizes",
    "multiple": "several crossings",
    "undecided": "no significant difference",
    "incomplete": "no comparison, a cell is missing",
    "no_accelerator": "no GPU measured",
}
"""What several answers of a status have in common."""


@dataclass(frozen=True, kw_only=True)
class Crossover(Answer):
    """The point on an axis from which one side is ahead of another in a cost, or that one of them leads throughout."""

    kind = "crossover"
    statuses = tuple(CROSSOVER_STATUSES)
    differences = ("bracketed", "reversed", "multiple", "below_range", "above_range", "edge_tie")
    in_sentence: ClassVar[Sequence[str]] = ("cost", "winner", "loser", "has_lead")

    winner: str
    loser: str
    cost: str
    """By which sides are compared: one of COSTS."""
    unit: str
    """Of the x axis, on which all following positions are."""
    crossover: float | None
    crossover_low: float | None
    crossover_high: float | None
    bracket_low: float | None
    bracket_high: float | None
    sure_low: float | None
    """The largest measured point below the crossover at which a side is significantly faster."""
    sure_high: float | None
    """The smallest such point above the crossover."""
    roots: Sequence[float]
    """All crossings."""
    caveat_at: Sequence[float]
    """The points that the caveat or reason of the crossover is about."""
    reason: str | None
    """Why it is not decided."""
    smallest: float | None = None
    largest: float | None = None
    """The ends of the range in which both sides have a time."""
    reach: float | None = None
    """If one side leads: the end of the range of its lead beyond which the sides may cross."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    """The lowest and the highest speed-up in the range of the lead."""
    steps_of_run: int | None = None
    """Of the run that the cost is about, or in which a crossover of steps holds, too."""
    holds_in_runs: bool = False
    """For a crossover of steps: whether that of whole runs, start-up included, is the same within 2 %."""

    @property
    def has_lead(self) -> bool:
        return self.reach is not None

    @property
    def states_difference(self) -> bool:
        return self.status in self.differences and (self.has_lead or self.status != "edge_tie")

    @property
    def ends(self) -> Ends:
        """The 95 % interval or, without one, the bracket."""
        if self.crossover_low is None and self.crossover_high is None:
            return self.bracket_low, self.bracket_high
        return self.crossover_low, self.crossover_high

    def sentence(self) -> str:
        return self.crossing()

    def crossing(self) -> str:
        """The sentence without what subclasses add to it."""
        sides, (low, high) = f"{self.winner} and {self.loser}", self.ends
        if self.status in CROSSED:
            about = "~" if self.crossover_low is self.crossover_high is None else ""
            place = f"{about}{position_text(self._known(self.crossover), self.unit)}"
            return f"{self._ahead()} {self._direction()} {place}"
        if self.status in LEADS:
            return f"{self._ahead()} at {self.everywhere()}{self._speedups()}"
        if self.status == "edge_tie" and self.reach is not None:
            verb, on = "up to" if high is None else "from", " on" if low is None else ""
            lead = f"{verb} {position_text(self.reach, self.unit)}{on}{self._speedups()}"
            return f"{self._ahead()} {lead}; no significant difference at {self._tied()}"
        if self.status == "edge_tie":
            bound = ""
            if low is not None:
                bound = f"; no crossover below {position_text(low, self.unit)}"
            elif high is not None:
                bound = f"; no crossover above {position_text(high, self.unit)}"
            elif self.sure_low is not None:
                bound = f"; {self._ahead()} at {position_text(self.sure_low, self.unit)}"
            return f"No significant difference between {sides} at {self._tied()}{bound}"
        if self.status == "multiple":
            near = f"near {places_text(self.roots, self.unit)}"
            where = near if len(self.roots) <= MOST_POINTS else f"from {range_text(self.roots, self.unit)}"
            beyond = f"; {self._ahead()} above the last" if self.has_lead else ": no single answer"
            return f"{sides} cross {len(self.roots)} times, {where}{beyond}"
        if self.status == "undecided":
            back = self.reason == "may_cross_back"
            near = f"; they may cross and cross back near {self._caveat_places()}" if back else ""
            return f"No significant difference between {sides}{near}"
        if self.status == "no_accelerator":
            return "No GPU measured here"
        reason = INCOMPLETE.get(self.reason or "", "a cell near the crossover has no result")
        places = f" ({self._caveat_places()})" if self.caveat_at else ""
        return f"No comparison of {sides}: {reason.replace('size', point_of(self.unit))}{places}"

    def everywhere(self) -> str:
        """The points at which a side is ahead that leads throughout."""
        if self.smallest is not None and self.smallest == self.largest:
            return position_text(self.smallest, self.unit)
        return f"every {point_of(self.unit)} measured"

    def _measured(self) -> str:
        return "measured"

    def _ahead(self) -> str:
        """The better side. The other side is named only if the two are not GPU and CPU."""
        than = "" if {self.winner, self.loser} == {"CPU", "GPU"} else f" than {self.loser}"
        return f"{self.winner} {BETTER[self.cost]}{than}"

    def _direction(self) -> str:
        return "above" if self.status == "bracketed" else "only below"

    def _speedups(self) -> str:
        if self.ratio_low is None or self.ratio_high is None:
            return ""
        return f", {span_text([self.ratio_low, self.ratio_high], number_text)}x"

    def _tied(self) -> str:
        return points_text(self.caveat_at, self.unit) if self.caveat_at else "an end of the measured range"

    def _caveat_places(self) -> str:
        return places_text(self.caveat_at, self.unit)

    @staticmethod
    def _known(value: float | None) -> float:
        assert value is not None
        return value

    def summary_of(self, alike: Sequence[Self]) -> str:
        numbers = [answer.crossover for answer in alike if answer.crossover is not None]
        run = f"{self.in_cost()}: " if self.cost == "run" else ""
        if self.status in CROSSED:
            return f"{run}{self._ahead()} {self._direction()} {range_text(numbers, self.unit)}, by series"
        if self.status in LEADS:
            return f"{run}{self._ahead()} at every {point_of(self.unit)} {self._measured()}"
        lead = f"{self._ahead()}, but " if self.has_lead else ""
        return f"{run}{lead}{SUMMED[self.status]}"

    def details(self) -> list[str]:
        undecided = self.status in ("edge_tie", "undecided") and self.reason != DISAGREE
        decide = ["more trials, or a quieter machine, may decide"] if undecided else []
        return [*self._interval(), *self.where(), *decide]

    def where(self) -> list[str]:
        """Notes on where else the answer holds."""
        return [f"the same {self._in_run()}"] if self.holds_in_runs else []

    def _interval(self) -> list[str]:
        if self.status not in CROSSED:
            return []
        if "no_interval" in self.caveats:
            low, high = self.bracket_low, self.bracket_high
            if low is None or high is None:
                return [f"between {ends_text(low, high, self.unit)}"]
            return [f"between {interval_text([low, high], self.unit).replace(' to ', ' and ')}"]
        interval = f"95 % CI {ends_text(self.crossover_low, self.crossover_high, self.unit)}"
        return [interval, *self.significant_signs()]

    def significant_signs(self) -> list[str]:
        """The nearest points with a significant difference, if the interval does not reach both."""
        low, high = self.crossover_low, self.crossover_high
        if self.sure_low is None or self.sure_high is None:
            return []
        if low is not None and high is not None and self.sure_low >= low and self.sure_high <= high:
            return []
        signs = SIGNS.get(self.cost, ("slower", "faster"))
        below, above = signs if self.status == "bracketed" else reversed(signs)
        places = [amount_text(end, self.unit) for end in (self.sure_low, self.sure_high)]
        return [f"significantly {below} at {places[0]}, {above} at {places[1]}"]

    def in_cost(self) -> str:
        if self.cost == "run":
            return self._in_run()
        return "" if self.cost == "time" else f"in {self.cost}"

    def _in_run(self) -> str:
        run = f"run of {self.steps_of_run:,} steps" if self.steps_of_run else "whole run"
        return f"in a {run}, start-up included"

    def caveat_words(self, caveat: str) -> str:
        if caveat == "unsure_sizes":
            return f"inconclusive at {self._caveat_places()}"
        if caveat == "may_cross_again":
            return f"may cross again near {self._caveat_places()}"
        return super().caveat_words(caveat)


PLAINLY = {
    "below_range": "untuned, the GPU is faster throughout",
    "above_range": "untuned, the CPU is faster throughout",
}


@dataclass(frozen=True, kw_only=True)
class Best(Crossover):
    """The crossover of an accelerator with the CPU, both in their fastest configurations."""

    kind = "best"
    in_sentence = (*Crossover.in_sentence, "has_points")

    winner_configurations: Sequence[str]
    """The fastest within the crossover's bracket, or else at the smallest and the largest size."""
    loser_configurations: Sequence[str]
    compared_at: Sequence[float] = ()
    """The points at which both are compared, if others were measured."""
    moved_status: str | None
    """The status of the crossover in the baseline settings."""
    moved_from: float | None
    """That crossover."""
    factor: float | None
    """The crossover over that in the baseline settings."""

    @property
    def has_points(self) -> bool:
        return len(self.compared_at) > 0

    def configurations(self) -> str:
        """The fastest configurations of both sides."""
        winner, loser = (", then ".join(names) for names in (self.winner_configurations, self.loser_configurations))
        return f"{self.winner}: {winner}; {self.loser}: {loser}"

    def sentence(self) -> str:
        moved = ""
        if self.factor is not None:
            moved = f"; {number_text(self.factor)}x the crossover without tuning"
        elif self.moved_from is not None:
            moved = f"; untuned, they cross at {position_text(self.moved_from, self.unit)}"
        elif self.moved_status in PLAINLY:
            moved = f"; {PLAINLY[self.moved_status]}"
        return f"Tuned ({self.configurations()}): {self.crossing()}{moved}"

    def _measured(self) -> str:
        return "compared" if self.compared_at else "measured"

    def everywhere(self) -> str:
        return points_text(self.compared_at, self.unit) if self.compared_at else super().everywhere()

    def summary_of(self, alike: Sequence[Self]) -> str:
        points = sorted({point for answer in alike for point in answer.compared_at})
        compared = f" (compared at {points_text(points, self.unit)})" if points else ""
        return f"Tuned: {super().summary_of(alike)}{compared}"

    def where(self) -> list[str]:
        if self.compared_at and self.status not in LEADS:
            return [f"compared at {points_text(self.compared_at, self.unit)}"]
        return super().where()

    def is_changed_by_tuning(self) -> bool:
        """Whether tuning changes the crossover's status, or moves it significantly."""
        if self.status not in (*CROSSED, *LEADS):
            return False
        if self.status != self.moved_status:
            return True
        low, high = self.ends
        return self.moved_from is not None and not (low or 0) <= self.moved_from <= (high or math.inf)


@dataclass(frozen=True, kw_only=True)
class Reference(Crossover):
    """The estimated crossover of a GPU measured elsewhere with this CPU.

    Its speed-ups span those by its times as measured and as scaled to this CPU, on hosts that differ.
    """

    kind = "reference"
    in_sentence = (*Crossover.in_sentence, "reason", "open_ends")

    measured_on: str
    pace: float | None = None
    """Time of small steps on this CPU over their time on the other machine's CPU, over all studies."""
    pace_low: float | None = None
    pace_high: float | None = None

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
    def is_one_sided(self) -> bool:
        """Whether it names a side that is ahead at the 95 % level, without an interval."""
        if self.trials == 1 or (self.status == "edge_tie" and self.reach is None):
            return False
        if self.status in CROSSED:
            return self.known_ends.count(None) == 1
        return self.status in ("below_range", "above_range", "edge_tie")

    @property
    def gpu(self) -> str:
        return self.loser if self.winner == THIS_CPU else self.winner

    def sentence(self) -> str:
        return capitalised(self._estimate([self.crossover] if self.crossover is not None else []))

    def _estimate(self, crossovers: Sequence[float]) -> str:
        would = f"{self.gpu} {WOULD.get(self.cost, '')} than {THIS_CPU}"
        untold = f"this run cannot tell whether {would}"
        low, high = self.known_ends
        if self.status in CROSSED:
            below, above = (THIS_CPU, self.gpu) if self.status == "bracketed" else (self.gpu, THIS_CPU)
            if low is not None and high is not None:
                return f"{would} {self._direction()} about {range_text(crossovers, self.unit)}"
            if high is not None:
                return self._lead_from(above, high)
            return untold if low is None else self._lead_up_to(below, low)
        if self.status in LEADS:
            return self._lead(self.winner, f"at {self.everywhere()}")
        if self.status == "edge_tie" and self.reach is not None:
            lead = self._lead_from if low is None else self._lead_up_to
            return lead(self.winner, self.reach)
        if self.reason == DISAGREE and self.reach is not None:
            ends = [number_text(self._known(end)) for end in (self.ratio_low, self.ratio_high)]
            at = f"at {position_text(self.reach, self.unit)}, they range from {ends[0]} to {ends[1]} times the speed of"
            contradict = "since estimates of it contradict each other"
            return f"this run cannot tell from where {would}, {contradict}: {at} {THIS_CPU}"
        return untold if self.status in ("edge_tie", "undecided") else self.crossing()

    def _lead(self, side: str, where: str, open_side: str = "") -> str:
        """A side's lead over part of the points; on the other side of its end, the estimate is open."""
        verb = (IS if side == THIS_CPU else WOULD)[self.cost]
        other = self.loser if side == self.winner else self.winner
        untold = f"; {open_side}, this run cannot tell" if open_side else ""
        return f"{side} {verb} than {other} {where}{self._speedups()}{untold}"

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
        if low is not None and high is not None and self.status in CROSSED:
            return f"{text}, by series (intervals within {range_text([low, high], self.unit)})"
        return text

    def _interval(self) -> list[str]:
        return super()._interval() if None not in self.known_ends else []

    def significant_signs(self) -> list[str]:
        return []

    def where(self) -> list[str]:
        confidence = ["95 % confidence"] if self.is_one_sided else []
        source = f"estimated from its times elsewhere ({self.measured_on}) and {THIS_CPU}"
        return [*super().where(), *confidence, source]


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

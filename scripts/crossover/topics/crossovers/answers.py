"""Answers on where one side overtakes another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from crossover.config.study import Epochs, steps_of_run
from crossover.config.words import series_axes
from crossover.tables.frames import headline_rows, records
from crossover.tables.labels import varying
from crossover.tables.registry import CROSSOVER_STATUSES
from crossover.tables.run_tables import RunTables
from crossover.text import number_text
from crossover.topics.answer import Answer
from crossover.topics.crossovers.sides import (
    caveats_of_series,
    crossover_fields,
    crossovers_to_answer,
    has_several_accelerators,
    reach_of,
    series_name,
    side_names,
    with_needed_columns,
)
from crossover.topics.wording import (
    MOST_POINTS,
    amount_text,
    ends_text,
    interval_text,
    places_text,
    point_of,
    points_text,
    position_text,
    range_text,
    span_text,
)

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
    cross: ClassVar[str] = "cross"

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
        if self.status == "multiple" and self.trials == 1:
            last = f"about {position_text(self.roots[-1], self.unit)}"
            lead = f"{self._ahead()} above {last}; undecided below"
            return lead if self.has_lead else f"{sides}: undecided up to {last}"
        if self.status == "multiple":
            near = f"near {places_text(self.roots, self.unit)}"
            where = near if len(self.roots) <= MOST_POINTS else f"from {range_text(self.roots, self.unit)}"
            beyond = f"; {self._ahead()} above the last" if self.has_lead else ": no single answer"
            return f"{sides} {self.cross} {len(self.roots)} times, {where}{beyond}"
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
        """The points at which a side is ahead that leads throughout, without those at which that is not significant."""
        if self.smallest is not None and self.smallest == self.largest:
            return position_text(self.smallest, self.unit)
        but = {0: "", 1: " but one"}.get(len(self.unsure), f" but {len(self.unsure)}")
        return f"every {point_of(self.unit)} measured{but}"

    @property
    def unsure(self) -> Sequence[float]:
        """The points without a significant difference, of a side that leads throughout."""
        return self.caveat_at if self.status in LEADS and "unsure_sizes" in self.caveats else ()

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
        undecided = self.status in ("edge_tie", "undecided")
        decide = ["more trials, or a quieter machine, may decide"] if undecided else []
        return [*self.interval(), *self.where(), *decide]

    def where(self) -> list[str]:
        """Notes on where else the answer holds."""
        return [f"the same {self._in_run()}"] if self.holds_in_runs else []

    def interval(self) -> list[str]:
        """The interval of a crossover or, without one, the points around it; then its significant signs."""
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


StepsPerRun = int | Epochs | None


def crossover_answers(
    tables: RunTables, steps_per_run: StepsPerRun, asked: Collection[str] = ("device",)
) -> list[Crossover]:
    """Answers on the crossovers of a study: main ones first, those over a second axis last.

    `asked` has the pairs that the study refines.
    """
    crossovers, main = crossovers_to_answer(tables, asked)
    with_product_names = has_several_accelerators(crossovers)
    order = sorted(crossovers.index, key=lambda index: index not in main)
    rows = [(row, index in main) for index, row in zip(order, records(crossovers.loc[order]), strict=True)]
    if (crossovers["pair"] == "device").any():
        rows += [(row, False) for row in records(headline_rows(tables.crossovers, second=True))]
    varied_axes = {axis: varying(tables.cells, series_axes(axis)) for axis in {row["x_axis"] for row, _ in rows}}
    needed = with_needed_columns(tables)
    answers = [
        replace(
            crossover_answer(row, needed, varied_axes[row["x_axis"]], with_product_names),
            main=is_main,
            steps_of_run=_steps_of_run(steps_per_run, row),
        )
        for row, is_main in rows
    ]
    return list(_said_once(answers))


def _said_once(answers: Sequence[Crossover]) -> Iterator[Crossover]:
    """The answers; where a crossover of runs is that of steps, the latter says so, and the former is no main answer."""
    alike: dict[tuple[Any, ...], list[Crossover]] = {}
    for answer in answers:
        alike.setdefault((answer.cost, *_sides_and_status(answer)), []).append(answer)
    for answer in answers:
        other_cost = {"time": "run", "run": "time"}.get(answer.cost)
        others = alike.get((other_cost, *_sides_and_status(answer)), ())
        twin = next((other for other in others if _is_at_same_place(answer, other)), None)
        if twin is None:
            yield answer
        elif other_cost == "run":
            yield replace(answer, holds_in_runs=True, steps_of_run=twin.steps_of_run)
        else:
            yield replace(answer, main=False)


SAME = 1.02
"""Maximum factor between two crossovers, and between the ends of their intervals, that count as the same."""


def _sides_and_status(answer: Crossover) -> tuple[str, ...]:
    return answer.machine, answer.series, answer.winner, answer.loser, answer.status, answer.unit


def _is_at_same_place(first: Crossover, second: Crossover) -> bool:
    """Whether two crossovers of the same sides that have the same status lie at the same place, or have none."""
    if first.crossover is None or second.crossover is None:
        return first.status in LEADS
    places = [
        (first.crossover, second.crossover),
        (first.crossover_low, second.crossover_low),
        (first.crossover_high, second.crossover_high),
    ]
    return all(
        one == other if one is None or other is None else 1 / SAME <= one / other <= SAME for one, other in places
    )


def _steps_of_run(steps_per_run: StepsPerRun, row: Mapping[str, Any]) -> int | None:
    """Number of steps of the run that a crossover is about. None for single steps, or if it varies along the x axis."""
    given = steps_per_run is not None and (row["batch_size"] is not None or isinstance(steps_per_run, int))
    return steps_of_run(steps_per_run, row["batch_size"]) if row["cost"] == "run" and given else None


def crossover_answer(
    row: dict[str, Any], tables: RunTables, varied_axes: Sequence[str], with_product_names: bool
) -> Crossover:
    """The answer on a row of table `crossovers`, with the needed columns of `tables`."""
    contender, baseline = side_names(row, with_product_names)
    columns = crossover_fields(row, contender, baseline)
    about = {
        **columns,
        "series": series_name(row, varied_axes),
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        **reach_of(row, tables, contender, baseline),
    }
    return Crossover(**about)

"""An answer: what a study found on one question, with its sentence and the notes after it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Self

from crossover.compare.intervals import FASTER, INCONCLUSIVE, SINGLE_TRIAL
from crossover.config.statuses import FLAGS
from crossover.config.words import HERE
from crossover.text import number_text, percent_text
from crossover.topics.caveats import CAVEAT_WORDS
from crossover.topics.wording import confidence_text, span_text

COMPARED = (FASTER, INCONCLUSIVE, SINGLE_TRIAL)
"""Statuses of a comparison that names the faster side first."""

WITHOUT_DATA = ("no_accelerator", "incomplete", "single_trial", "no_baseline", "nothing_learnt", "only_cpu")
"""Statuses of a kind that compares, without a comparison."""

KINDS: dict[str, type[Answer]] = {}
"""The class of each kind of answer, which every subclass with a `kind` joins."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What all answers have; each kind is a subclass, which adds its numbers and says them in a sentence."""

    kind: ClassVar[str]
    statuses: ClassVar[Sequence[str]] = ("measured",)
    differences: ClassVar[Collection[str]] = ()
    """The statuses that state a difference; empty for a kind that does not compare."""
    in_sentence: ClassVar[Sequence[str]] = ()
    """The fields in which answers agree that are summarised in one sentence, besides status and device."""

    study: str = ""
    machine: str = HERE
    """Of two machines, the contender's."""
    series: str = ""
    """The axes by which the answer's series differs from the study's others."""
    device: str | None = None
    """Not given by a comparison of devices."""
    main: bool = False
    """Whether summaries and the first screen list the answer; a study has at least one such answer."""
    status: str = "measured"
    trials: int | None = None
    """The minimum number of ok trials, or seeds, that the answer is based on."""
    corrected_for: int = 1
    """The number of comparisons for which those of the study are corrected together."""
    caveats: Collection[str] = ()
    """Names of CAVEATS, the most important first."""
    told: Collection[str] = field(default=(), metadata={"is_of_report": True})
    """The caveats that the report tells once, for most answers."""
    busy_is_told: bool = field(default=False, metadata={"is_of_report": True})
    """Whether the first answer of the study has said that the machine was busy, which holds for all of its kind."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls) and (first := KINDS.setdefault(cls.kind, cls)) is not cls:
            raise TypeError(f"{cls.__name__}: the kind '{cls.kind}' is that of {first.__name__}; give it another")

    def sentence(self) -> str:
        """What the answer says, without its scope, notes and caveats."""
        raise NotImplementedError

    def summary_of(self, alike: Sequence[Self]) -> str:  # noqa: ARG002 - that of subclasses has the range of their numbers
        """One sentence on several answers that are `alike`, of which this is the first."""
        return self.sentence()

    def details(self) -> list[str]:
        """The notes of this kind, such as its interval."""
        return []

    def basis(self) -> str:
        """What the answer is based on, in one line, if it was not measured here; else empty."""
        return ""

    def in_cost(self) -> str:
        """The cost in which sides are compared, unless it is the time of a step."""
        return ""

    def caveat_words(self, caveat: str) -> str:
        """A caveat in a few words."""
        return CAVEAT_WORDS[caveat]

    @property
    def quantity(self) -> str | None:
        """The metric or mistake that the answer is about, as claims name it."""
        return None

    def likeness(self) -> tuple[Any, ...]:
        """What is equal in answers that are summarised in one sentence."""
        return self.kind, self.status, self.device, *(getattr(self, name) for name in self.in_sentence)

    @property
    def compares(self) -> bool:
        return bool(self.differences) and self.status not in WITHOUT_DATA

    @property
    def states_difference(self) -> bool:
        return self.status in self.differences

    @property
    def is_flagged(self) -> bool:
        return not FLAGS.keys().isdisjoint(self.caveats)

    @property
    def is_doubted(self) -> bool:
        """Whether the answer has caveats that its notes leave out."""
        return len({*self.caveats} - {"no_interval"}) > 1

    @property
    def is_busy(self) -> bool:
        return "busy_machine" in self.caveats

    def busy(self) -> str:
        return "On a busy machine: " if self.is_busy and not self.busy_is_told else ""

    def statement(self) -> str:
        """The sentence, after the caveat that it begins with."""
        return self.busy() + self.sentence()

    def scope(self) -> str:
        """The cost and the series that the answer is about; may be empty."""
        return ", ".join(filter(None, [self.in_cost(), self.series]))

    def notes(self) -> str:
        """The notes of this kind, and the most important caveat; may be empty."""
        caveat = self._first_caveat()
        return "; ".join([*self.details(), *([self.caveat_words(caveat)] if caveat else [])])

    def text(self) -> str:
        """The statement with its scope and notes."""
        scope, notes = self.scope(), self.notes()
        return f"{f'{scope}: ' if scope else ''}{self.statement()}{f' ({notes})' if notes else ''}"

    def _first_caveat(self) -> str:
        """The most important caveat; empty without one, or if the answer begins with it."""
        caveats = [caveat for caveat in self.caveats if caveat not in ("no_interval", *self.told)]
        return caveats[0] if caveats and caveats[0] != "busy_machine" else ""

    def further_caveats(self) -> str:
        """The caveats that the notes leave out, in words."""
        said = ("no_interval", "busy_machine", self._first_caveat())
        return "; ".join(self.caveat_words(caveat) for caveat in self.caveats if caveat not in said)

    def row(self) -> dict[str, Any]:
        """The answer as a row of table `answers`."""
        own = {name: value for name, value in asdict(self).items() if name not in _OF_ALL}
        text = json.dumps(own, ensure_ascii=False, default=lambda value: value.item())
        return {name: getattr(self, name) for name in COMMON} | {
            "kind": self.kind,
            "sentence": self.text(),
            "fields": text,
        }


COMMON = [entry.name for entry in fields(Answer) if not entry.metadata]
"""The fields that are columns of table `answers`."""
_OF_ALL = {entry.name for entry in fields(Answer)}


@dataclass(frozen=True, kw_only=True)
class Ranged(Answer):
    """An answer whose sentence is also that of several answers, with the range of their number."""

    def sentence_on(self, alike: Sequence[Self]) -> str:
        """The sentence on several answers that are `alike`, of which this is the first."""
        raise NotImplementedError

    def sentence(self) -> str:
        return self.sentence_on([self])

    def summary_of(self, alike: Sequence[Self]) -> str:
        return self.sentence_on(alike)


@dataclass(frozen=True, kw_only=True)
class Comparison(Ranged):
    """An answer on the ratio of two sides, of the one behind over the one ahead unless its kind says otherwise."""

    statuses: ClassVar[Sequence[str]] = COMPARED
    differences: ClassVar[Collection[str]] = (FASTER,)
    in_sentence: ClassVar[Sequence[str]] = ("winner", "loser")

    winner: str
    loser: str
    ratio: float
    ratio_low: float | None = None
    ratio_high: float | None = None
    detectable: float | None = None
    """Without a significant difference, the largest that the interval allows, as a share."""

    def details(self) -> list[str]:
        return [] if self.detectable else confidence_text(self.ratio_low, self.ratio_high, "times")

    def ratios_text(self, alike: Sequence[Self]) -> str:
        return span_text([answer.ratio for answer in alike], number_text)

    def in_time(self, alike: Sequence[Self], what: str = "", where: str = "") -> str:
        """Which side is faster, or that no significant difference (in `what`) was found, at the place `where`."""
        if self.status == INCONCLUSIVE:
            most = at_most([answer.detectable for answer in alike])
            return f"no significant difference{what} between {self.winner} and {self.loser}{where}{most}"
        return f"{self.winner} {self.ratios_text(alike)}x faster than {self.loser}{where}"


WIDEST_TOLD = 9.0
"""A larger difference that an interval allows, as a share, says nothing."""


def at_most(differences: Sequence[float | None]) -> str:
    """The largest difference, as a share, that the intervals of comparisons without a significant one allow."""
    known = [difference for difference in differences if difference]
    if not known or max(known) > WIDEST_TOLD:
        return ""
    largest = max(known)
    return f" (none larger than {f'{number_text(1 + largest)}x' if largest > 1 else percent_text(largest)})"


def group_alike(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Group answers whose sentences differ at most in their numbers and in the series."""
    groups: dict[tuple[Any, ...], list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.likeness(), []).append(answer)
    return list(groups.values())


def of_series(alike: Sequence[Answer], answers: Sequence[Answer]) -> str:
    """How many of the series of answers a group has: '2 of 5 series'."""
    some, every = (len({answer.series for answer in group}) for group in (alike, answers))
    return f"{some} of {every} series"


def summed(alike: Sequence[Answer]) -> str:
    """One sentence on answers of one group of `group_alike`, and how many of them are on a busy machine, if not all."""
    sentence, busy = alike[0].summary_of(alike), [answer for answer in alike if answer.is_busy]
    said = next(filter(None, (answer.busy() for answer in busy)), "")
    if said and len(busy) < len(alike):
        return f"{sentence} ({len(busy)} of {len(alike)} on a busy machine)"
    return said + sentence

"""What the report says first about a study: one answer, its bar, and the published claim to compare with."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.config.claim_forms import OURS
from crossover.tables.labels import DEVICE_WORDS
from crossover.tables.registry import METHODS
from crossover.text import seconds_text
from crossover.topics.answer import Answer
from crossover.topics.asked import Asked
from crossover.topics.candidates import Best
from crossover.topics.claims.findings import NO_DATA
from crossover.topics.comparisons import StepTime
from crossover.topics.crossovers.answers import CROSSED, LEADS, Crossover


def main_answers(answers: Sequence[Answer]) -> list[Answer]:
    """The main answers of a study, without the one on memory, which the report gives once for all studies."""
    main = [answer for answer in answers if answer.main and answer.kind != "memory"]
    return [answer for answer in main if answer.status != "no_accelerator"] or main


def first_of(main: Sequence[Answer]) -> Answer:
    """The answer that a study's row gives."""
    return next((answer for answer in main if answer.kind != "best"), main[0])


@dataclass(frozen=True)
class StudyRow:
    """A study's row on the first screen, and its lines in the summaries."""

    answer: Answer
    """The first main answer."""
    also: Sequence[Asked]
    """The same comparison in the study's other metrics."""
    last: StepTime | None
    """The time at the largest size, if `answer` is the time at the smallest."""
    tuned: Best | None
    """The answer for the fastest configurations, if tuning changes it."""
    shown: Sequence[Answer]
    """All answers that the row says."""
    further: Sequence[Answer]
    """The first main answer of each other kind and on money, without the fastest configurations."""
    machines: Sequence[StudyRow]
    """The rows of the other machines that measured the study."""
    series: int
    """The machine's number of pairs of series and device with a main answer of the same kind and cost."""
    claim: Mapping[str, Any] | None
    verdicts: Mapping[str, int]
    """The number of published claims with each verdict on the machine of `claim`, without those that lack data."""

    def sentence(self) -> str:
        """The study's answer in one sentence; without a comparison, the time at the smallest and the largest size."""
        scope = self.answer.scope()
        also = "".join(f"; {answer.without_place([answer])}" for answer in self.also)
        first = self.answer.sentence() if self._one_is_busy else self.answer.statement()
        if self.last:
            first += f"{self._notes_of(self.answer)}, {seconds_text(self.last.step_time_s)} at {self.last.place}"
        return f"{f'{scope}: ' if scope else ''}{first}{also}"

    def notes(self) -> str:
        """What follows the sentence: interval and caveats, of two times those of the last, and the number of series."""
        series = f"; first of {self.series} series" if self.series > 1 else ""
        return f"{self._notes_of(self.last or self.answer)}{series}"

    @property
    def _one_is_busy(self) -> bool:
        """Whether only one of two times is on a busy machine."""
        return self.last is not None and self.last.is_busy != self.answer.is_busy

    def _notes_of(self, answer: Answer) -> str:
        busy = answer.caveat_words("busy_machine") if self._one_is_busy and answer.is_busy else ""
        notes = "; ".join(filter(None, [answer.notes(), busy]))
        return f" ({notes})" if notes else ""

    def text(self) -> str:
        return self.sentence() + self.notes()

    def tuned_text(self) -> str:
        """The answer for the fastest configurations, without their names."""
        if self.tuned is None:
            return ""
        scope, notes = self.tuned.scope(), self.tuned.notes()
        said = self.tuned.busy() + self.tuned.crossing()
        return f"{f'{scope}: ' if scope else ''}{said}{f' ({notes})' if notes else ''}"


def row_of(main: Sequence[Answer], claims: Sequence[Mapping[str, Any]]) -> StudyRow:
    """The row of a study, from its main answers and its claims."""
    first = first_of(main)
    same_kind = [answer for answer in main if answer.kind == first.kind and _cost(answer) == _cost(first)]
    others = () if first.basis() else [*dict.fromkeys(answer.machine for answer in same_kind)][1:]
    machines = [row_of([answer for answer in same_kind if answer.machine == machine], ()) for machine in others]
    of_machine = [answer for answer in same_kind if answer.machine not in others]
    same_series = [answer for answer in of_machine if _series(answer) == _series(first)]
    ends = [answer for answer in same_series if isinstance(answer, StepTime)]
    also = [answer for answer in same_series if isinstance(answer, Asked) and answer is not first]
    best = [answer for answer in main if isinstance(answer, Best) and answer.machine == first.machine]
    tuned = next((answer for answer in best if answer is not first and answer.is_changed_by_tuning()), None)
    other_kinds = [answer for answer in main if answer.kind != "best" and _asked(answer) != _asked(first)]
    firsts = {_asked(answer): answer for answer in reversed(other_kinds)}
    shown = [answer for answer in (first, *also, tuned, *ends[-1:]) if answer is not None]
    published = [claim for claim in claims if claim["source"] != OURS]
    closest = _closest_claim(first, published)
    return StudyRow(
        answer=first,
        also=also,
        last=ends[-1] if len(ends) > 1 else None,
        tuned=tuned,
        shown=[*shown, *(answer for row in machines for answer in row.shown)],
        further=[answer for answer in other_kinds if answer is firsts[_asked(answer)]],
        machines=machines,
        series=len({_series(answer) for answer in of_machine}),
        claim=closest,
        verdicts=Counter(
            claim["verdict"]
            for claim in published
            if closest and claim["machine"] == closest["machine"] and claim["verdict"] != NO_DATA
        ),
    )


def _series(answer: Answer) -> tuple[str, str | None]:
    return answer.series or "", answer.device


def _cost(answer: Answer) -> str | None:
    return answer.cost if isinstance(answer, Crossover) else None


def _asked(answer: Answer) -> tuple[str, bool]:
    """What a summary's line is about: a kind of answer or, if the config has prices, its money."""
    return answer.kind, _cost(answer) == "money"


def _closest_claim(answer: Answer, claims: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The claim closest to an answer: first if both are on a crossover, then by quantity, then by machine."""
    is_crossing = isinstance(answer, Crossover)

    def nearness(claim: Mapping[str, Any]) -> tuple[bool, bool, bool]:
        on_crossover = claim["form"] == "crossover_between"
        metrics = [metric for metric in (claim["metric"], claim["over_metric"]) if metric]
        same_quantity = answer.quantity in [*metrics, *(METHODS.get(metric) for metric in metrics)]
        return on_crossover == is_crossing, same_quantity, claim["machine"] == answer.machine

    def may_be_on_device(claim: Mapping[str, Any]) -> bool:
        devices = {*DEVICE_WORDS.values()}.intersection(re.findall(r"\w+", claim["condition"] or ""))
        if is_crossing or not devices or not answer.device:
            return True
        return answer.device.split()[0] in devices

    return max(filter(may_be_on_device, claims), key=nearness, default=None)


def bar_of(answer: Answer) -> list[dict[str, Any]]:
    """Parts of a bar over the measured sizes, on a log scale. The part within the interval is inconclusive.

    `side` is cpu, gpu, gpus-2 for two GPUs and so on, other (the side behind, of two on like devices) or inconclusive;
    `label` is its name.
    """
    if not isinstance(answer, Crossover) or answer.cost != "time":
        return []
    smallest, largest = answer.smallest, answer.largest
    if smallest is None or largest is None or not 0 < smallest < largest:
        return []
    winner, loser, neither = answer.winner, answer.loser, "inconclusive"
    low, high = answer.ends
    inner: list[float]
    if answer.status in CROSSED:
        below, above = (loser, winner) if answer.status == "bracketed" else (winner, loser)
        sides, inner = [below, neither, above], [low or smallest, high or largest]
    elif answer.status in LEADS:
        sides, inner = [winner], []
    elif answer.status == "edge_tie" and answer.reach is not None:
        sides, inner = [winner, neither] if high is None else [neither, winner], [answer.reach]
    else:
        sides, inner = [neither], []
    ends = [min(max(end, smallest), largest) for end in (smallest, *inner, largest)]
    whole = math.log(largest / smallest)
    return [
        {**_side(side, answer), "low": low, "high": high, "share": math.log(high / low) / whole}
        for side, low, high in zip(sides, ends, ends[1:], strict=False)
        if high > low
    ]


def _side(name: str, answer: Crossover) -> dict[str, str]:
    if name == "inconclusive":
        return {"side": name, "label": "…"}
    if number := re.fullmatch(r"(\d+) GPUs?", name):
        return {"side": {"1": "gpu", "2": "gpus-2", "4": "gpus-4"}.get(number[1], "gpus-more"), "label": name}
    device = _device_in(name)
    if _device_in(answer.winner) != _device_in(answer.loser):
        return {"side": device.lower(), "label": device}
    return {"side": "other" if name == answer.loser else device.lower(), "label": name.partition(" on the ")[0]}


def _device_in(name: str) -> str:
    return "CPU" if "CPU" in name else "GPU"

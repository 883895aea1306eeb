"""Answers on latency: what mistakes of measurement do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from crossover.compare.intervals import SINGLE_TRIAL, columns_of, interval_of
from crossover.config.words import BASELINE, is_cpu
from crossover.tables.frames import first_row, records
from crossover.tables.labels import side_word
from crossover.tables.registry import CELL_AXES, METHODS
from crossover.tables.run_tables import RunTables
from crossover.text import number_text
from crossover.topics.answer import Ranged, at_most
from crossover.topics.caveats import basis
from crossover.topics.wording import off_text, span_text

NO_WARM_UP = METHODS["latencies_cold_s"]


@dataclass(frozen=True, kw_only=True)
class Latency(Ranged):
    """The effect of a mistake on a latency: the wrong mean over the right one. A single trial has no ratio."""

    kind = "latency"
    statuses = ("error", "none_found", SINGLE_TRIAL)
    differences = ("error",)
    in_sentence = ("mistake",)

    mistake: str | None = None
    ratio: float = 1.0
    ratio_low: float | None = None
    ratio_high: float | None = None
    detectable: float | None = None
    """Without a significant effect, the largest that the interval allows in either direction, as a share."""

    @property
    def quantity(self) -> str | None:
        return self.mistake

    @property
    def effect(self) -> tuple[bool, float]:
        """By which mistakes are ordered."""
        return self.status == "error", max(self.ratio, 1 / self.ratio)

    def sentence_on(self, alike: Sequence[Self]) -> str:
        ratios = [answer.ratio for answer in alike]
        if self.status == SINGLE_TRIAL:
            return f"A single trial cannot show the effect of mistakes on the {self.device}"
        if self.status == "none_found":
            most = at_most([answer.detectable for answer in alike])
            return f"“{self.mistake}” has no significant effect on the {self.device}{most}"
        if self.mistake == NO_WARM_UP:
            times = span_text(ratios, number_text)
            return f"Without warm-up, the first step takes {times}x the median on the {self.device}"
        off, direction = span_text(ratios, off_text), "high" if self.ratio > 1 else "low"
        return f"“{self.mistake}” makes the mean latency {off} too {direction} on the {self.device}"

    def details(self) -> list[str]:
        if self.status != "error" or self.ratio_low is None or self.ratio_high is None:
            return []
        text = number_text if self.mistake == NO_WARM_UP else off_text
        return [f"95 % CI {span_text([self.ratio_low, self.ratio_high], text)}"]


def latency_answers(tables: RunTables) -> list[Latency]:
    """The effect of each mistake on accelerators or, without one, on the CPU; the largest significant one first."""
    latencies = tables.latencies
    accelerated = latencies[~latencies["device"].map(is_cpu)]
    latencies = accelerated if len(accelerated) else latencies[latencies["device"] == BASELINE]
    answers = []
    for (machine, device), methods in latencies.groupby(["machine", "device"], sort=False):
        mistakes = methods[methods["kind"] == "mistake"].dropna(subset=["ratio"])
        if len(methods.drop_duplicates(CELL_AXES)) > 1 or mistakes.empty:
            continue
        cell = tables.rows_with("cells", CELL_AXES, first_row(methods))
        about: dict[str, Any] = {
            "machine": machine,
            "series": machine if latencies["machine"].nunique() > 1 else "",
            "device": side_word(str(device)),
            **basis(int(cell["trials"].min()), cell),
        }
        if mistakes["ratio_low"].isna().all():
            answers.append(Latency(**about, status=SINGLE_TRIAL))
        else:
            found = [Latency(**about, **_mistake(row)) for row in records(mistakes)]
            answers += sorted(found, key=lambda answer: answer.effect, reverse=True)
    return answers


def _mistake(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {"mistake": METHODS[row["method"]], **columns_of(interval_of(row, "ratio{}"), "ratio{}")}
    if row["is_error"]:
        return found | {"status": "error"}
    return found | {"status": "none_found", "detectable": max(1 - row["ratio_low"], row["ratio_high"] - 1)}

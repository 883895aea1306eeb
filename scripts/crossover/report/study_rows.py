"""The first rows of page, summary and terminal output: one answer per study, its bar, and the published value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from crossover.tables.labels import DEVICE_WORDS

Answer = Mapping[str, Any]

CROSSING = ("crossover", "reference", "best")
"""Kinds of answers on a crossover of two sides."""


def main_answers(answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers to a study's question, without those that the page gives once for all studies: memory, and a missing
    GPU."""
    main = [answer for answer in answers if answer["main"] and answer["kind"] != "memory"]
    return [answer for answer in main if answer["status"] != "no_accelerator"] or main


def row_of(main: Sequence[Answer], claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A study's row, from its main answers and claims in the tables.

    `answer`: the first main answer. `also`: the same comparison in the study's other metrics. `last`: the time at the
    other end of the same series, where nothing can be compared. `tuned`: the answer for the fastest configurations,
    where it differs. `told`: all of these. `series`: how many series have a main answer of the same kind.
    """
    first = next((answer for answer in main if answer["kind"] != "best"), main[0])
    alike = [answer for answer in main if answer["kind"] == first["kind"] and answer["cost"] == first["cost"]]
    of_series = [answer for answer in alike if _series(answer) == _series(first)]
    ends = [answer for answer in of_series if answer["kind"] == "step_time"]
    also = [answer for answer in of_series if answer["kind"] == "asked" and answer is not first]
    on_machine = [answer for answer in main if answer["machine"] == first["machine"] and answer is not first]
    tuned = next((answer for answer in on_machine if answer["kind"] == "best" and _changes_the_answer(answer)), None)
    return {
        "answer": first,
        "also": also,
        "last": ends[-1] if len(ends) > 1 else None,
        "tuned": tuned,
        "told": [answer for answer in (first, *also, tuned, *ends[-1:]) if answer is not None],
        "series": len({_series(answer) for answer in alike}),
        "bar": bar_of(first),
        "tuned_bar": bar_of(tuned) if tuned else [],
        "claim": _claim(first, claims),
    }


def _series(answer: Answer) -> tuple[Any, Any]:
    return answer["series"], answer["device"]


def _changes_the_answer(best: Answer) -> bool:
    """Whether the fastest configurations give a different status or crossover than the plain ones."""
    if best["status"] not in ("bracketed", "reversed", "below_range", "above_range"):
        return False
    if best["status"] != best["moved_status"]:
        return True
    low, high = _interval(best)
    plain = best["moved_from"]
    return plain is not None and not (low or 0) <= plain <= (high or math.inf)


def _interval(answer: Answer) -> tuple[float | None, float | None]:
    """The 95 % interval of a crossover; with one trial, its bracket."""
    if answer["low"] is None and answer["high"] is None:
        return answer["bracket_low"], answer["bracket_high"]
    return answer["low"], answer["high"]


def _claim(answer: Answer, claims: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The published claim closest to the answer: about a crossover if the answer is, and on the same machine. None if
    all claims are about another device.
    """

    def nearness(claim: Mapping[str, Any]) -> tuple[bool, bool]:
        on_crossover = claim["form"] == "crossover_between"
        return on_crossover == (answer["kind"] in CROSSING), claim["machine"] == answer["machine"]

    def is_of_device(claim: Mapping[str, Any]) -> bool:
        devices = {*DEVICE_WORDS.values()}.intersection(re.findall(r"\w+", claim["where"] or ""))
        if answer["kind"] in CROSSING or not devices or not answer["device"]:
            return True
        return answer["device"].split()[0] in devices

    published = [claim for claim in claims if claim["source"] != "ours" and is_of_device(claim)]
    return max(published, key=nearness, default=None)


def bar_of(answer: Answer) -> list[dict[str, Any]]:
    """The faster side over the measured sizes: parts with side (cpu, gpu, inconclusive), ends, and share. It is
    inconclusive within the interval, and if there is no crossover. Shares are on the log scale; without a crossover's
    axis there are no parts.
    """
    smallest, largest = answer["smallest"], answer["largest"]
    if answer["kind"] not in CROSSING or answer["cost"] != "time" or smallest is None or not 0 < smallest < largest:
        return []
    winner, loser, unknown = answer["winner"], answer["loser"], "inconclusive"
    low, high = _interval(answer)
    sides = {
        "bracketed": (loser, unknown, winner),
        "reversed": (winner, unknown, loser),
        "below_range": (winner,),
        "above_range": (winner,),
        "edge_tie": (unknown,) if answer["reach"] is None else (winner, unknown) if high is None else (unknown, winner),
    }.get(answer["status"], (unknown,))
    inner = {1: [], 2: [answer["reach"]], 3: [low or smallest, high or largest]}[len(sides)]
    ends = [min(max(end, smallest), largest) for end in (smallest, *inner, largest)]
    whole = math.log(largest / smallest)
    return [
        {"side": _kind(side), "low": low, "high": high, "share": math.log(high / low) / whole}
        for side, low, high in zip(sides, ends, ends[1:], strict=False)
        if high > low
    ]


def _kind(side: str) -> str:
    """cpu or gpu, by the name of a side."""
    return side if side == "inconclusive" else "cpu" if "CPU" in side else "gpu"

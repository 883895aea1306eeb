"""What the report says first about a study: one answer, its bar, and the published claim to compare with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from crossover.tables.labels import DEVICE_WORDS
from crossover.tables.registry import METHODS

Answer = Mapping[str, Any]

CROSSING = ("crossover", "reference", "best")


def main_answers(answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The main answers of a study, without the one on memory, which the report gives once for all studies."""
    main = [answer for answer in answers if answer["main"] and answer["kind"] != "memory"]
    return [answer for answer in main if answer["status"] != "no_accelerator"] or main


def has_crossover(main: Sequence[Answer]) -> bool:
    """Whether a study looks for a crossover."""
    return any(answer["kind"] in CROSSING for answer in main)


def row_of(main: Sequence[Answer], claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The variables of a study's row, from its main answers and its claims, among them:

    - `answer`: the first main answer
    - `also`: the same comparison in the study's other metrics
    - `last`: the time at the largest size, if `answer` is the time at the smallest
    - `tuned`: the answer for the fastest configurations, if tuning changes it
    - `series`: the number of pairs of series and device with a main answer of the same kind and cost
    """
    first = next((answer for answer in main if answer["kind"] != "best"), main[0])
    same_kind = [answer for answer in main if answer["kind"] == first["kind"] and answer["cost"] == first["cost"]]
    same_series = [answer for answer in same_kind if _series(answer) == _series(first)]
    ends = [answer for answer in same_series if answer["kind"] == "step_time"]
    also = [answer for answer in same_series if answer["kind"] == "asked" and answer is not first]
    best = [answer for answer in main if answer["kind"] == "best" and answer["machine"] == first["machine"]]
    tuned = next((answer for answer in best if answer is not first and _is_changed_by_tuning(answer)), None)
    return {
        "answer": first,
        "also": also,
        "last": ends[-1] if len(ends) > 1 else None,
        "tuned": tuned,
        "shown": [answer for answer in (first, *also, tuned, *ends[-1:]) if answer is not None],
        "series": len({_series(answer) for answer in same_kind}),
        "bar": bar_of(first),
        "tuned_bar": bar_of(tuned) if tuned else [],
        "claim": _closest_claim(first, claims),
    }


def _series(answer: Answer) -> tuple[Any, Any]:
    return answer["series"], answer["device"]


def _is_changed_by_tuning(best: Answer) -> bool:
    """Whether tuning changes a crossover's status, or moves it significantly."""
    if best["status"] not in ("bracketed", "reversed", "below_range", "above_range"):
        return False
    if best["status"] != best["moved_status"]:
        return True
    low, high = _interval(best)
    untuned = best["moved_from"]
    return untuned is not None and not (low or 0) <= untuned <= (high or math.inf)


def _interval(answer: Answer) -> tuple[float | None, float | None]:
    """The 95 % interval of a crossover or, without one, its bracket."""
    if answer["low"] is None and answer["high"] is None:
        return answer["bracket_low"], answer["bracket_high"]
    return answer["low"], answer["high"]


def _closest_claim(answer: Answer, claims: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The published claim closest to an answer: first if both are on a crossover, then by quantity, then by machine."""

    def nearness(claim: Mapping[str, Any]) -> tuple[bool, bool, bool]:
        on_crossover = claim["form"] == "crossover_between"
        metrics = [metric for metric in (claim["metric"], claim["over_metric"]) if metric]
        same_quantity = answer["quantity"] in [*metrics, *(METHODS.get(metric) for metric in metrics)]
        return on_crossover == (answer["kind"] in CROSSING), same_quantity, claim["machine"] == answer["machine"]

    def may_be_on_device(claim: Mapping[str, Any]) -> bool:
        devices = {*DEVICE_WORDS.values()}.intersection(re.findall(r"\w+", claim["condition"] or ""))
        if answer["kind"] in CROSSING or not devices or not answer["device"]:
            return True
        return answer["device"].split()[0] in devices

    published = [claim for claim in claims if claim["source"] != "ours" and may_be_on_device(claim)]
    return max(published, key=nearness, default=None)


def bar_of(answer: Answer) -> list[dict[str, Any]]:
    """Parts of a bar over the measured sizes, on a log scale. The part within the interval is inconclusive.

    `side` is cpu, gpu, other (the side behind, of two on like devices) or inconclusive; `label` is its name.
    """
    smallest, largest = answer["smallest"], answer["largest"]
    if answer["kind"] not in CROSSING or answer["cost"] != "time" or smallest is None or not 0 < smallest < largest:
        return []
    winner, loser, neither = answer["winner"], answer["loser"], "inconclusive"
    low, high = _interval(answer)
    sides = {
        "bracketed": (loser, neither, winner),
        "reversed": (winner, neither, loser),
        "below_range": (winner,),
        "above_range": (winner,),
        "edge_tie": (neither,) if answer["reach"] is None else (winner, neither) if high is None else (neither, winner),
    }.get(answer["status"], (neither,))
    inner = {1: [], 2: [answer["reach"]], 3: [low or smallest, high or largest]}[len(sides)]
    ends = [min(max(end, smallest), largest) for end in (smallest, *inner, largest)]
    whole = math.log(largest / smallest)
    return [
        {**_side(side, answer), "low": low, "high": high, "share": math.log(high / low) / whole}
        for side, low, high in zip(sides, ends, ends[1:], strict=False)
        if high > low
    ]


def _side(name: str, answer: Answer) -> dict[str, str]:
    if name == "inconclusive":
        return {"side": name, "label": "…"}
    device = _device_in(name)
    if _device_in(answer["winner"]) != _device_in(answer["loser"]):
        return {"side": device.lower(), "label": device}
    return {"side": "other" if name == answer["loser"] else device.lower(), "label": name.partition(" on the ")[0]}


def _device_in(name: str) -> str:
    return "CPU" if "CPU" in name else "GPU"

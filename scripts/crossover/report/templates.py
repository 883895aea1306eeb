"""The Jinja environment with its filters, and the first answer, which is printed during a run."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crossover.config.statuses import FLAGS, STATUSES
from crossover.report.provenance import DOCS, GROUPS
from crossover.report.study_rows import main_answers, row_of
from crossover.statistics.crossover import ESTIMATED
from crossover.tables.frames import records
from crossover.tables.labels import metric_title
from crossover.text import (
    bytes_text,
    cores_text,
    listed,
    number_text,
    percent_text,
    place_text,
    place_texts,
    rate_text,
    seconds_text,
    share_text,
    spaced,
    with_unit,
)


def first_answer(answers: pd.DataFrame, measured: int, sizes: int, templates: Path) -> str:
    """The line on a study's first answer. It omits the caveat on single trials, since every first answer has it."""
    main = main_answers(records(answers))
    main = [row | {"caveats": [caveat for caveat in row["caveats"] if caveat != "one_trial"]} for row in main]
    template = environment_of(templates).get_template("first_answer.txt.j2")
    return template.render(row=row_of(main, ()), measured=measured, sizes=sizes)


class Templates(Environment):
    """A Jinja environment in which `mapping[key]` never returns an attribute, such as the method `values`."""

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return obj[argument]
        except (LookupError, TypeError):
            return self.undefined(obj=obj, name=argument)


@cache
def environment_of(templates: Path, html: bool = False) -> Environment:
    """The Jinja environment of a folder of templates, which compiles each template once."""
    environment = Templates(
        loader=FileSystemLoader(templates),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {**FILTERS, "alike": alike, "merged": merged, "metric": metric_title, "yaml": as_yaml}
    environment.globals |= {
        "flags": {name: word.count for name, word in FLAGS.items()},
        "statuses": {name: word.count for name, word in STATUSES.items()},
        "fact_groups": GROUPS,
        "fact_docs": DOCS,
        "inline": lambda name: _inline(templates / "page" / name),
        "packed": lambda name: _packed(templates / "page" / name),
    }
    return environment


def alike(answers: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Group answers whose sentences differ at most in their numbers and in the series."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for answer in answers:
        key = *(answer[name] for name in IN_SENTENCE), answer["reach"] is None, not answer["compared_at"]
        if answer["kind"] == "reference":  # its sentence is on the ends that are known
            key = *key, answer["reason"], *(end is None for end in known_ends(answer))
        groups.setdefault(key, []).append(answer)
    return list(groups.values())


IN_SENTENCE = ("kind", "status", "cost", "winner", "loser", "device", "quantity", "place")


def merged(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first answer of a group of `alike`, with `every_value`, all compared points and the largest `detectable`."""
    return {
        **(weakest(answers) if answers[0]["kind"] == "reference" else answers[0]),
        "detectable": max((answer["detectable"] for answer in answers if answer["detectable"]), default=None),
        "compared_at": sorted({point for answer in answers for point in answer["compared_at"]}),
        "every_value": [answer["value"] for answer in answers],
    }


SPANNED = {"smallest": min, "largest": max, "ratio_low": min, "ratio_high": max}


def weakest(estimates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What each estimate of a group of `alike` allows: the shortest lead, or an interval that covers all of theirs.

    `strongest` is the end of the longest lead, if that differs; otherwise None.
    """
    lows, highs = zip(*map(known_ends, estimates), strict=True)
    columns = {name: [estimate[name] for estimate in estimates] for name in (*SPANNED, "reach")}
    is_up_to, has_reach = lows[0] is not None, columns["reach"][0] is not None
    shortest, longest = (min, max) if is_up_to else (max, min)
    ends = columns["reach"] if has_reach else lows if is_up_to else highs
    is_lead = estimates[0]["status"] in ESTIMATED and (has_reach or is_up_to != (highs[0] is not None))
    return {
        **estimates[0],
        **{name: span(columns[name]) for name, span in SPANNED.items() if None not in columns[name]},
        **({"reach": shortest(columns["reach"])} if has_reach else {}),
        "low": min(lows) if is_up_to else None,
        "high": max(highs) if highs[0] is not None else None,
        "bracket_low": None,
        "bracket_high": None,
        "strongest": longest(ends) if is_lead and longest(ends) != shortest(ends) else None,
    }


def known_ends(answer: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The ends of a crossover's interval or, without one, of its bracket; None for an open end.

    An interval is open where it reaches the end of the measured range.
    """
    if answer["low"] is None and answer["high"] is None:
        return answer["bracket_low"], answer["bracket_high"]
    ends = ((answer["low"], answer["smallest"]), (answer["high"], answer["largest"]))
    low, high = (None if end == last else end for end, last in ends)
    return low, high


def is_one_sided(answer: Mapping[str, Any]) -> bool:
    """Whether an estimate names a side that is ahead at the 95 % level, without an interval."""
    if answer["trials"] == 1 or (answer["status"] == "edge_tie" and answer["reach"] is None):
        return False
    if answer["status"] in ("bracketed", "reversed"):
        return known_ends(answer).count(None) == 1
    return answer["status"] in ("below_range", "above_range", "edge_tie")


def _inline(path: Path) -> Markup:
    text = path.read_text(encoding="utf-8")
    return Markup(text.replace("</script", "<\\/script").replace("</style", "<\\/style"))


def _packed(path: Path) -> str:
    """A file as gzip in base64, without a time stamp so that the page is reproducible."""
    return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()


def as_yaml(values: Any) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)


def amount_text(value: float, unit: str) -> str:
    """Format a value with its unit, or a position on an axis without its unit."""
    return _OF_UNIT[unit](value) if unit in _OF_UNIT else place_text(value, unit)


def position_text(value: float, unit: str) -> str:
    """Format a value, or a position on an axis, with its unit."""
    return with_unit(amount_text(value, unit), unit)


def interval_text(values: Sequence[float], unit: str) -> str:
    """Format an interval of values with their units, or of positions on an axis as `place_texts` does."""
    texts = [_OF_UNIT[unit](value) for value in values] if unit in _OF_UNIT else place_texts(values, unit)
    return " to ".join(dict.fromkeys(texts))


def places_text(values: Sequence[float], unit: str) -> str:
    """List positions on an axis, with their unit at the end unless `place_texts` adds it to each."""
    return with_unit(listed(place_texts(values, unit)), unit)


def range_text(values: Sequence[float], unit: str) -> str:
    """Format the smallest and the largest of several positions on an axis, with their unit."""
    return with_unit(interval_text([min(values), max(values)], unit), unit)


def off_text(ratio: float) -> str:
    """Format the deviation of a ratio from 1: 'under 1 %', '48 %', or as a factor."""
    if abs(ratio - 1) < 0.01:
        return "under 1 %"
    return share_text(abs(ratio - 1)) if 0.5 < ratio < 2 else f"{max(ratio, 1 / ratio):.2g}x"


def signed_text(value: float) -> str:
    """Format a difference: +0.00012."""
    return f"{value:+.5f}"


def span_text(values: Iterable[float], name: str) -> str:
    """Format the smallest and the largest value with the filter `name`."""
    ordered = sorted(values)
    return " to ".join(dict.fromkeys(FILTERS[name](value) for value in (ordered[0], ordered[-1])))


def escaped_markdown(text: object) -> str:
    """Escape text for Markdown, including its tables."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~@&$])", r"\\\1", str(text)).split())


def in_code(text: str) -> str:
    """Format text as inline code in Markdown."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    words = " ".join(text.splitlines())
    return f"{fence} {words} {fence}" if len(fence) > 1 else f"{fence}{words}{fence}"


_OF_UNIT: Mapping[str, Callable[[float], str]] = {
    "times": number_text,
    "share": percent_text,
    "difference": signed_text,
    "samples/s": rate_text,
    "s": seconds_text,
    "B": bytes_text,
    "cores": cores_text,
}

FILTERS: Mapping[str, Callable[..., Any]] = {
    "amount": amount_text,
    "position": position_text,
    "interval": interval_text,
    "is_one_sided": is_one_sided,
    "known_ends": known_ends,
    "places": places_text,
    "range": range_text,
    "bytes": bytes_text,
    "code": in_code,
    "cores": cores_text,
    "count": lambda value: f"{value:,.0f}",
    "escaped": escaped_markdown,
    "listed": listed,
    "number": number_text,
    "off": off_text,
    "off_percent": lambda ratio: percent_text(abs(ratio - 1)),
    "percent": percent_text,
    "rate": rate_text,
    "seconds": seconds_text,
    "signed": signed_text,
    "spaced": spaced,
    "span": span_text,
}

"""The Jinja environment with its filters, and the first answer, which is printed during a run."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crossover.config.options import report_command
from crossover.config.statuses import FLAGS, STATUSES
from crossover.report.provenance import DOCS, GROUPS
from crossover.report.study_rows import bar_of, main_answers, row_of
from crossover.tables.labels import PROTOCOL_WORDS, metric_title
from crossover.text import bytes_text, number_text, percent_text, seconds_text, spaced, with_noun
from crossover.topics.answer import group_alike, of_series, summed
from crossover.topics.answers import read_answers
from crossover.topics.caveats import CAVEAT_WORDS
from crossover.topics.wording import amount_text, ends_text, signed_text, span_text


def first_answer(answers: pd.DataFrame, measured: int, sizes: int) -> str:
    """The line on a study's first answer. It omits the caveat on single trials, since every first answer has it."""
    main = main_answers([replace(answer, told=["one_trial"]) for answer in read_answers(answers)])
    row, basis = row_of(main, ()), "per cell" if measured == sizes else f"at {measured} of {sizes} sizes"
    return f"First answer, preliminary (one trial {basis}): {row.answer.study}: {row.text()}\n"


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
    environment.filters |= FILTERS
    environment.globals |= {
        "report_command": report_command,
        "flags": {name: word.count for name, word in FLAGS.items()},
        "caveats": CAVEAT_WORDS,
        "protocol_words": PROTOCOL_WORDS,
        "summed": summed,
        "of_series": of_series,
        "statuses": {name: word.count for name, word in STATUSES.items()},
        "fact_groups": GROUPS,
        "fact_docs": DOCS,
        "inline": lambda name: _inline(templates / "page" / name),
        "packed": lambda name: _packed(templates / "page" / name),
    }
    return environment


def _inline(path: Path) -> Markup:
    text = path.read_text(encoding="utf-8")
    return Markup(text.replace("</script", "<\\/script").replace("</style", "<\\/style"))


def _packed(path: Path) -> str:
    """A file as gzip in base64, without a time stamp so that the page is reproducible."""
    return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()


def escaped_markdown(text: object) -> str:
    """Escape text for Markdown, including its tables."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~@&$])", r"\\\1", str(text)).split())


def in_code(text: str) -> str:
    """Format text as inline code in Markdown."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    words = " ".join(text.splitlines())
    return f"{fence} {words} {fence}" if len(fence) > 1 else f"{fence}{words}{fence}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "alike": group_alike,
    "amount": amount_text,
    "ends": ends_text,
    "bytes": bytes_text,
    "code": in_code,
    "count": lambda value: f"{value:,.0f}",
    "escaped": escaped_markdown,
    "metric": metric_title,
    "noun": with_noun,
    "number": number_text,
    "parts_of_bar": bar_of,
    "percent": percent_text,
    "seconds": seconds_text,
    "signed": signed_text,
    "spaced": spaced,
    "span": lambda values, name: span_text(values, FILTERS[name]),
    "yaml": partial(yaml.safe_dump, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None),
}

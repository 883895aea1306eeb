"""What the templates may use, and the lines that they print while a run goes on."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crossover.config.words import FLAGS, STATUSES
from crossover.report.formats import FILTERS
from crossover.report.machine_facts import DOCS, GROUPS
from crossover.report.study_rows import main_answers, row_of
from crossover.tables.frames import records
from crossover.tables.labels import metric_title


def first_answer(answers: pd.DataFrame, measured: int, sizes: int, templates: Path) -> str:
    """The line for a study that has one trial a cell at `measured` of its `sizes`.

    It is what the study's row says at the end, without the caveat that all of it shares.
    """
    main = main_answers(records(answers))
    told = [row | {"doubts": [doubt for doubt in row["doubts"] if doubt != "one_trial"]} for row in main]
    template = environment_of(templates).get_template("first_answer.txt.j2")
    return template.render(row=row_of(told, ()), measured=measured, sizes=sizes)


def environment_of(templates: Path, html: bool = False) -> Environment:
    """What the templates of a folder may use; `html`: what they print is escaped."""
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {**FILTERS, "alike": alike, "metric": metric_title, "yaml": as_yaml}
    environment.globals |= {
        "flags": {name: word.count for name, word in FLAGS.items()},
        "statuses": {name: word.count for name, word in STATUSES.items()},
        "fact_groups": GROUPS,
        "fact_docs": DOCS,
        "inline": lambda name: _asset(templates / "page" / name),
        "packed": lambda name: _packed(templates / "page" / name),
    }
    return environment


def alike(answers: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The answers in groups that have kind, status, cost and sides in common."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for answer in answers:
        key = tuple(answer[name] for name in ("kind", "status", "cost", "winner", "loser", "device"))
        groups.setdefault(key, []).append(answer)
    return list(groups.values())


def _asset(path: Path) -> Markup:
    """A style sheet or script as the inside of its element, whose end tag must not stand in it."""
    text = path.read_text(encoding="utf-8")
    return Markup(text.replace("</script", "<\\/script").replace("</style", "<\\/style"))


def _packed(path: Path) -> str:
    """A file as gzip in base64, the same in every page."""
    return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()


def as_yaml(values: Any) -> str:
    """Plain values as a file of the config has them."""
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)

"""A study as the report tells it: answers, figures, claims and what else was asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.analysis.answers import asks_for_crossovers, timed_answers
from crossover.analysis.claim_words import claim_group
from crossover.analysis.cores_words import cores_view
from crossover.analysis.cost_models import model_words
from crossover.analysis.largest_batches import searches_view
from crossover.analysis.memory_words import memory_answers
from crossover.analysis.naming import varying
from crossover.analysis.other_crossovers import other_crossovers, transfers
from crossover.analysis.quality import METRICS
from crossover.analysis.quality_words import quality_answer, quality_view
from crossover.analysis.report_figures import FigureFile
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.tables import LINE_AXES, records
from crossover.analysis.trust import trust_words


def study_section(
    name: str, spec: Mapping[str, Any], tables: ReportTables, figures: Sequence[FigureFile]
) -> dict[str, Any]:
    """All that the page says of a study; `spec` is the study's file, completed with defaults."""
    return (
        _measured(name, spec, tables, figures)
        | _quality(name, tables.quality)
        | _searches(name, tables.searches)
        | {"cost_models": _cost_models(name, spec, tables.cost_models)}
        | _cores_worth(name, tables.cores_worth)
        | claim_group(tables.claims[tables.claims["study"] == name], spec["published"])
    )


def _measured(
    name: str, spec: Mapping[str, Any], tables: ReportTables, figures: Sequence[FigureFile]
) -> dict[str, Any]:
    of_study = tables.crossovers[tables.crossovers["study"] == name]
    trials = tables.measurements[tables.measurements["study"] == name]
    own = tables.cells[tables.cells["study"] == name]
    asks_where = asks_for_crossovers(spec)
    return {
        "name": name,
        "title": spec["title"],
        "question": spec["question"],
        "published": spec["published"],
        "devices": spec.get("devices"),
        "answers": timed_answers(name, spec, tables),
        "figures": [figure for figure in figures if figure.study == name],
        "transfers": transfers(of_study) if asks_where else [],
        "others": other_crossovers(of_study) if asks_where else [],
        "trust": trust_words(own),
        "memory": memory_answers(trials, _searched(tables.searches, name)),
        "count": len(own),
    }


def _quality(name: str, quality: pd.DataFrame | None) -> dict[str, Any]:
    """What a study's trained models add to its section; nothing where it trains none."""
    if quality is None or (own := quality[quality["study"] == name]).empty:
        return {"quality": None}
    return {"quality": {"answer": quality_answer(own), "rows": quality_view(own), "metrics": METRICS}}


def _searches(name: str, searches: pd.DataFrame | None) -> dict[str, Any]:
    """The largest batches of a study; nothing where it has none searched."""
    own = _searched(searches, name)
    return {"searches": [] if own is None else searches_view(own)}


def _searched(searches: pd.DataFrame | None, name: str) -> pd.DataFrame | None:
    return None if searches is None else searches[searches["study"] == name]


def _cost_models(name: str, spec: Mapping[str, Any], models: pd.DataFrame) -> list[dict[str, str]]:
    """The cost models beside a study's figure of times; none where it has no such figure."""
    if "times" not in spec["figures"]:
        return []
    own = models[models["study"] == name]
    several = varying(own, LINE_AXES)
    return [model_words(row, several) for row in records(own)]


def _cores_worth(name: str, table: pd.DataFrame | None) -> dict[str, Any]:
    """What the numbers of cores add to a study's section; nothing where the CPU ran on all of them only."""
    own = None if table is None else table[table["study"] == name]
    return {"cores": None if own is None or own.empty else cores_view(own)}

"""A study as the report tells it: answers, figures, claims and what else was asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.answers import answers_at_length
from crossover.answers.claim_words import claim_group
from crossover.answers.cores_words import cores_rows
from crossover.answers.memory_words import memory_answers
from crossover.answers.naming import varying
from crossover.answers.other_crossovers import other_crossovers, transfers
from crossover.answers.quality_words import quality_view
from crossover.answers.side_by_side import side_by_side
from crossover.answers.trust import trust_words
from crossover.plan.stages import asks_for_crossovers
from crossover.report.report_figures import FigureFile
from crossover.report.report_tables import ReportTables
from crossover.statistics.cost_models import model_words
from crossover.statistics.largest_batches import searches_view
from crossover.statistics.quality import METRICS
from crossover.tables.frames import CELL_AXES, LINE_AXES, records

PLACE_AXES = [axis for axis in CELL_AXES if axis not in ("study", "machine", "device")]
FEWEST_PLACES = 3
"""Fewer sizes, batches, precisions and so on, whatever the devices, show nothing in a chart that a table does not."""


def study_section(
    name: str, spec: Mapping[str, Any], tables: ReportTables, figures: Sequence[FigureFile]
) -> dict[str, Any]:
    """All that the page says of a study; `spec` is the study's file, completed with defaults."""
    own = tables.of_study(name)
    return (
        {"name": name, "figures": [figure for figure in figures if figure.study == name]}
        | _measured(spec, own)
        | _quality(own.quality)
        | {"searches": [] if own.searches is None else searches_view(own.searches)}
        | {"cost_models": _cost_models(spec, own.cost_models)}
        | {"cores": [] if own.cores_worth is None else cores_rows(own.cores_worth)}
        | claim_group(own.claims, spec["published"])
    )


def _measured(spec: Mapping[str, Any], own: ReportTables) -> dict[str, Any]:
    asks_where = asks_for_crossovers(spec["figures"])
    return {
        "title": spec["title"],
        "question": spec["question"],
        "published": spec["published"],
        "devices": spec.get("devices"),
        "answers": answers_at_length(spec, own),
        "transfers": transfers(own.crossovers) if asks_where else [],
        "others": other_crossovers(own.crossovers) if asks_where else [],
        "trust": trust_words(own.cells),
        "machines": side_by_side(own.measurements),
        "memory": memory_answers(own.measurements, own.searches),
        "count": len(own.cells),
        "explorable": len(own.cells.drop_duplicates(PLACE_AXES)) >= FEWEST_PLACES,
    }


def _quality(trained: pd.DataFrame | None) -> dict[str, Any]:
    """What a study's trained models add to its section; nothing where it trains none."""
    if trained is None:
        return {"quality": None}
    return {"quality": {"rows": quality_view(trained), "metrics": METRICS}}


def _cost_models(spec: Mapping[str, Any], models: pd.DataFrame) -> list[dict[str, str]]:
    """The cost models beside a study's figure of times; none where it has no such figure."""
    if "times" not in spec["figures"]:
        return []
    several = varying(models, LINE_AXES)
    return [model_words(row, several) for row in records(models)]

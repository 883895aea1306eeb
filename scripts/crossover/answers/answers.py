"""Make the table of answers of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from crossover.answers.bottlenecks import bottleneck_answers
from crossover.answers.comparisons import asked_answers, comparison_answers, without_accelerator
from crossover.answers.crossovers import (
    ONE_SIDED,
    best_answers,
    crossover_answers,
    payback_answers,
    transfer_answers,
)
from crossover.answers.machines import bound_answers, elsewhere_answers, ranking_answers, reference_answers
from crossover.answers.memory import largest_batch_answers, memory_answers
from crossover.answers.quality import quality_answer
from crossover.answers.vocabulary import Row, by_importance, estimate
from crossover.config.claim_forms import OURS, CrossoverBetween
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.models import DEFAULT_BATCH_SIZE
from crossover.config.study import Study
from crossover.config.words import HERE, X_AXES, is_cpu
from crossover.statistics.intervals import Interval, columns_of
from crossover.statistics.references import PAIR as REFERENCE
from crossover.statistics.references import host_paces
from crossover.tables.frames import records, rows_with, studies_with_idle_size
from crossover.tables.labels import name_by
from crossover.tables.run_tables import RunTables, table_of
from crossover.text import listed

LISTS = ("near", "compared_at", "winner_configurations", "loser_configurations", "caveats")
"""Columns whose empty value is an empty list."""


def answers_of(tables: RunTables, studies: Mapping[str, Study], together: Mapping[str, int]) -> pd.DataFrame:
    """One row per answer, study by study.

    `studies` maps names to study files completed with defaults, `together` to the number of comparisons for which each
    one is corrected.
    """
    x_axes = {name: spec.x_axis for name, spec in studies.items()}
    paces = host_paces(tables.ratios[tables.ratios["pair"] == REFERENCE], x_axes)
    rows = [
        {"study": name, "machine": HERE, "main": False, "holds_in_runs": False, "corrected_for": together[name]}
        | {column: [] for column in LISTS}
        | row
        | _pace(row, paces)
        for name, spec in studies.items()
        for row in _study_answers(by_relevance(tables.of_study(name), spec), spec, together[name])
    ]
    ordered = [row | {"caveats": by_importance(row["caveats"])} for row in _with_fullest_memory_as_main(rows)]
    return table_of("answers", ordered)


def _pace(row: Row, paces: Mapping[str, Interval]) -> Row:
    """The columns on this CPU beside that of a GPU measured elsewhere."""
    pace = paces.get(row.get("machine", HERE)) if row["kind"] == "reference" else None
    return columns_of(pace, "factor{}") if pace else {}


def by_relevance(tables: RunTables, spec: Study) -> RunTables:
    """The tables of a study, with its most relevant crossovers first.

    These match the first published claim on a crossover. Without such a claim, they have a known position or bound.
    """
    published = [claim.form for claim in spec.claims if claim.source != OURS]
    where = next((form.where for form in published if isinstance(form, CrossoverBetween)), None)
    crossovers = tables.crossovers
    if where is None:
        bounds = crossovers[["crossover_low", "crossover_high", "bracket_low", "bracket_high"]].notna().any(axis=1)
        first = crossovers[crossovers["status"].isin(ONE_SIDED[:2]) | bounds]
    else:
        first = rows_with(crossovers, list(where), where)
    return replace(tables, crossovers=pd.concat([first, crossovers.drop(first.index)]))


def _study_answers(tables: RunTables, spec: Study, together: int) -> list[Row]:
    answers = _time_answers(tables, spec, together) if (tables.cells["trials"] > 0).any() else []
    if len(tables.quality):
        answers.append(quality_answer(tables.quality))
    if not any(row.get("main") for row in answers):
        answers.insert(0, _missing_answer(tables.cells, spec))
    if batch := _requested_batch(spec):
        answers = [_of_batch(row, batch) if row.get("main") else row for row in answers]
    answers += bottleneck_answers(tables.cells, spec.x_axis)
    answers += memory_answers(tables.cells) + largest_batch_answers(tables.searched_cells)
    return answers + [_claim_answer(claim) for claim in records(tables.claims)]


def _requested_batch(spec: Study) -> str | None:
    """The only batch size of a user's model, unless it is the default, which nobody asked for."""
    if not spec.user_model or len(spec.batch_sizes) != 1:
        return None
    (batch_size,) = spec.batch_sizes
    usual = DEFAULT_BATCH_SIZE if spec.user_model.batched else 1
    return None if batch_size == usual else name_by({"batch_size": batch_size}, ["batch_size"])


def _of_batch(answer: Row, batch: str) -> Row:
    return answer | {"series": ", ".join(filter(None, [batch, answer.get("series")]))}


def _time_answers(tables: RunTables, spec: Study, together: int) -> list[Row]:
    asks = spec.asks
    for_figures = _answers_for_figures(tables, spec, together)
    if asks is None:
        return for_figures
    return asked_answers(tables, asks, together) + [row | {"main": False} for row in for_figures]


def _answers_for_figures(tables: RunTables, spec: Study, together: int) -> list[Row]:
    x_axis = spec.x_axis
    idle = _idle_size_answers(tables)
    if idle and X_AXES[x_axis] == "size":
        return idle + comparison_answers(_at_one_size(tables), spec, together)
    if not asks_for_crossovers(spec.figures):
        elsewhere = elsewhere_answers(tables, x_axis, together) if _is_cpu_alone(tables) else []
        return comparison_answers(tables, spec, together) + elsewhere + idle
    crossovers = crossover_answers(tables, spec.steps_per_run)
    paybacks = payback_answers(tables, x_axis, has_run=spec.steps_per_run is not None)
    alone = all(row["status"] == "no_accelerator" for row in crossovers if row["main"])
    elsewhere = reference_answers(tables, x_axis, accelerated=not alone)
    if alone:
        if elsewhere:
            crossovers = [row for row in crossovers if row["status"] != "no_accelerator"]
        measured = crossovers + without_accelerator(tables, x_axis)
        crossovers = elsewhere + [row | {"main": row["main"] and not elsewhere} for row in measured]
        elsewhere = elsewhere_answers(tables, x_axis, together) + bound_answers(tables, x_axis)
    # Beside its only CPU, GPUs measured elsewhere have the estimates, which allow for that CPU.
    ranking = [] if alone and tables.cells["machine"].nunique() == 1 else ranking_answers(tables, x_axis)
    further = paybacks + ranking + transfer_answers(tables, x_axis, together)
    return crossovers + best_answers(tables, x_axis, together) + further + elsewhere + idle


def _idle_size_answers(tables: RunTables) -> list[Row]:
    """The answer that a model does not use its size; empty if it does, or if its work is not counted."""
    if not studies_with_idle_size(tables.measurements):
        return []
    cells = tables.cells.sort_values("size")
    return [
        {
            "kind": "idle_size",
            "main": True,
            "status": "measured",
            "near": cells["size"].unique().tolist(),
            "unit": cells["size_name"].iloc[0],
            "place": listed(cells["size_label"].dropna().unique().tolist()),
        }
    ]


def _at_one_size(tables: RunTables) -> RunTables:
    """The tables with the cells and ratios of the smallest size."""
    size = tables.cells["size"].min()
    parts = {name: getattr(tables, name) for name in ("cells", "ratios", "measurements")}
    return replace(tables, **{name: table[table["size"] == size] for name, table in parts.items()})


def _is_cpu_alone(tables: RunTables) -> bool:
    return all(map(is_cpu, tables.cells["device"]))


def _missing_answer(cells: pd.DataFrame, spec: Study) -> Row:
    asks = spec.asks
    if cells.empty:
        status = "other_devices" if spec.devices else "not_measured"
    elif not (cells["trials"] > 0).any():
        status = "no_result"
    else:
        status = "not_both" if asks else "see_figures"
    reason = cells["reason"].iloc[0] if status == "no_result" else None
    if asks and status == "not_both":
        winner, loser = (name_by(side, side) for side in (asks.of, asks.over))
    else:
        winner, loser = ", ".join(spec.devices or ()), None
    return {"kind": "missing", "main": True, "status": status, "winner": winner, "loser": loser, "reason": reason}


def _claim_answer(claim: Mapping[str, Any]) -> Row:
    return {
        "kind": "claim",
        "machine": claim["machine"],
        "series": claim["statement"],
        "status": claim["verdict"],
        **estimate(claim, "measured"),
        "quantity": claim["metric"] or claim["form"],
        "published": claim["published"],
        "verdict": claim["verdict"],
        "caveats": claim["caveats"],
    }


def _with_fullest_memory_as_main(rows: Sequence[Row]) -> list[Row]:

    def fullness(row: Row) -> tuple[int, float]:
        return row["lost"], (row["value"] or 0) / row["capacity"] if row["capacity"] else 0

    fullest = max((row for row in rows if row["kind"] == "memory"), key=fullness, default=None)
    return [row | {"main": True} if row is fullest else row for row in rows]

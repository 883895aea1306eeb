"""Make the table of answers of a run, and read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from crossover.config.claim_forms import OURS, CrossoverBetween
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.models import DEFAULT_BATCH_SIZE
from crossover.config.studies import Refinement
from crossover.config.study import Study
from crossover.config.words import X_AXES, is_cpu
from crossover.tables.frames import first_row, records, rows_with, studies_with_idle_size
from crossover.tables.labels import name_by
from crossover.tables.run_tables import RunTables, table_of
from crossover.text import listed
from crossover.topics.answer import COMMON, KINDS, Answer
from crossover.topics.asked import asked_answers
from crossover.topics.bottlenecks.answers import bottleneck_answers
from crossover.topics.candidates import best_answers
from crossover.topics.caveats import by_importance
from crossover.topics.cold import cold_answers
from crossover.topics.comparisons import comparison_answers, cpu_answers
from crossover.topics.crossovers.answers import LEADS, crossover_answers
from crossover.topics.largest_batch import largest_batch_answers
from crossover.topics.loading import transfer_answers
from crossover.topics.memory.answers import Memory, memory_answers
from crossover.topics.payback import payback_answers
from crossover.topics.plane import plane_answers
from crossover.topics.quality.answers import quality_answer
from crossover.topics.ranking.answers import Ranking, ranking_answers
from crossover.topics.references.answers import (
    bound_answers,
    elsewhere_answers,
    no_estimate_answers,
    reference_answers,
    set_up_answers,
)
from crossover.topics.several_gpus import communication_answers
from crossover.topics.wording import points_text


@dataclass(frozen=True, kw_only=True)
class IdleSize(Answer):
    """A model that does not use its size."""

    kind = "idle_size"
    in_sentence = ("names",)

    sizes: Sequence[int]
    unit: str
    names: str
    """Names of the sizes, if they have any."""

    def sentence(self) -> str:
        about = "No crossover over the size: the model has the same parameters and operations"
        at = self.names or points_text(self.sizes, self.unit)
        return f"{about} at {at}. Use the size in the model, or give one size"


@dataclass(frozen=True, kw_only=True)
class Missing(Answer):
    """Why a study has no other main answer."""

    kind = "missing"
    statuses = ("other_devices", "not_measured", "no_result", "not_both", "see_figures")

    devices: str = ""
    """The only devices that the study is for."""
    of: str = ""
    over: str = ""
    """The sides under `asks`."""
    reason: str | None = None
    """Why the first cell has no result."""

    def sentence(self) -> str:
        reason = f"; the first cell: {self.reason}" if self.reason else ""
        return {
            "other_devices": f"Not measured here: the study is for {self.devices} only",
            "not_measured": "Not measured here",
            "no_result": f"No trial succeeded{reason}",
            "not_both": f"No comparison: {self.of} and {self.over} were not both measured on a device",
            "see_figures": "No short answer: see the figures",
        }[self.status]


def read_answers(table: pd.DataFrame) -> list[Answer]:
    """The answers of table `answers`."""
    return [
        KINDS[row["kind"]](**{name: row[name] for name in COMMON}, **json.loads(row["fields"]))
        for row in records(table)
    ]


def answers_of(
    tables: RunTables,
    studies: Mapping[str, Study],
    together: Mapping[str, int],
    currency: str | None = None,
) -> pd.DataFrame:
    """One row per answer, study by study.

    `studies` maps names to studies, `together` to the number of comparisons for which each
    one is corrected. `currency` is that of prices.
    """
    answers = [
        replace(answer, study=name, corrected_for=together[name], caveats=by_importance(answer.caveats))
        for name, study in studies.items()
        for answer in _study_answers(by_relevance(tables.of_study(name), study), study, together[name])
    ]
    fullest = max((one for one in answers if isinstance(one, Memory)), key=lambda one: one.fullness, default=None)
    with_main = [replace(one, main=one.main or one is fullest) for one in answers]
    completed = [replace(one, currency=currency) if isinstance(one, Ranking) else one for one in with_main]
    return table_of("answers", [answer.row() for answer in completed])


def by_relevance(tables: RunTables, study: Study) -> RunTables:
    """The tables of a study, with its most relevant crossovers first, those in time before all others.

    The most relevant ones match the first published claim on a crossover. Without such a claim, they have a known
    position or bound.
    """
    published = [claim.form for claim in study.claims if claim.source != OURS]
    where = next((form.where for form in published if isinstance(form, CrossoverBetween)), None)
    crossovers = tables.crossovers
    if where is None:
        bounds = crossovers[["crossover_low", "crossover_high", "bracket_low", "bracket_high"]].notna().any(axis=1)
        first = crossovers[crossovers["status"].isin(LEADS) | bounds]
    else:
        first = rows_with(crossovers, list(where), where)
    ordered = pd.concat([first, crossovers.drop(first.index)])
    return replace(tables, crossovers=ordered.sort_values("cost", key=lambda cost: cost != "time", kind="stable"))


def _study_answers(tables: RunTables, study: Study, together: int) -> list[Answer]:
    """The answers of a study on its times and on its trained models, then those that every study gets."""
    answers = _time_answers(tables, study, together) if (tables.cells["trials"] > 0).any() else []
    if len(tables.quality):
        answers.append(quality_answer(tables.quality))
    if not any(answer.main for answer in answers):
        answers.insert(0, _missing_answer(tables.cells, study))
    if batch := _requested_batch(study):
        answers = [_of_batch(answer, batch) if answer.main else answer for answer in answers]
    return [
        *answers,
        *communication_answers(tables, study.x_axis),
        *bottleneck_answers(tables.cells, study.x_axis),
        *memory_answers(tables.cells),
        *largest_batch_answers(tables.searched_cells),
    ]


def _time_answers(tables: RunTables, study: Study, together: int) -> list[Answer]:
    """What the study asks; else its crossovers, if its figures show any, or its comparisons."""
    if study.asks is not None:
        others = _time_answers(tables, replace(study, asks=None), together)
        return [*asked_answers(tables, study.asks, together), *(replace(answer, main=False) for answer in others)]
    idle = _idle_size_answers(tables)
    if idle and X_AXES[study.x_axis] == "size":
        return [*idle, *comparison_answers(_at_one_size(tables), study, together)]
    if asks_for_crossovers(study.figures):
        return [*_crossing_answers(tables, study, together), *idle]
    is_alone = all(map(is_cpu, tables.cells["device"]))
    beside = elsewhere_answers(tables, study.x_axis, together) if is_alone else []
    return [*comparison_answers(tables, study, together), *beside, *idle]


def _crossing_answers(tables: RunTables, study: Study, together: int) -> list[Answer]:
    """The crossovers, and what explains or moves them."""
    x_axis = study.x_axis
    asked = (study.refinement or {}).get("pairs", Refinement().pairs)
    crossovers = crossover_answers(tables, study.steps_per_run, asked)
    if "device" not in asked and any(answer.main and answer.status != "no_accelerator" for answer in crossovers):
        crossovers = [answer for answer in crossovers if answer.status != "no_accelerator"]
    is_alone = all(answer.status == "no_accelerator" for answer in crossovers if answer.main)
    # Beside its only CPU, GPUs measured elsewhere have the estimates, which allow for that CPU.
    is_ranked = not is_alone or tables.cells["machine"].nunique() > 1
    planes = plane_answers(tables, study, together)
    others = [
        *cold_answers(tables, x_axis, together),
        *(_without_accelerator(tables, x_axis, crossovers) if is_alone else crossovers),
        *best_answers(tables, x_axis, together),
        *payback_answers(tables, x_axis, asked, has_run=study.steps_per_run is not None),
        *(ranking_answers(tables, x_axis) if is_ranked else []),
        *transfer_answers(tables, x_axis, together),
        *([] if is_alone else set_up_answers(tables, x_axis)),
        *(elsewhere_answers(tables, x_axis, together) if is_alone else []),
        *((bound_answers(tables, x_axis) or no_estimate_answers(tables, study)) if is_alone else []),
    ]
    if any(answer.main for answer in planes):
        others = [replace(answer, main=False) for answer in others]
    return [*planes, *others]


def _without_accelerator(tables: RunTables, x_axis: str, crossovers: Sequence[Answer]) -> list[Answer]:
    """The estimates with GPUs measured elsewhere as the main answers; without any, what was measured here."""
    elsewhere = reference_answers(tables, x_axis)
    if elsewhere:
        crossovers = [answer for answer in crossovers if answer.status != "no_accelerator"]
    measured = [*crossovers, *cpu_answers(tables, x_axis)]
    return [*elsewhere, *(replace(answer, main=answer.main and not elsewhere) for answer in measured)]


def _requested_batch(study: Study) -> str | None:
    """The only batch size of a user's model, unless it is the default, which nobody asked for."""
    if not study.user_model or len(study.batch_sizes) != 1:
        return None
    (batch_size,) = study.batch_sizes
    usual = DEFAULT_BATCH_SIZE if study.user_model.batched else 1
    row = {"batch_size": batch_size, "batch_name": study.user_model.batch_name}
    return None if batch_size == usual else name_by(row, ["batch_size"])


def _of_batch(answer: Answer, batch: str) -> Answer:
    return replace(answer, series=", ".join(filter(None, [batch, answer.series])))


def _idle_size_answers(tables: RunTables) -> list[IdleSize]:
    """The answer that a model does not use its size; empty if it does, or if its work is not counted."""
    if not studies_with_idle_size(tables.measurements):
        return []
    cells = tables.cells.sort_values("size")
    idle = IdleSize(
        main=True,
        sizes=cells["size"].unique().tolist(),
        unit=cells["size_name"].iloc[0],
        names=listed(cells["size_label"].dropna().unique().tolist()),
    )
    return [idle]


def _at_one_size(tables: RunTables) -> RunTables:
    """The tables with the cells and ratios of the smallest size."""
    size = tables.cells["size"].min()
    parts = {name: getattr(tables, name) for name in ("cells", "ratios", "measurements")}
    return replace(tables, **{name: table[table["size"] == size] for name, table in parts.items()})


def _missing_answer(cells: pd.DataFrame, study: Study) -> Missing:
    asks, devices = study.asks, ", ".join(study.devices or ())
    if cells.empty:
        return Missing(main=True, status="other_devices" if devices else "not_measured", devices=devices)
    if not (cells["trials"] > 0).any():
        return Missing(main=True, status="no_result", reason=first_row(cells)["reason"])
    if asks is None:
        return Missing(main=True, status="see_figures")
    of, over = (name_by(side, side) for side in (asks.of, asks.over))
    return Missing(main=True, status="not_both", of=of, over=over)

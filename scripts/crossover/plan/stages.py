"""Stages of refinement: which studies take part, and the files with the trials that stages add."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from crossover.config.claim_forms import RatioWithin
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.studies import Cell, Refinement
from crossover.config.study import Study
from crossover.config.words import AXES, BASELINE, CPU_THREADS, GPUS, is_cpu, ranks_of_side
from crossover.files import atomic_path
from crossover.reading import UnreadableError, read_json


def refinement_on(
    study: Study, devices: Sequence[str], run: Refinement, *, has_references: bool = False
) -> Refinement | None:
    """A study's refinement, for the pairs that exist on the run's devices; None if the study is not refined.

    Without an accelerator, `device` becomes the pair with a reference, if there are any. Without a pair, the cells of
    claims about ratios are refined.
    """
    if study.refinement is None or not study.timed:
        return None
    refinement = replace(run, **study.refinement)
    sides = study.devices_among(devices)
    if pairs := _pairs_on(study, sides, refinement, has_references):
        return replace(refinement, pairs=pairs)
    return replace(refinement, pairs=(), bisections=0, doublings=0) if _claims_ratio_of(study, sides) else None


def _claims_ratio_of(study: Study, sides: Sequence[str]) -> bool:
    """Whether a claim is about a ratio of two cells that are measured on these sides."""
    forms = (claim.form for claim in study.claims)
    cells = ((form.of.axes, form.over.axes) for form in forms if isinstance(form, RatioWithin))
    return any(all(axes.get("device") in {None, *sides} for axes in both) for both in cells)


def _pairs_on(study: Study, sides: Sequence[str], refinement: Refinement, has_references: bool) -> tuple[Any, ...]:
    over_cores = study.x_axis == CPU_THREADS
    if len(study.points) < (1 if over_cores else 2):
        return ()
    alone = [side for side in sides if ranks_of_side(side) == 1]
    on_both = BASELINE in alone and len(alone) > 1
    compared = {
        GPUS: len(alone) < len(sides) and asks_for_crossovers(study.figures),
        "device": on_both and asks_for_crossovers(study.figures) and "plane" not in refinement.pairs,
        "plane": on_both and study.has_plane,
        "precision": bool(sides) and not over_cores and len(study.precisions) > 1,
        "variant": bool(sides) and not over_cores and len(study.variants) > 1,
        "execution": bool(sides) and not over_cores and len(study.executions) > 1,
    }
    pairs: tuple[Any, ...] = tuple(pair for pair in refinement.pairs if compared[pair])
    if study.candidates is not None and on_both:
        pairs += ("best",)
    is_alone = BASELINE in sides and all(map(is_cpu, sides)) and study.user_model is None and not over_cores
    if is_alone and has_references and "device" in refinement.pairs and asks_for_crossovers(study.figures):
        pairs += ("reference",)
    return pairs


def stages_of(refinement: Refinement | None, trials: int) -> int:
    """Number of refinement stages of a study with this `refinement_on` the run's devices; 0 if it is not refined."""
    if refinement is None:
        return 0
    return refinement.bisections + len(refinement.trials_at_crossover(trials))


def path_of_row(cell: Cell, trial: int, repeat: int = 0) -> Path:
    """The path of a trial's row below results/cells/; a repeat has a row of its own."""
    return Path(cell.path, f"trial-{trial}{f'-repeat-{repeat}' if repeat else ''}.parquet")


SAMPLE = 3
"""Number of disturbed trials that are repeated first; the rest are repeated only if that helps."""
REST = "-rest"
"""In a plan's name: it has the trials that are not in the repeat's sample."""


def planned_repeats(
    most: int, plan_of: Callable[[int, str], Path | None]
) -> Iterator[tuple[int, list[tuple[Cell, int]]]]:
    """The repeats planned so far, at most `most`, and their trials: of each a sample and, if that was full, the rest.

    `plan_of` finds the plan of a repeat and its part; None ends the repeats, and so does an empty sample.
    """
    repeat, part = 1, ""
    while repeat <= most and (plan := plan_of(repeat, part)) is not None:
        trials = planned_trials(plan)
        yield repeat, trials
        if part == REST or 0 < len(trials) < SAMPLE:
            repeat, part = repeat + 1, ""
        elif trials:
            part = REST
        else:
            return


def write_stage(
    path: Path,
    stage: int,
    trials: Mapping[Cell, Sequence[int]],
    why: Sequence[Mapping[str, Any]],
    note: str | None = None,
    is_last: bool = False,
) -> None:
    """Write the plan of a stage, or of a repeat, atomically as JSON.

    `why` has the reasons: those of a stage by series or claim, or the flags of each trial to repeat. `note` is a
    sentence for the terminal. After a stage that `is_last`, no other is planned.
    """
    cells = [{**cell.values, "trials": list(numbers)} for cell, numbers in trials.items()]
    with atomic_path(path) as temporary:
        temporary.write_text(
            json.dumps({"stage": stage, "cells": cells, "why": why, "note": note, "is_last": is_last}, indent=2) + "\n",
            encoding="utf-8",
        )


def trials_of_stages(plan_of: Callable[[int], Path | None]) -> Iterator[tuple[Cell, int]]:
    """The trials in the plans of the stages so far; raises UserError for another file.

    `plan_of` finds the plan of a stage; None ends the stages, and so does a plan that is the last.
    """
    for stage in count(1):
        if (plan := plan_of(stage)) is None:
            return
        yield from planned_trials(plan)
        if read_json(plan, "plan").get("is_last"):
            return


def planned_trials(path: Path) -> list[tuple[Cell, int]]:
    """The trials (cell and number) in the plan of a stage or a repeat; raises UserError for another file."""
    plan = read_json(path, "plan")
    try:
        return [
            (Cell(**{axis: cell[axis] for axis in AXES if axis in cell}), int(trial))
            for cell in plan["cells"]
            for trial in cell["trials"]
        ]
    except (KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not a plan of trials") from None

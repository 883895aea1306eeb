"""Stages of refinement: which studies take part, what a stage's plan holds, and in which order it is measured."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from crossover.config.studies import Cell, Effort, Refinement, Study
from crossover.config.words import BASELINE, ENERGY_WINDOW_MIN_S, EXECUTIONS, PRECISIONS, is_cpu
from crossover.files import atomic_path
from crossover.reading import UnreadableError, read_json

CROSSOVER_FIGURES = {"times", "speedups"}
"""The figures that show crossovers of devices; a study without them has none of these to narrow down."""


def asks_for_crossovers(figures: Collection[str]) -> bool:
    """Whether a study with these figures asks from which size on one device beats another."""
    return not CROSSOVER_FIGURES.isdisjoint(figures)


PLAIN_SIDES = {"precision": PRECISIONS[0], "execution": EXECUTIONS[0]}
"""What the other precisions and executions of a device are compared with."""


@dataclass(frozen=True)
class StagePlan:
    """What a stage adds to the trials before it."""

    stage: int
    trials: Mapping[Cell, Sequence[int]]
    """The numbers of the trials to measure, by cell."""
    why: Sequence[Mapping[str, Any]]
    """For each line and pair of sides what was found, and what follows from it, in words."""


def refinement_of(study: Study, run: Refinement) -> Refinement | None:
    """How a study's crossovers are refined: as the run's, but for what the study says; None where it wants none."""
    return None if study.refinement is None else replace(run, **study.refinement)


def refinement_on(study: Study, devices: Sequence[str], run: Refinement) -> Refinement | None:
    """The same with those pairs only that the study has on the run's devices; None where it has none of those asked."""
    refinement = refinement_of(study, run)
    if refinement is None or not study.timed or len(study.sizes) == 1:
        return None
    sides = study.devices_among(devices)
    compared = {
        "device": BASELINE in sides and len(sides) > 1 and asks_for_crossovers(study.figures),
        "precision": bool(sides) and _with_others(PLAIN_SIDES["precision"], study.precisions),
        "execution": bool(sides) and _with_others(PLAIN_SIDES["execution"], study.executions),
    }
    pairs = tuple(pair for pair in refinement.pairs if compared[pair])
    return replace(refinement, pairs=pairs) if pairs else None


def plain_side(axis: str, values: Sequence[str]) -> str | None:
    """What a study's precisions, or executions, are compared with: its only one, else the plain one if it has it."""
    if len(values) == 1:
        return values[0]
    return PLAIN_SIDES[axis] if PLAIN_SIDES[axis] in values else None


def has_other_sides(precisions: Sequence[str], executions: Sequence[str]) -> bool:
    """Whether there are several precisions or executions, with the plain one to compare the others with."""
    sides = {"precision": precisions, "execution": executions}
    return any(len(own) > 1 for own in sides.values()) and None not in (
        plain_side(axis, own) for axis, own in sides.items()
    )


def figures_among(study: Study, devices: Sequence[str], effort: Effort, *, priced: bool) -> list[str]:
    """Those of a study's kinds of figures that have something to show on the run's devices, as its file lists them.

    A speed-up takes two devices, the host's share an accelerator, precisions are compared where there are several, and
    what a step costs takes trials as long as energy needs (`effort` is the study's), or prices (`priced`).
    """
    own = study.devices_among(devices)
    accelerated = any(not is_cpu(device) for device in own)
    shown = {
        "speedups": accelerated and BASELINE in own,
        "precisions": has_other_sides(study.precisions, study.executions),
        "host_share": accelerated,
        "energy": priced or effort.timed_min_s >= ENERGY_WINDOW_MIN_S,
    }
    return [kind for kind in study.figures if shown.get(kind, True)]


def _with_others(plain: str, values: Sequence[str]) -> bool:
    return plain in values and len(values) > 1


def stages_of(study: Study, devices: Sequence[str], trials: int, run: Refinement) -> int:
    """Stages of a study's refinement on the run's devices; 0 where there is no crossover to narrow down."""
    refinement = refinement_on(study, devices, run)
    if refinement is None:
        return 0
    more_trials = trials > 1 and refinement.extra_trials > 0
    return refinement.bisections + (1 if more_trials else 0)


def write_plan(plan: StagePlan, path: Path) -> None:
    """Write a plan as JSON, atomically."""
    cells = [{**asdict(cell), "trials": list(numbers)} for cell, numbers in plan.trials.items()]
    text = json.dumps({"stage": plan.stage, "cells": cells, "why": plan.why}, indent=2)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def planned_trials(path: Path) -> list[tuple[Cell, int]]:
    """The trials, each a cell and a number, that the plan in a file asks for; raises UserError for another file."""
    plan = read_json(path, "plan")
    axes = [field.name for field in fields(Cell)]
    try:
        return [
            (Cell(**{axis: one[axis] for axis in axes if axis in one}), int(trial))
            for one in plan["cells"]
            for trial in one["trials"]
        ]
    except (KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not a plan of refinement") from None


def measured_late(cell: Cell, trial: int, seed: int) -> float:
    """Priority of a trial outside of the first grid: its rounds come one by one as well, each in shuffled order.

    It is above 0 and at most 1, below that of any trial of the first grid. It depends on nothing but the trial, so
    that every process of a run, and a run that goes on after an interruption, sees the same order.
    """
    return 1 / (trial + random.Random(f"{seed}/{trial}/{cell.path}").random())

"""The tables and figures that a run makes of its rows, and their files."""

from __future__ import annotations

from collections.abc import Sequence

from crossover.config.configuration import Configuration
from crossover.config.studies import Effort, Study, effort_of
from crossover.config.words import BASELINE, ENERGY_WINDOW_MIN_S, is_cpu
from crossover.plan.run_plan import RunPlan
from crossover.plan.stages import has_other_sides

TABLES = (
    "cells",
    "ratios",
    "crossovers",
    "latencies",
    "cores_worth",
    "quality",
    "quality_pairs",
    "largest_batches",
    "claims",
    "problems",
    "answers",
)
"""The tables that are made of the measurements, trainings and searches."""

SUFFIXES = ("svg", "pdf", "png")


def figure_file(results: str, study: str, kind: str, suffix: str) -> str:
    """The path of a figure in one of its formats."""
    return f"{results}/figures/{study}/{kind}.{suffix}"


def figures_of(plan: RunPlan, config: Configuration) -> list[tuple[str, str]]:
    """The figures of a run, each a study and a kind."""
    return [
        (study.name, kind)
        for study in plan.studies
        if study.name in plan.measured
        for kind in figures_among(
            study, plan.devices, effort_of(study, config.effort), priced=config.prices is not None
        )
    ]


def figures_among(study: Study, devices: Sequence[str], effort: Effort, *, priced: bool) -> list[str]:
    """The study's kinds of figures that have something to show on the run's devices, in the order of its file.

    A speed-up needs two devices, the host's share an accelerator, precisions need several of them. Energy needs prices
    (`priced`) or trials that are long enough for its counter; `effort` is the study's.
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

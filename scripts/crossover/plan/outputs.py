"""The figures that a run draws, and their files."""

from __future__ import annotations

from crossover.config.configuration import Configuration
from crossover.config.studies import effort_of, second_axis
from crossover.config.words import BASELINE, ENERGY_WINDOW_MIN_S, is_cpu
from crossover.config.workloads import NULL
from crossover.plan.run_plan import RunPlan
from crossover.plan.stages import has_other_sides

SUFFIXES = ("svg", "pdf", "png")


def figure_file(results: str, study: str, kind: str, suffix: str) -> str:
    """The path of a figure in one of its formats."""
    return f"{results}/figures/{study}/{kind}.{suffix}"


def figures_of(plan: RunPlan, config: Configuration, held_against: bool = False) -> list[tuple[str, str]]:
    """The figures of a run that have data, each a study and a kind, in the order of the study's file.

    Speed-ups need two devices or a reference machine (`held_against`), a map two devices and axes, the host's share an
    accelerator, precisions several of them, the split of time and the roofline a model, energy prices or trials long
    enough for its counter.
    """
    figures = []
    for study in plan.studies:
        if study.name not in plan.measured:
            continue
        devices = study.devices_among(plan.devices)
        accelerated = any(not is_cpu(device) for device in devices)
        long_enough = effort_of(study, config.effort).timed_min_s >= ENERGY_WINDOW_MIN_S
        shown = {
            "speedups": (accelerated or held_against) and BASELINE in devices,
            "map": accelerated and BASELINE in devices and second_axis(vars(study)) is not None,
            "precisions": has_other_sides(study.precisions, study.executions),
            "host_share": accelerated,
            "time_split": study.workload != NULL,
            "roofline": study.workload != NULL,
            "energy": config.prices is not None or long_enough,
        }
        figures += [(study.name, kind) for kind in study.figures if shown.get(kind, True)]
    return figures

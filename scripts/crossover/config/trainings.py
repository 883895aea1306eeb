"""The trainings that a study asks for, and their command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crossover.config.command_lines import as_options, cell_values
from crossover.config.studies import CELL_PATH, Cell, Study
from crossover.tables.columns import Training as Training  # for callers that have not moved yet

TRAINING_PATH = f"{CELL_PATH}/seed-{{seed}}"
"""Pattern of the path of a training: its cell's, and the seed."""


@dataclass(frozen=True)
class Quality:
    """How models are trained to compare their quality; defaults as in config/schema.yaml."""

    epochs: int = 1
    seeds: int = 5
    test_share: float = 0.33
    classes: Sequence[str] | None = None
    """Names of the classes, in order; None: their numbers."""


def quality_of(study: Study) -> Quality | None:
    """How a study trains models; None where it does not."""
    return None if study.quality is None else Quality(**study.quality)


def trained_cells(study: Study, devices: Sequence[str]) -> list[Cell]:
    """The cells whose models a study trains; loading, execution and the number of threads change no model."""
    if study.quality is None:
        return []
    return replace(study, timed=True, protocols=("resident",), executions=("eager",), cpu_threads=()).cells(devices)


def training_options(
    cell: Cell, quality: Quality, *, cpu_threads: int | str, time_limit_s: float, isolation: str = "auto"
) -> list[str]:
    """Command-line options of scripts/train_model.py that are the same for every seed of a cell."""
    values = {
        **cell_values(vars(cell)),
        "epochs": quality.epochs,
        "test_share": quality.test_share,
        "cpu_threads": cpu_threads,
        "time_limit_s": time_limit_s,
        "isolation": isolation,
    }
    return as_options(values)

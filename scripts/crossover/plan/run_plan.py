"""The cells, trials, trainings and searches of a run, and the paths of their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from crossover.config.config_keys import Configuration
from crossover.config.studies import MOST, RESULTS, Cell, Refinement
from crossover.config.study import Study, cells_of_candidates, preview, study_of, trained_cells
from crossover.config.words import AXES, BASELINE, HERE, is_cpu, ranks_of_side, threads_of_side
from crossover.config.workloads import workload_traits
from crossover.plan.stages import path_of_row, refinement_on, stages_of

Trial = tuple[Cell, int]
"""A cell and the number of its trial."""

MOST_AT_ONCE = 10_000
"""Trials of the first grid above which its rounds are planned one after another: Snakemake takes 22 kB for each job."""

Classes = Mapping[str, Mapping[str, Any]]
"""A cluster's classes of nodes by name, each with its jobs' resources and its `devices`."""


def cell_of_wildcards(wildcards: Mapping[str, Any]) -> Cell:
    """The cell identified by a path's wildcards."""
    axes = {axis: wildcards.get(axis) for axis in AXES}
    whole = {axis: int(wildcards[axis]) for axis in ("batch_size", "size")}
    return Cell(**(axes | whole | {"machine": axes["machine"] or HERE}))


@dataclass(frozen=True)
class RunPlan:
    """The cells, trials, trainings and searches of a run."""

    studies: tuple[Study, ...]
    default_devices: tuple[str, ...]
    """Devices of the run, except on classes of nodes that name their own."""
    trials: int
    seed: int
    results: str
    refinement: Refinement
    repeats: int = 0
    """Maximum number of repeats of a disturbed trial."""
    classes: Classes | None = None
    minutes: float | None = None
    """Time that the run should take; None for no limit."""
    has_references: bool = False
    """Whether machines measured elsewhere are compared with this one."""
    trials_given: bool = False
    """Whether `trials` are the user's; a study that no stage can follow here then begins with all of them."""

    @classmethod
    def of(cls, config: Configuration, devices: tuple[str, ...], gpus: int | None = None) -> RunPlan:
        """The plan of a config; `devices` are used if it lists none. Sides of more than `gpus` GPUs are left out."""
        wanted = config.devices or devices
        return cls(
            studies=config.studies,
            default_devices=tuple(side for side in wanted if is_cpu(side) or ranks_of_side(side) <= (gpus or MOST)),
            trials=config.trials,
            trials_given=config.trials_given,
            seed=config.keys.seed,
            results=config.results,
            refinement=config.refinement,
            repeats=config.keys.repeat_disturbed,
            classes=config.keys.cluster.classes,
            minutes=config.keys.minutes,
        )

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> RunPlan:
        """The plan whose `asdict` has these values."""
        studies = tuple(map(study_of, values["studies"]))
        return cls(**{**values, "studies": studies, "refinement": Refinement(**values["refinement"])})

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """All devices of the run: those of its classes of nodes, or without classes those of the config."""
        classes = (self.classes or {"": {}}).values()
        return tuple(dict.fromkeys(device for values in classes for device in self._devices_of(values)))

    def _devices_of(self, values: Mapping[str, Any]) -> Sequence[str]:
        return values.get("devices") or self.default_devices

    @cached_property
    def study(self) -> dict[str, Study]:
        return {study.name: study for study in self.studies}

    @cached_property
    def cells(self) -> list[Cell]:
        """The first grid of all studies."""
        return self._on_classes(cell for study in self.studies for cell in study.cells(self.devices))

    @cached_property
    def cells_of_candidates(self) -> list[Cell]:
        """The cells added by `candidates`, measured once in the first grid; none in a study with one first trial."""
        compared = [study for study in self.studies if self.first_trials[study.name] > 1]
        return self._on_classes(cell for study in compared for cell in cells_of_candidates(study, self.devices))

    @cached_property
    def trials_of_grid(self) -> list[Trial]:
        grid = ((cell, trial) for cell in self.cells for trial in range(1, self.first_trials[cell.study] + 1))
        return [*grid, *((cell, 1) for cell in self.cells_of_candidates)]

    def trials_of(self, study: str) -> int:
        """Maximum number of trials of a study's cell, excluding those that refinement adds for a wide interval."""
        return min(self.study[study].trials or self.trials, self.trials)

    @cached_property
    def first_trials(self) -> dict[str, int]:
        """Trials of each cell of the first grid, by study. In a refined study, later stages may add the others."""
        first = {}
        for study in self.studies:
            trials = self.trials_of(study.name)
            refined = refinement_on(study, (*self.devices, BASELINE, "cuda"), self.refinement)
            if self.trials_given and not self._refined(study):
                refined = None
            first[study.name] = trials if refined is None else refined.first(trials)
        return first

    @property
    def rounds(self) -> int:
        return max(self.first_trials.values(), default=0)

    @cached_property
    def later_rounds(self) -> range:
        """The rounds that are planned once the round before them ends; empty unless the first grid is large."""
        return range(2, self.rounds + 1 if len(self.trials_of_grid) > MOST_AT_ONCE else 2)

    @cached_property
    def measured(self) -> list[str]:
        """Names of the studies that have cells."""
        return list(dict.fromkeys(cell.study for cell in self.cells))

    @property
    def first_answers(self) -> list[str]:
        """Names of the studies that get a first answer.

        With one round, the last study gets only the final answers, unless its first answer needs only a part of the
        round. A study of latency mistakes gets no first answer, since it needs several trials.
        """
        last = self.measured[-1:] if self.rounds == 1 else []
        whole = [name for name in last if len(self.preview(name)) >= sum(cell.study == name for cell in self.cells)]
        return [name for name in self.measured if name not in whole and not self.study[name].latency_mistakes]

    @cached_property
    def stages(self) -> dict[str, int]:
        """Number of refinement stages of each study that is refined."""
        stages = {study.name: stages_of(self._refined(study), self.trials_of(study.name)) for study in self.studies}
        return {name: count for name, count in stages.items() if count}

    @property
    def has_predictions(self) -> bool:
        """Whether crossovers that are predicted from references are refined."""
        refined = (self._refined(self.study[name]) for name in self.stages)
        return any("reference" in refinement.pairs for refinement in refined if refinement)

    def _refined(self, study: Study) -> Refinement | None:
        return refinement_on(study, self.devices, self.refinement, has_references=self.has_references)

    @property
    def last_stage(self) -> int:
        return max(self.stages.values(), default=0)

    @cached_property
    def searches(self) -> dict[str, Study]:
        """Paths of all possible searches, and their studies. The CPU on fewer cores would give the same."""
        return {
            self._path("batch_try", cell): self.study[cell.study]
            for cell in self.cells
            if threads_of_side(cell.device) is None and ranks_of_side(cell.device) == 1
        }

    @property
    def planned_searches(self) -> list[str]:
        """Paths of the searches of studies with `largest_batch`."""
        return [path for path, study in self.searches.items() if study.largest_batch]

    @cached_property
    def trainings(self) -> list[str]:
        """Paths of the rows of all trainings."""
        return [
            self._path("training", cell, seed=self.seed + number)
            for study in self.studies
            if (quality := study.quality)
            for cell in self._on_classes(trained_cells(study, self.devices))
            for number in range(1, quality.seeds + 1)
        ]

    @cached_property
    def roofs(self) -> list[str]:
        """Paths of the roofs of all devices on which a model is timed; one CPU process on fewer cores has none."""
        cells = [c for c in self.cells if threads_of_side(c.device) is None or ranks_of_side(c.device) > 1]
        return list(dict.fromkeys(self._path("probe", cell) for cell in cells))

    @property
    def results_of_grid(self) -> list[str]:
        """Paths of all results that are planned from the start."""
        return [*self.rows(self.trials_of_grid), *self.trainings, *self.planned_searches, *self.roofs]

    def rows(self, trials: Iterable[Trial], repeat: int = 0) -> list[str]:
        """Paths of the rows of trials, or of their repeat, without duplicates: stages may request the same trial."""
        cells = Path(self.results, "cells")
        return [str(cells / path_of_row(*trial, repeat)) for trial in dict.fromkeys(trials)]

    def preview(self, study: str) -> list[Trial]:
        """The trials behind a study's first answer."""
        return [(cell, 1) for cell in self._on_classes(preview(self.study[study]).cells(self.devices))]

    def refined_trials(self) -> list[Trial]:
        """Trials of the first grid from which refinement starts."""
        return [trial for trial in self.trials_of_grid if trial[0].study in self.stages]

    @property
    def refinement_params(self) -> dict[str, Any]:
        """Parameters of the rule that plans a stage of refinement, by refined study."""
        studies = {name: self.study[name] for name in self.stages}
        refinements = {name: self._refined(study) for name, study in studies.items()}
        return {
            "refinements": {name: asdict(refinement) for name, refinement in refinements.items() if refinement},
            "studies": {name: asdict(study) for name, study in studies.items()},
            "trials": {name: self.trials_of(name) for name in studies},
        }

    @property
    def published(self) -> list[str]:
        """The files with published results that studies show."""
        return sorted({file for study in self.studies if study.published and (file := study.published.results)})

    def dataset(self, workload: str) -> str | None:
        """The dataset file that a workload reads; None if it draws its inputs itself."""
        dataset = workload_traits(workload).dataset
        return f"{self.results}/datasets/{dataset}.safetensors" if dataset else None

    def _on_classes(self, cells: Iterable[Cell]) -> list[Cell]:
        grid = list(cells)
        if self.classes is None:
            return grid
        return [
            replace(cell, machine=name)
            for name, values in self.classes.items()
            for cell in grid
            if cell.device.partition("-")[0] in self._devices_of(values)
        ]

    def _path(self, kind: str, cell: Cell, **numbers: int) -> str:
        """The path of a result of a cell."""
        pattern = RESULTS[kind] if self.classes is None else RESULTS[kind].replace("/{device}", "/{machine}/{device}")
        return f"{self.results}/{pattern.format(**cell.values, **numbers)}"

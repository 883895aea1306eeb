"""The order of trials, in rounds with at most one trial per cell. Several GPUs may measure side by side."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from crossover.config.studies import Cell, in_rounds
from crossover.config.words import is_cpu, ranks_of_side
from crossover.plan.run_plan import RunPlan, Trial, cell_of_wildcards


@dataclass(frozen=True)
class Rounds:
    """Priorities of jobs. Local jobs start in order of priority, since all request the same share of the cores."""

    plan: RunPlan
    at_once: int
    """Number of accelerator trials that this machine measures side by side."""

    @property
    def first(self) -> int:
        """A priority above that of any trial."""
        return len(self._priorities) + 1

    def priority(self, wildcards: Mapping[str, Any]) -> float:
        """Priority of a trial. Rounds follow one another, each in shuffled order. Trials of refinement come last."""
        trial = cell_of_wildcards(wildcards), int(wildcards["trial"])
        return self._priorities.get(trial) or priority_of_added(*trial, self.plan.seed, self.at_once)

    def last_of(self, number: int) -> Trial:
        """The trial of a round that starts last."""
        return [trial for trial in self._priorities if trial[1] == number][-1]

    @cached_property
    def _priorities(self) -> dict[Trial, int]:
        plan = self.plan
        first = {cell for study in plan.measured for cell, _ in plan.preview(study)}
        rounds = in_rounds(plan.cells, plan.rounds, plan.seed, plan.cells_of_candidates, first)
        order = [(trial, cell) for trial, cell in rounds if trial <= plan.first_trials[cell.study]]
        if self.at_once > 1:
            order = [*in_blocks(order, self.at_once, first)]
        trials = [(cell, trial) for trial, cell in order]
        return {trial: len(trials) - position for position, trial in enumerate(trials)}


def in_blocks(
    order: Iterable[tuple[int, Cell]], at_once: int, first: Iterable[Cell] = ()
) -> Iterator[tuple[int, Cell]]:
    """Reorder trials so that `at_once` accelerators are busy, and the devices of a cell still follow each other.

    A block has up to `at_once` cells, each on all devices. Its accelerator trials come before its CPU trials; in every
    second block, they come after them, and those on several accelerators after those on one. No block spans two rounds.
    """
    early = set(first)
    for _, part in groupby(order, lambda entry: (entry[0], entry[0] == 1 and (entry[1].study, entry[1] in early))):
        groups = [list(group) for _, group in groupby(part, lambda entry: replace(entry[1], device=""))]
        for number, start in enumerate(range(0, len(groups), at_once)):
            yield from _accelerators_together(groups[start : start + at_once], first=number % 2 == 0)


def _accelerators_together(groups: Iterable[Sequence[tuple[int, Cell]]], first: bool) -> list[tuple[int, Cell]]:
    block = [entry for group in groups for entry in group]
    return sorted(block, key=lambda entry: (is_cpu(entry[1].device) == first, ranks_of_side(entry[1].device)))


def priority_of_added(cell: Cell, trial: int, seed: int, at_once: int = 1) -> float:
    """Priority of a trial outside of the first grid, in (0, 1]: round by round, each in shuffled order.

    The priority depends only on the arguments, so that all processes agree on it. If several accelerators measure side
    by side, a round begins with their trials, which are few.
    """
    order = random.Random(f"{seed}/{trial}/{replace(cell, device='').path}").random()
    if at_once > 1:
        order = (order + is_cpu(cell.device)) / 2
    return 1 / (trial + order)

"""Plan which disturbed trials to measure again."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from crossover.config.studies import Cell
from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan.stages import REST, SAMPLE, write_stage
from crossover.reading import check_readable
from crossover.tables.columns import Measurement
from crossover.tables.rows import disturbed_trials, joined, latest_repeats, read_rows
from crossover.tables.trial_times import TrialTimes
from crossover.text import with_noun

snakemake: Any  # injected by Snakemake


def plan_repeats(
    paths_to_rows: Sequence[Path], repeat: int, part: str, minutes: float | None, path_to_plan: Path
) -> None:
    """Write the disturbed trials to measure again, and their flags, as JSON: a sample of them, or the rest.

    Once most of the latest repeats were disturbed again, repeats do not help, and the plan is empty. With `minutes`, it
    has only those that fit into the time left.
    """
    rows, errors = read_rows(paths_to_rows, Measurement)
    check_readable(errors)
    disturbed = disturbed_trials(joined(rows, Measurement))
    trials = [(cell, trial, flags) for cell, numbers in disturbed.items() for trial, flags in numbers.items()]
    repeats, note = latest_repeats(rows), None
    again = sum(map(bool, repeats.values()))
    if 2 * again > len(repeats):
        note = f"Repeats did not help: {again} of {len(repeats)} were disturbed again. No further trial is repeated."
        trials = []
    if part == REST:
        trials = [trial for trial in trials if trial[:2] not in repeats]
    else:
        size = min(SAMPLE, len(trials))
        trials = [trials[place * len(trials) // size] for place in range(size)]
    if minutes is not None and trials:
        times = TrialTimes.of(rows)
        ends_s = accumulate(times.cost_s(cell) for cell, _, _ in trials)
        fitting = [trial for trial, end_s in zip(trials, ends_s, strict=True) if end_s <= times.left_s(minutes)]
        if lacking := len(trials) - len(fitting):
            note = f"No time is left to measure {with_noun(lacking, 'disturbed trial')} again."
        trials = fitting
    planned: dict[Cell, list[int]] = defaultdict(list)
    for cell, trial, _ in trials:
        planned[cell].append(trial)
    why = [{**cell.values, "trial": trial, "flags": flags} for cell, trial, flags in trials]
    write_stage(path_to_plan, repeat, planned, why, note)


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        plan_repeats(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            repeat=int(snakemake.wildcards.repeat),
            part=snakemake.wildcards.part,
            minutes=snakemake.params.minutes,
            path_to_plan=Path(snakemake.output.plan),
        )

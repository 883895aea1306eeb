"""A stage of the refinement: what all lines and pairs of sides of a run ask for together, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from crossover.config.studies import Cell, Refinement
from crossover.config.workloads import workload_traits
from crossover.plan.stages import StagePlan
from crossover.statistics.crossover import Crossover, estimate_crossover
from crossover.statistics.interpolation import Interpolation
from crossover.statistics.pairings import Pairing, pairings
from crossover.statistics.refinement import REFINED, Plan, half_width, plan_refinement
from crossover.tables.frames import LINE_AXES, first_row, with_ok_times


def plan_stage(
    measurements: pd.DataFrame,
    stage: int,
    refinements: Mapping[str, Refinement],
    x_axes: Mapping[str, str],
    trials: int,
) -> StagePlan:
    """Plan a stage, from 1, for every line of the measured studies and each pair of its sides that is asked for.

    `refinements` says by study how it is refined, `x_axes` what its crossovers are read over (size or parameters),
    `trials` how many trials a cell of the run has.
    """
    timed = with_ok_times(measurements)
    lines = dict(iter(timed.groupby(LINE_AXES)))
    wanted: dict[Cell, set[int]] = defaultdict(set)
    why = []
    for pairing, contender in _asked_for(timed, refinements):
        line = lines[tuple(pairing.line[axis] for axis in LINE_AXES)]
        axes = first_row(line[LINE_AXES])
        refinement, over = refinements[axes["study"]], x_axes[axes["study"]]
        table = pairing.trials[["size", "side", "trial", "step_time_s"]]
        found = estimate_crossover(table, pairing.baseline, contender)
        to_x = Interpolation(line["size"], line[over])
        own = workload_traits(axes["workload"])
        measured = {round(size) for size in table["size"]}
        plan = plan_refinement(found, measured, stage, trials, refinement, own.granularity, own.sizes, to_x)
        numbers = {size: range(1, trials + 1) for size in plan.sizes}
        numbers |= {size: range(trials + 1, most + 1) for size, most in plan.trials.items()}
        for size, added in numbers.items():
            for side in (pairing.baseline, contender):
                cell = {**axes, "size": size, "device": pairing.device, pairing.pair: side}
                wanted[Cell(**cell)].update(added)
        sides = {"pair": pairing.pair, "device": pairing.device, "baseline": pairing.baseline, "contender": contender}
        decision = _decision(found, plan, stage, trials, refinement)
        why.append(axes | sides | _reason(found, decision) | {"half_width": half_width(found, to_x), "over": over})
    in_order = sorted(wanted, key=lambda cell: cell.path)
    return StagePlan(stage, {cell: sorted(wanted[cell]) for cell in in_order}, why)


def _asked_for(measurements: pd.DataFrame, refinements: Mapping[str, Refinement]) -> Iterator[tuple[Pairing, str]]:
    """The pairings to narrow down, each with its contender; of devices, those with the CPU on all of its cores."""
    for pairing in pairings(measurements):
        asked = pairing.pair in refinements[str(pairing.line["study"])].pairs
        if asked and pairing.contender is not None and (pairing.is_headline or pairing.pair != "device"):
            yield pairing, pairing.contender


def _reason(found: Crossover, decision: str) -> dict[str, Any]:
    interval = None if found.low is None and found.high is None else [found.low, found.high]
    return {
        "status": found.status,
        "bracket": None if found.bracket is None else list(found.bracket),
        "crossover": found.size,
        "interval": interval,
        "decision": decision,
    }


def _decision(found: Crossover, plan: Plan, stage: int, trials: int, refinement: Refinement) -> str:
    """What a stage does for a line, in words."""
    if plan.sizes:
        return f"measure size {plan.sizes[0]}, next to the middle of the bracket"
    if plan.trials:
        sizes = " and ".join(map(str, plan.trials))
        return (
            f"measure {max(plan.trials.values()) - trials} more trials of sizes {sizes}: the interval reaches further "
            f"than {100 * refinement.target_width:g} % of the crossover"
        )
    if found.status not in REFINED or found.bracket is None:
        return f"nothing: {found.message}"
    if stage <= refinement.bisections:
        low, high = found.bracket
        return f"nothing: the workload has no size between {low:,.0f} and {high:,.0f} that is not measured"
    if stage > refinement.bisections + 1 or not refinement.extra_trials:
        return "nothing: no more is asked for"
    if trials == 1:
        return "nothing: there is no interval"
    return f"nothing: the interval is within {100 * refinement.target_width:g} % of the crossover"

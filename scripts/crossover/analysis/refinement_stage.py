"""A stage of the refinement: what all lines and accelerators of a run ask for together, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.analysis.crossover import Crossover, estimate_crossover
from crossover.analysis.interpolation import Interpolation
from crossover.analysis.refinement import REFINED, Plan, half_width, plan_refinement
from crossover.analysis.tables import LINE_AXES, at_common_sizes, records, with_ok_times
from crossover.records import BASELINE, is_cpu
from crossover.stages import StagePlan
from crossover.studies import Cell, Refinement, workload_traits


def plan_stage(
    measurements: pd.DataFrame,
    stage: int,
    refinements: Mapping[str, Refinement],
    x_axes: Mapping[str, str],
    trials: int,
) -> StagePlan:
    """Plan a stage, from 1, for every line of the measured studies and each accelerator against the CPU.

    `refinements` says by study how it is refined, `x_axes` what its crossovers are read over (size or parameters),
    `trials` how many trials a cell of the run has.
    """
    wanted: dict[Cell, set[int]] = defaultdict(set)
    why = []
    for _, line in with_ok_times(measurements).groupby(LINE_AXES, sort=False):
        axes = records(line[LINE_AXES].head(1))[0]
        refinement = refinements[axes["study"]]
        for contender in [device for device in line["device"].unique() if not is_cpu(device)]:
            pair = at_common_sizes(line[line["device"].isin([BASELINE, contender])], "device")
            table = pair.rename(columns={"device": "side"})[["size", "side", "trial", "step_time_s"]]
            found = estimate_crossover(table, BASELINE, contender)
            to_x = Interpolation(line["size"], line[x_axes[axes["study"]]])
            plan = _plan(table, contender, stage, trials, refinement, axes["workload"], to_x)
            numbers = {size: range(1, trials + 1) for size in plan.sizes}
            numbers |= {size: range(trials + 1, most + 1) for size, most in plan.trials.items()}
            for size, own in numbers.items():
                for device in (BASELINE, contender):
                    wanted[Cell(**axes, size=size, device=device)].update(own)
            reason = _reason(found, contender, _decision(found, plan, stage, trials, refinement))
            why.append(axes | reason | {"half_width": half_width(found, to_x), "over": x_axes[axes["study"]]})
    in_order = sorted(wanted, key=lambda cell: cell.path)
    return StagePlan(stage, {cell: sorted(wanted[cell]) for cell in in_order}, why)


def _plan(
    table: pd.DataFrame,
    contender: str,
    stage: int,
    trials: int,
    refinement: Refinement,
    workload: str,
    to_x: Interpolation,
) -> Plan:
    own = workload_traits(workload)
    return plan_refinement(table, BASELINE, contender, stage, trials, refinement, own.granularity, own.sizes, to_x)


def _reason(found: Crossover, contender: str, decision: str) -> dict[str, Any]:
    interval = None if found.low is None and found.high is None else [found.low, found.high]
    return {
        "contender": contender,
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
        return f"nothing: the workload has no size between {low:g} and {high:g} that is not measured"
    if stage > refinement.bisections + 1 or not refinement.extra_trials:
        return "nothing: no more is asked for"
    if trials == 1:
        return "nothing: there is no interval"
    return f"nothing: the interval is within {100 * refinement.target_width:g} % of the crossover"

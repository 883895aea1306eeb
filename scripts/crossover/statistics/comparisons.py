"""Crossovers of every line of every study: of devices, precisions, executions and machines, in each cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import pandas as pd

from crossover.config.words import BASELINE
from crossover.statistics.costs import COSTS, with_costs
from crossover.statistics.crossover import estimate_crossover
from crossover.statistics.interpolation import Interpolation
from crossover.statistics.machine_pairings import MACHINES, machine_pairings
from crossover.statistics.pairings import PAIRS, Pairing, pairings
from crossover.tables.frames import LINE_AXES, device_name_of

CROSSOVER_COLUMNS = {
    "pair": "what is compared: "
    + ", ".join((*PAIRS, MACHINES))
    + "; the axis of that name holds the contender's value",
    "cost": "in what: " + ", ".join(COSTS) + " of a step; money only where the config gives `price_per_hour`",
    "device": "the contender's device; of two precisions or executions, the device on which both ran",
    "baseline": "what is compared with: a CPU, `fp32`, `eager`, or the first machine",
    "baseline_machine": "machine of the baseline; another than `machine`, the contender's, where machines are compared",
    "contender": "what is compared; empty where the machine has no accelerator",
    "x_axis": "what the crossover is read over: size or parameters",
    "status": "how the search ended",
    "message": "the same in words",
    "crossover": "the crossover on the x axis; empty unless one is found",
    "crossover_low": "lower end of its 95 % set; empty: no interval is given",
    "crossover_high": "upper end of its 95 % set; empty: no interval is given",
    "bracket_low": "largest measured point on the x axis before the sign changes",
    "bracket_high": "smallest measured point after it",
    "bracket_low_size": "the same as a size",
    "bracket_high_size": "the same as a size",
    "crossover_size": "the crossover as a size, interpolated",
    "crossover_size_low": "lower end of its 95 % set",
    "crossover_size_high": "upper end of its 95 % set",
    "crossover_parameters": "the crossover in trainable parameters, interpolated",
    "crossover_parameters_low": "lower end of its 95 % set",
    "crossover_parameters_high": "upper end of its 95 % set",
    "roots": "all crossings found, on the x axis",
    "trials": "fewest ok trials that give the cost at a point; with one, the crossover is indicative",
    "size_name": "what the size axis counts",
    "baseline_name": "name of the baseline's device",
    "contender_name": "name of the contender's device",
}
"""The columns of a crossover beside the axes of its line."""


def compare_lines(
    measurements: pd.DataFrame, x_axes: Mapping[str, str], price_per_hour: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """One row for each line, pair and cost; none for a cost that neither side has, but for the headline's time.

    A line without an accelerator has a row for its time alone, which says so: there is nothing to compare in another.
    `x_axes` maps a study to what its crossovers are read over, `price_per_hour` a device to the price of its machine.
    """
    priced = with_costs(measurements, price_per_hour)
    rows = [
        _compare(pairing, cost, x_axes[str(pairing.line["study"])])
        for pairing in chain(pairings(priced), machine_pairings(priced))
        for cost in COSTS
        if (pairing.is_headline and cost == "time") or (pairing.contender and pairing.trials[cost].notna().any())
    ]
    return pd.DataFrame(rows, columns=[*LINE_AXES, *CROSSOVER_COLUMNS]).convert_dtypes()


def headline_rows(crossovers: pd.DataFrame) -> pd.DataFrame:
    """The rows that figures, claims and answers speak of: each accelerator's time against all of the CPU beside it."""
    if crossovers.empty:
        return crossovers
    return crossovers[
        (crossovers["pair"] == "device")
        & (crossovers["cost"] == "time")
        & (crossovers["baseline"] == BASELINE)
        & (crossovers["baseline_machine"] == crossovers["machine"])
    ]


def _compare(pairing: Pairing, cost: str, x_axis: str) -> dict[str, object]:
    trials = pairing.trials
    x = trials[x_axis]
    table = pd.DataFrame({"size": x, "side": trials["side"], "trial": trials["trial"], "step_time_s": trials[cost]})
    found = estimate_crossover(table, pairing.baseline, pairing.contender or "accelerator")
    to_size = Interpolation(x, trials["size"])
    to_parameters = Interpolation(x, trials["parameters"])
    low, high = found.bracket or (None, None)
    return {
        **pairing.line,
        "pair": pairing.pair,
        "cost": cost,
        "device": pairing.device,
        "baseline": pairing.baseline,
        "baseline_machine": pairing.baseline_machine,
        "contender": pairing.contender,
        "x_axis": x_axis,
        "status": found.status,
        "message": _missing(pairing, cost) or found.message,
        "crossover": found.size,
        "crossover_low": found.low,
        "crossover_high": found.high,
        "bracket_low": low,
        "bracket_high": high,
        "bracket_low_size": to_size(low),
        "bracket_high_size": to_size(high),
        "crossover_size": to_size(found.size),
        "crossover_size_low": to_size(found.low),
        "crossover_size_high": to_size(found.high),
        "crossover_parameters": to_parameters(found.size),
        "crossover_parameters_low": to_parameters(found.low),
        "crossover_parameters_high": to_parameters(found.high),
        "roots": list(found.roots),
        "trials": _fewest_trials(trials, cost),
        "size_name": trials["size_name"].iloc[0],
        "baseline_name": _device_name(trials, pairing.baseline_machine, pairing.baseline_device),
        "contender_name": _device_name(trials, pairing.line["machine"], pairing.device),
    }


def _missing(pairing: Pairing, cost: str) -> str | None:
    """What is not known of one side, where time is and the cost is not."""
    for side in (pairing.baseline, pairing.contender):
        own = pairing.trials[pairing.trials["side"] == side]
        if own["time"].notna().any() and own[cost].isna().all():
            return {"energy": f"the energy of {side} was not measured", "money": f"price_per_hour lacks {side}"}[cost]
    return None


def _fewest_trials(sides: pd.DataFrame, cost: str) -> int:
    counts = sides.dropna(subset=[cost]).groupby(["size", "side"]).size()
    return int(counts.min()) if len(counts) else 0


def _device_name(line: pd.DataFrame, machine: object, device: str | None) -> str | None:
    return device_name_of(line[(line["machine"] == machine) & (line["device"] == device)])

"""Table `crossovers`: crossovers of devices, precisions, executions and machines, in each cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crossover.compare.intervals import ENDS
from crossover.compare.pairings import Pairing
from crossover.config.words import X_AXES
from crossover.tables.frames import device_name_of
from crossover.tables.run_tables import table_of


def crossovers_of(pairs: Iterable[Pairing], together: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Table `crossovers`: one row per pairing and cost.

    `together` has each study's number of comparisons to correct for, by default 1.
    """
    rows = [_row(pairing, cost, (together or {}).get(pairing.study, 1)) for pairing in pairs for cost in pairing.costs]
    return table_of("crossovers", rows)


class Interpolation:
    """Log-log interpolation from x to y, exact at the points and constant beyond them."""

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        points = np.stack([np.asarray(x, float), np.asarray(y, float)], axis=1)
        points = points[(points > 0).all(axis=1)]
        # Of several points with the same x, the first counts.
        self.y_of: dict[float, float] = dict(sorted(dict(points[::-1].tolist()).items()))
        self.log_x, self.log_y = np.log([*self.y_of]), np.log([*self.y_of.values()])

    def __call__(self, x: float | None) -> float | None:
        if x is None or len(self.log_x) == 0:
            return None
        if x in self.y_of:
            return self.y_of[x]
        return float(np.exp(np.interp(np.log(x), self.log_x, self.log_y)))


def _row(pairing: Pairing, cost: str, together: int) -> dict[str, Any]:
    trials, x_axis = pairing.trials, pairing.x_axis
    crossover = pairing.crossover(cost, x_axis, together)
    x = trials[x_axis]
    low, high = crossover.bracket or (None, None)
    sure_low, sure_high = crossover.sure or (None, None)
    unknown = _unknown_side(pairing, cost)
    baseline_device = pairing.device if pairing.contender != pairing.device else pairing.baseline
    row: dict[str, Any] = {
        **pairing.series,
        "pair": pairing.pair,
        "cost": cost,
        "device": pairing.device,
        "baseline": pairing.baseline,
        "baseline_machine": pairing.baseline_machine,
        "contender": pairing.contender,
        "x_axis": x_axis,
        "second_axis": pairing.second_axis,
        "status": crossover.status,
        "caveat": unknown or crossover.caveat,
        "caveat_at": [] if unknown else list(crossover.caveat_at),
        "crossover": crossover.size,
        "crossover_low": crossover.low,
        "crossover_high": crossover.high,
        "bracket_low": low,
        "bracket_high": high,
        "slower_up_to": crossover.slower_up_to,
        "faster_from": crossover.faster_from,
        "sure_low": sure_low,
        "sure_high": sure_high,
        "roots": list(crossover.roots),
        "trials": pairing.least_trials(cost),
        **{name: trials[name].iloc[0] for name in ("size_name", "batch_name")},
        "baseline_name": _device_name(trials, pairing.baseline_machine, baseline_device),
        "contender_name": _device_name(trials, pairing.series["machine"], pairing.device),
    }
    if prediction := pairing.prediction:
        shares = pairing.by_x(prediction.host_share, x_axis)
        row["host_slowdown"] = prediction.slowdown
        row["host_share"] = Interpolation([*shares], [*shares.values()])(crossover.size)
    to_size, to_parameters = Interpolation(x, trials["size"]), Interpolation(x, trials["parameters"])
    for end in ENDS if X_AXES[x_axis] == "size" else ():
        row[f"crossover_size{end}"] = to_size(row[f"crossover{end}"])
        row[f"crossover_parameters{end}"] = to_parameters(row[f"crossover{end}"])
    return row


def _unknown_side(pairing: Pairing, cost: str) -> str | None:
    """The caveat for a side that has times but no value of this cost."""
    sides = pairing.trials["side"].to_numpy(object)
    is_timed, is_known = (pairing.trials[column].notna().to_numpy() for column in ("time", cost))
    for word, side in (("baseline_unknown", pairing.baseline), ("contender_unknown", pairing.contender)):
        of_side = sides == side
        if is_timed[of_side].any() and not is_known[of_side].any():
            return word
    return None


def _device_name(line: pd.DataFrame, machine: object, device: str | None) -> str | None:
    of_device = (line["machine"].to_numpy(object) == machine) & (line["device"].to_numpy(object) == device)
    return device_name_of(line["device_name"].to_numpy(object)[of_device])

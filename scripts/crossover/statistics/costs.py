"""What a step costs: time, energy where it was measured, money where the config gives prices."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from crossover.config.words import BASELINE, is_cpu

COSTS = ("time", "energy", "money")

SECONDS_PER_HOUR = 3600


def with_costs(measurements: pd.DataFrame, price_per_hour: Mapping[str, float] | None) -> pd.DataFrame:
    """The rows with a column for each cost of a step: seconds, joules, and the currency of the prices.

    NaN where a trial does not give it: its status is not ok, its energy was not measured (a counter that stood still
    measured nothing), its device has no price.
    A price is that of the whole machine that holds the device, so that all sides of a CPU have the same.
    """
    ok = measurements["status"] == "ok"
    joules = pd.to_numeric(measurements["energy_per_step_j"]).astype(float)
    time_s = pd.to_numeric(measurements["step_time_s"]).astype(float).where(ok)
    prices = {
        device: (price_per_hour or {}).get(BASELINE if is_cpu(device) else device)
        for device in measurements["device"].unique()
    }
    return measurements.assign(
        time=time_s,
        energy=joules.where(ok & (joules > 0)),
        money=time_s / SECONDS_PER_HOUR * measurements["device"].map(prices).astype(float),
    )

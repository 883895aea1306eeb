"""How much of a device a cell uses: achieved TFLOP/s, beside the largest that a plain matrix product reached there."""

from __future__ import annotations

import pandas as pd

PEAK_WORKLOAD = "matmul"
"""The workload whose rate stands for what the device can do."""

TERA = 1e12


def achieved_tflops(cells: pd.DataFrame) -> pd.Series:
    """Floating-point operations over time, in TFLOP/s, from columns flops_per_step and step_time_s; or NaN."""
    return cells["flops_per_step"].astype(float) / cells["step_time_s"].astype(float) / TERA


def matmul_peak(cells: pd.DataFrame) -> pd.Series:
    """For each cell the largest TFLOP/s that a matrix product reached on its device in its precision; NaN without one.

    The cells have column achieved_tflops. It is a measured peak, not the data sheet's: a cell may exceed it.
    """
    keys = ["machine", "device", "precision"]
    products = cells[cells["workload"] == PEAK_WORKLOAD]
    peaks = products["achieved_tflops"].astype(float).groupby([products[key] for key in keys]).max()
    own = pd.MultiIndex.from_frame(cells[keys])
    return pd.Series(peaks.reindex(own).to_numpy(float), index=cells.index)


def with_utilisation(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with achieved_tflops (TFLOP/s) and peak_share (of the measured peak of a matrix product)."""
    rated = cells.assign(achieved_tflops=achieved_tflops(cells))
    return rated.assign(peak_share=rated["achieved_tflops"] / matmul_peak(rated))

"""Answers on what communication costs a step on several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crossover.compare.intervals import columns_of, share_over_trials
from crossover.config.words import CPU_THREADS, X_AXES, ranks_of_side, series_axes
from crossover.tables.frames import first_row
from crossover.tables.labels import name_by, place_on, side_word, varying
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import number_text, percent_text, seconds_text
from crossover.topics.answer import Answer
from crossover.topics.caveats import basis
from crossover.topics.wording import confidence_text


@dataclass(frozen=True, kw_only=True)
class Communication(Answer):
    """The share of a step that it would save without the all-reduce of gradients: what computing does not hide."""

    kind = "communication"
    in_sentence = ("place",)

    share: float
    share_low: float | None
    share_high: float | None
    place: str
    gain: float
    """The speed-up of a step without the all-reduce."""
    links_s: float | None
    """Time of an all-reduce of the gradients alone, by the probe of the links; None without one."""

    def sentence(self) -> str:
        return f"Communication takes {percent_text(max(self.share, 0.0))} of a step on {self.device} at {self.place}"

    def details(self) -> list[str]:
        links = [] if self.links_s is None else [f"the links alone need {seconds_text(self.links_s)}"]
        interval = confidence_text(self.share_low, self.share_high, "share")
        return [*interval, f"without it, {number_text(self.gain)}x faster", *links]


def communication_answers(tables: RunTables, x_axis: str) -> list[Communication]:
    """The share of communication at both ends of each series on several GPUs."""
    axis = "size" if x_axis == CPU_THREADS else x_axis
    tried = tables.measurements.dropna(subset=["unsynced_s", "split_step_s"])
    tried = tried[(tried["status"] == "ok") & (tried["device"].map(ranks_of_side) > 1)]
    varied_axes, answers = varying(tables.cells, series_axes(axis)), []
    for _, series in tried.groupby([*series_axes(axis), "device"], sort=False):
        along = series[X_AXES[axis]]
        for point in dict.fromkeys((along.min(), along.max())):
            trials = series[along == point]
            row = first_row(trials)
            ratios = (trials["unsynced_s"] / trials["split_step_s"]).astype(float)
            answers.append(
                Communication(
                    machine=row["machine"],
                    series=name_by(row, varied_axes),
                    device=side_word(row["device"]),
                    **columns_of(share_over_trials((1 - ratios).tolist()), "share{}"),
                    place=place_on(row, axis),
                    gain=float(np.exp(-np.log(ratios).mean())),
                    links_s=_links_s(tables.roofs, row["machine"], row["device"], trials["gradient_bytes"].dropna()),
                    **basis(len(trials), tables.rows_with("cells", CELL_AXES, row)),
                )
            )
    return answers


def _links_s(roofs: pd.DataFrame, machine: str, device: str, gradient_bytes: Sequence[float]) -> float | None:
    """Seconds of an all-reduce of so many bytes, interpolated between the probe's sizes on log axes."""
    of_side = (roofs["machine"] == machine) & (roofs["device"] == device) & (roofs["roof"] == "all_reduce")
    probed = roofs[of_side].sort_values("working_set_bytes")
    if probed.empty or not len(gradient_bytes):
        return None
    sizes, rates = (np.log(probed[name].to_numpy(float)) for name in ("working_set_bytes", "value"))
    size = max(gradient_bytes)
    return float(size / np.exp(np.interp(np.log(size), sizes, rates)))

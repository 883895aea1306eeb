"""Answers on what communication costs a step on several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crossover.compare.intervals import columns_of, share_over_trials
from crossover.config.words import CPU_THREADS, X_AXES, is_cpu, ranks_of_side, series_axes
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
    """The share of a step that it would save without the all-reduce of gradients: what computing does not hide.

    The numbers are for the smallest place of a series.
    """

    kind = "communication"

    share: float
    share_low: float | None
    share_high: float | None
    place: str
    at_the_end: float | None
    """The share at the largest place, `end`; None if there is no other place."""
    end: str | None
    gain: float
    """The speed-up of a step without the all-reduce."""
    links_s: float | None
    """Time of an all-reduce of the gradients alone, by the probe of the links; None without one."""

    def sentence(self) -> str:
        end = "" if self.at_the_end is None else f" and {_shown(self.at_the_end)} at {self.end}"
        return f"communication takes {_shown(self.share)} of a step on {self.device} at {self.place}{end}"

    def details(self) -> list[str]:
        links = [] if self.links_s is None else [f"the links alone need {seconds_text(self.links_s)}"]
        interval = confidence_text(self.share_low, self.share_high, "share")
        notes = [*interval, f"without it, {number_text(self.gain)}x faster", *links]
        if self.end is not None:
            notes[0] = f"at {self.place}: {notes[0]}"
        return notes


def communication_answers(tables: RunTables, x_axis: str) -> list[Communication]:
    """The share of communication at both ends of each series on several GPUs.

    Without a CPU beside them, the first answer is a main one.
    """
    axis = "size" if x_axis == CPU_THREADS else x_axis
    tried = tables.measurements.dropna(subset=["unsynced_s", "split_step_s"])
    tried = tried[(tried["status"] == "ok") & (tried["device"].map(ranks_of_side) > 1)]
    tried = tried.assign(ratio=(tried["unsynced_s"] / tried["split_step_s"]).astype(float))
    varied_axes, answers = varying(tables.cells, series_axes(axis)), []
    for _, series in tried.groupby([*series_axes(axis), "device"], sort=False):
        along = series[X_AXES[axis]]
        trials, others = series[along == along.min()], series[along == along.max()]
        row, last = first_row(trials), first_row(others)
        is_single = along.min() == along.max()
        answers.append(
            Communication(
                machine=row["machine"],
                series=name_by(row, varied_axes),
                device=side_word(row["device"]),
                **columns_of(share_over_trials((1 - trials["ratio"]).tolist()), "share{}"),
                place=place_on(row, axis),
                at_the_end=None if is_single else float(1 - others["ratio"].mean()),
                end=None if is_single else place_on(last, axis),
                gain=float(np.exp(-np.log(trials["ratio"]).mean())),
                links_s=_links_s(tables.roofs, row["machine"], row["device"], trials["averaged_bytes"].dropna()),
                **basis(len(trials), tables.rows_with("cells", CELL_AXES, row)),
            )
        )
    is_asked = not any(map(is_cpu, tables.cells["device"]))
    return [replace(answer, main=is_asked and answer is answers[0]) for answer in answers]


def _shown(share: float) -> str:
    return percent_text(max(share, 0.0))


def _links_s(roofs: pd.DataFrame, machine: str, device: str, averaged_bytes: Sequence[float]) -> float | None:
    """Seconds of an all-reduce of so many bytes, interpolated between the probe's sizes on log axes."""
    of_side = (roofs["machine"] == machine) & (roofs["device"] == device) & (roofs["roof"] == "all_reduce")
    probed = roofs[of_side].sort_values("working_set_bytes")
    if probed.empty or not len(averaged_bytes):
        return None
    sizes, rates = (np.log(probed[name].to_numpy(float)) for name in ("working_set_bytes", "value"))
    size = max(averaged_bytes)
    return float(size / np.exp(np.interp(np.log(size), sizes, rates)))

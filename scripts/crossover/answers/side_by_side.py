"""Machines side by side: each cell's time on every machine, how they compare, and what else differs between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from crossover.answers.naming import varying
from crossover.answers.sentences import line_words
from crossover.answers.wording import listed
from crossover.figures.style import number_text, seconds_text, side_word
from crossover.statistics.machine_pairings import SHARED_AXES
from crossover.statistics.summary import Ratio, ratio_over_trials
from crossover.tables.frames import first_row, with_ok_times

SOFTWARE = {
    "torch_version": "torch",
    "cuda_version": "CUDA",
    "cudnn_version": "cuDNN",
    "driver_version": "GPU driver",
    "python_version": "Python",
    "crossover_version": "Crossover",
    "code_version": "measuring code",
}
"""What may differ between machines beside their hardware."""


def side_by_side(measurements: pd.DataFrame) -> dict[str, Any] | None:
    """A study's table of machines, as text: `machines`, the first one being compared with, and `rows`, one a cell.

    None where one machine measured it.
    """
    machines = list(measurements["machine"].unique())
    if len(machines) < 2:
        return None
    several = varying(measurements, SHARED_AXES)
    cells = with_ok_times(measurements).groupby([*SHARED_AXES, "size", "device"], sort=False)
    rows = [_row(cell, machines, several) for _, cell in cells]
    return {"machines": machines, "rows": rows}


def _row(cell: pd.DataFrame, machines: Sequence[str], several: Sequence[str]) -> dict[str, Any]:
    first = first_row(cell)
    trials = {machine: cell[cell["machine"] == machine] for machine in machines}
    times = {machine: own["step_time_s"].dropna().tolist() for machine, own in trials.items()}
    baseline = times[machines[0]]
    return {
        "line": line_words(first, several),
        "size": f"{first['size']:,}",
        "device": side_word(first["device"]),
        "times": [_time(times[machine], trials[machine]["status"]) for machine in machines],
        "speeds": [
            _speed(ratio_over_trials(times[machine], baseline)) if baseline and times[machine] else "–"
            for machine in machines[1:]
        ],
    }


def _time(seconds: Sequence[float], statuses: pd.Series) -> str:
    """The geometric mean of the trials' times; how the first one ended where none is ok, and a dash without any."""
    if not seconds:
        return "–" if statuses.empty else str(statuses.iloc[0])
    return seconds_text(ratio_over_trials([1.0], seconds).ratio)


def _speed(found: Ratio) -> str:
    """'1.83 (1.70 to 1.97)'."""
    interval = (
        "" if found.low is None or found.high is None else f" ({number_text(found.low)} to {number_text(found.high)})"
    )
    return number_text(found.ratio) + interval


def machine_notes(measurements: pd.DataFrame) -> list[str]:
    """What a reader of several machines' results must know: which there are, and what differs beside the hardware."""
    machines = list(measurements["machine"].unique())
    if len(machines) < 2:
        return []
    by_machine = {machine: measurements[measurements["machine"] == machine] for machine in machines}
    notes = [f"This report holds {len(machines)} machines, each as it was measured: {', '.join(machines)}."]
    unlike = [f"{words} ({text})" for column, words in SOFTWARE.items() if (text := _differing(by_machine, column))]
    if unlike:
        verb = "differ" if unlike[1:] else "differs"
        notes.append(f"Their {listed(unlike)} {verb}, so that a difference between them need not be the hardware's.")
    if _differing(by_machine, "effort"):
        notes.append("Their measuring effort differs; column effort of measurements.parquet holds it.")
    for study, own in measurements.groupby("study", sort=False):
        if len(there := list(own["machine"].unique())) < len(machines):
            notes.append(f"Study {study} was measured on {listed(there)} only.")
    return notes


def _differing(by_machine: dict[str, pd.DataFrame], column: str) -> str:
    """'2.12.0 on laptop, 2.13.0 on h200'; empty where all machines that know it agree."""
    known = {machine: sorted(rows[column].dropna().unique()) for machine, rows in by_machine.items()}
    told = {machine: " and ".join(map(_short, values)) for machine, values in known.items() if values}
    if len(set(told.values())) < 2:
        return ""
    return ", ".join(f"{text} on {machine}" for machine, text in told.items())


def _short(value: Any) -> str:
    """A commit by its first ten digits; anything else as it is."""
    return re.sub(r"^([0-9a-f]{10})[0-9a-f]{30}", r"\1", str(value))

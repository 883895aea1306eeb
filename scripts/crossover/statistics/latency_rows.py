"""The rows of a latency figure: the right ways to measure it, each mistake, and what others published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.naming import NAMED_AXES
from crossover.answers.wording import Answer
from crossover.figures.style import number_text
from crossover.statistics.summary import Ratio, paired_ratio
from crossover.tables.frames import CELL_AXES, records, rows_with

Floats = np.ndarray[Any, np.dtype[np.float64]]

REFERENCE = "latencies_s"
"""The right way on every device: each pass synchronised, by the host's clock."""

MISTAKE = "mistake: "

COLD = "latencies_cold_s"
"""The first steps of a process, the only ones that take no turns with the right way."""

LOWERS = f"{MISTAKE}no synchronisation"
"""The one mistake that leaves time out, so that it can only lower a mean; the others can only raise it."""

MISTAKES = {
    "latencies_transfer_s": f"{MISTAKE}transfer in the loop",
    COLD: f"{MISTAKE}no warm-up",
    "latencies_unsynchronised_s": LOWERS,
}
WAYS = {
    REFERENCE: "right: host clock, synchronised",
    "latencies_device_s": "right: device events",
    **MISTAKES,
}
"""The columns of measurements.parquet that hold latencies, and what each is."""

ONE_SAMPLE = f"{MISTAKE}one sample"


@dataclass(frozen=True)
class LatencyRow:
    """One way to measure the latency: its samples in seconds, or a published mean and standard deviation alone."""

    name: str
    samples_s: Floats
    mean_s: float
    deviation_s: float | None
    kind: str
    """`right`, `mistake`, `one sample` or `published`."""
    ratio: Ratio | None = None
    """A mistake's mean over the right one, paired by trial, with its interval over trials.

    Those of all mistakes that a machine made in a study hold together, since readers look for the largest.
    """

    @property
    def mistake(self) -> str:
        """What the mistake is, without the word."""
        return self.name.removeprefix(MISTAKE)

    @property
    def is_error(self) -> bool:
        """Whether the trials show that the mistake moves the mean, the way it can: the ratio's interval is beyond 1."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return False
        return self.ratio.high < 1 if self.name == LOWERS else self.ratio.low > 1

    @property
    def low_s(self) -> float:
        """The least of what the row shows."""
        return float(min(self.samples_s, default=self.mean_s - (self.deviation_s or 0)))

    @property
    def high_s(self) -> float:
        """The largest of what the row shows."""
        return float(max(self.samples_s, default=self.mean_s + (self.deviation_s or 0)))


def latency_rows(
    trials: pd.DataFrame, cell: Mapping[str, Any], published: pd.DataFrame | None = None
) -> list[LatencyRow]:
    """The rows of a cell, its ok trials all pooled; `trials` are those of all cells of its study.

    Published results are those that are of the cell.
    """
    own = rows_with(trials, CELL_AXES, cell)
    others = rows_with(trials, ["machine"], cell)
    together = sum(_with_right(others, column).groupby(CELL_AXES).ngroups for column in MISTAKES)
    rows = []
    for column, name in WAYS.items():
        samples = pooled(own, column)
        if len(samples):
            mistake = column in MISTAKES
            ratio = _over_right(own, column, together) if mistake else None
            rows.append(_row(name, samples, "mistake" if mistake else "right", ratio))
    single = pooled(own, REFERENCE)
    if len(single):
        rows.append(_row(ONE_SAMPLE, single, "one sample"))
    if published is not None:
        rows += _of_results([result for result in records(published) if _is_of(result, cell)])
    return rows


def pooled(trials: pd.DataFrame, column: str) -> Floats:
    """The samples of all trials that ended ok, in seconds."""
    lists: Sequence[Any] = trials.loc[trials["status"] == "ok", column].dropna().tolist()
    return np.concatenate([np.asarray(samples, float) for samples in lists]) if lists else np.array([])


def worst_words(rows: Sequence[LatencyRow]) -> Answer:
    """The mistake that is off by the largest factor, '“no warm-up” makes the mean latency 50 % too high (95 %: ...)'.

    `rows` are those of one cell; '' where no mistake was made.
    """
    made = [(row, row.ratio) for row in rows if row.ratio is not None]
    sure = [(row, ratio) for row, ratio in made if row.is_error]
    if not sure:
        return Answer("no mistake could be told from the right way" if made else "")
    row, ratio = max(sure, key=lambda found: _factor(found[1].ratio))
    return Answer(f"“{row.mistake}” makes the mean latency {off_words(row, ratio)}", [f"95 %: {_span(ratio)}"])


def off_words(row: LatencyRow, ratio: Ratio) -> str:
    """How far a mistake's mean is off, '30 % too low'; an error only where the trials bear it out."""
    off = _difference(ratio.ratio)
    if row.is_error:
        return f"{off} too {'high' if ratio.ratio > 1 else 'low'}"
    return f"{off} {'higher' if ratio.ratio > 1 else 'lower'}, {'one trial' if ratio.low is None else 'not told apart'}"


def _difference(ratio: float) -> str:
    if abs(ratio - 1) < 0.01:
        return "under 1 %"
    return f"{100 * abs(ratio - 1):.0f} %" if _in_percent(ratio) else f"{_factor(ratio):.2g}×"


def _span(over: Ratio) -> str:
    """How far off the ends of an interval are, in the unit in which its ratio is said: '48 % to 52 %', or factors."""
    ends = [
        f"{number_text(100 * abs(end - 1), 2)} %" if _in_percent(over.ratio) else f"{number_text(_factor(end))}×"
        for end in (over.low, over.high)
        if end is not None
    ]
    return " to ".join(ends if over.ratio > 1 else reversed(ends))


def _in_percent(ratio: float) -> bool:
    return 0.5 < ratio < 2


def _factor(ratio: float) -> float:
    return max(ratio, 1 / ratio)


def _over_right(trials: pd.DataFrame, column: str, together: int) -> Ratio | None:
    """The ratio of a trial's means, over the ok trials that hold both; None where none does.

    The cold steps are held against the later half of themselves: the others ran later, at another pace perhaps.
    """
    both = _with_right(trials, column)
    right = both[COLD].map(lambda samples: samples[len(samples) // 2 :]) if column == COLD else both[REFERENCE]
    found, means = (samples.map(np.mean).tolist() for samples in (both[column], right))
    return paired_ratio(found, means, together) if found else None


def _with_right(trials: pd.DataFrame, column: str) -> pd.DataFrame:
    return trials[trials["status"] == "ok"].dropna(subset=[column, REFERENCE])


def _row(name: str, samples: Floats, kind: str, ratio: Ratio | None = None) -> LatencyRow:
    deviation = float(samples.std(ddof=1)) if len(samples) > 1 else None
    return LatencyRow(name, samples, float(samples.mean()), deviation, kind, ratio)


def _is_of(result: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    return result.get("latency_s") is not None and all(
        result[axis] == cell[axis] for axis in (*NAMED_AXES, "device") if result.get(axis) is not None
    )


def _of_results(results: list[dict[str, Any]]) -> list[LatencyRow]:
    """Named by their hardware, and by their label too where several share it."""
    counts = Counter(result["hardware"] for result in results)
    rows = []
    for result in results:
        label = result.get("label") if counts[result["hardware"]] > 1 else None
        name = ", ".join(["published", *(word for word in (result["hardware"], label) if word)])
        rows.append(LatencyRow(name, np.array([]), result["latency_s"], result.get("latency_std_s"), "published"))
    return rows

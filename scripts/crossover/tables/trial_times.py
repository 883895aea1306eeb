"""How long a run has taken, and what one more trial of a cell would take, from the rows of its trials alone."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from crossover.config.studies import Cell
from crossover.config.words import AXES

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_GAP_S = 15.0
"""Longest time between two trials that counts as part of a run; what is longer lies between two runs.

Planning a stage took up to 13 s on an H100 host, where other gaps had a median of 0.45 s.
"""
BEFORE_START = ("import", "context")
"""Phases of a trial before the time in its column `started_at`."""
KEPT_S = 45.0
"""Seconds of a budget for what rows do not show: the start of the run, peak rates, analysis and report.

They took 36 s in a default run on an H100 host, and 53 s in a quick one on two busy cores.
"""


@dataclass(frozen=True)
class TrialTimes:
    """Times of the trials that were measured so far."""

    used_s: float
    """Time during which trials ran, side by side or not, or waited for their turn, and the gaps between them."""
    gap_s: float
    """Median gap between two trials."""
    by_cell: Mapping[Cell, Mapping[int, float]]
    """Seconds of each cell's trials in their processes, by number."""

    @classmethod
    def of(cls, rows: pa.Table) -> TrialTimes:
        """The times of rows of trials. A row without times has 0 s."""
        by_cell: dict[Cell, dict[int, float]] = defaultdict(dict)
        spans = []
        for row in rows.select([*AXES, "trial", "started_at", "spent_s", "lease_wait_s"]).to_pylist():
            phases = json.loads(row["spent_s"] or "{}")
            own_s = sum(phases.values())
            by_cell[Cell(**{axis: row[axis] for axis in AXES})][row["trial"]] = own_s
            if row["started_at"]:
                start = datetime.fromisoformat(row["started_at"]).timestamp()
                start -= sum(phases.get(name, 0.0) for name in BEFORE_START)
                spans.append((start - (row["lease_wait_s"] or 0.0), start + own_s))
        used_s, gaps, end = 0.0, [], min(spans, default=(0.0, 0.0))[0]
        for start, stop in sorted(spans):
            if start > end:
                gaps.append(min(start - end, LONGEST_GAP_S))
            used_s += max(stop - max(start, end), 0.0)
            end = max(stop, end)
        return cls(used_s + sum(gaps), statistics.median(gaps or [0.0]), by_cell)

    def cost_s(self, cell: Cell) -> float:
        """Seconds that one more trial takes: the mean of the cell's, else of its study's on the device, else of all."""
        side = cell.study, cell.device
        similar = chain(*(own.values() for other, own in self.by_cell.items() if (other.study, other.device) == side))
        everything = chain(*(own.values() for own in self.by_cell.values()))
        times = [*self.by_cell.get(cell, {}).values()] or [*similar] or [*everything]
        return statistics.fmean(times) + self.gap_s if times else 0.0

    def left_s(self, minutes: float) -> float:
        """Seconds of a budget that are left for trials; negative if it is exceeded."""
        return 60 * minutes - KEPT_S - self.used_s

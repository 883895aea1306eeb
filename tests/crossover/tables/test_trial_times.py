"""The time that a run has used, from made-up rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from crossover.config.studies import Cell
from crossover.tables.columns import arrow_schema
from crossover.tables.trial_times import KEPT_S, LONGEST_GAP_S, TrialTimes

Row = Callable[..., dict[str, Any]]
BEGAN_S = 1_800_000_000


def table(row: Row, *trials: tuple[float, float, dict[str, Any]]) -> pa.Table:
    """Rows of processes with their start and duration in seconds; `started_at` is 1 s after the start."""
    rows = [
        row(
            started_at=datetime.fromtimestamp(BEGAN_S + start + 1, UTC).isoformat(timespec="milliseconds"),
            spent_s=json.dumps({"import": 0.75, "context": 0.25, "warm-up and timing": own - 1}),
            **values,
        )
        for start, own, values in trials
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema())


def cell_of(row: dict[str, Any], **changes: Any) -> Cell:
    axes = ("study", "workload", "protocol", "batch_size", "precision", "execution", "size", "device", "variant")
    return Cell(**{**{axis: row[axis] for axis in axes}, **changes})


def test_a_run_has_used_the_time_of_its_trials_and_of_the_gaps_between_them(row: Row) -> None:
    """Trials from 0 to 3, 3.5 to 5.5 and 6 to 10 s."""
    times = TrialTimes.of(table(row, (6, 4, {"trial": 3}), (0, 3, {"trial": 1}), (3.5, 2, {"trial": 2})))
    assert (times.used_s, times.gap_s) == (10, 0.5)
    assert times.by_cell == {cell_of(row()): {1: 3, 2: 2, 3: 4}}
    assert times.cost_s(cell_of(row())) == 3 + 0.5
    assert times.left_s(2) == 120 - KEPT_S - 10


def test_the_pause_before_a_run_went_on_does_not_count(row: Row) -> None:
    """An hour after the first trial, the second waited 20 s for its turn."""
    times = TrialTimes.of(table(row, (0, 3, {"trial": 1}), (3600, 2, {"trial": 2, "lease_wait_s": 20.0})))
    assert times.used_s == 3 + LONGEST_GAP_S + 20 + 2


def test_trials_side_by_side_count_once(row: Row) -> None:
    """From 0 to 4 s, and beside it from 1 to 3 and from 2 to 6 s."""
    side_by_side = [(0, 4, {"trial": 1}), (1, 2, {"trial": 2}), (2, 4, {"trial": 3})]
    assert TrialTimes.of(table(row, *side_by_side)).used_s == 6


@pytest.mark.parametrize(
    ("changes", "cost_s"),
    [({}, 2), ({"size": 9}, 3), ({"size": 9, "device": "cuda"}, 10), ({"study": "hsf_width"}, (2 + 4 + 10) / 3)],
)
def test_a_trial_costs_the_mean_of_the_most_similar_ones(row: Row, changes: dict[str, Any], cost_s: float) -> None:
    similar = [(0, 2, {}), (2, 4, {"size": 7}), (6, 10, {"device": "cuda"})]
    assert TrialTimes.of(table(row, *similar)).cost_s(cell_of(row(), **changes)) == pytest.approx(cost_s)


def test_without_trials_nothing_is_used() -> None:
    times = TrialTimes.of(arrow_schema().empty_table())
    assert (times.used_s, times.cost_s(Cell("mine", "linear_stack", "resident", 1, "fp32", "eager", 4, "cpu"))) == (
        0,
        0,
    )

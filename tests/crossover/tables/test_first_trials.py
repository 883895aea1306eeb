from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from crossover.tables.columns import arrow_schema
from crossover.tables.first_trials import resting_on_first

Row = Callable[..., dict[str, Any]]
WRONG = {"status": "invalid", "reason": "the answer is off", "answer": "wrong"}
CRASHED = {"status": "invalid", "reason": "it crashed", "flags": None}
DISTURBED = {"status": "invalid", "reason": "other processes", "answer": "right"}
LATE = {"status": "timeout", "reason": "not done", "flags": None}
WHY = "its first trial, which alone is checked, "


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({}, ("ok", None, [])),
        ({"flags": ["unchecked"], "answer": "unchecked"}, ("ok", None, [])),  # the cell has the flag by its first trial
        (WRONG, ("invalid", "the answer is off", [])),
        (CRASHED, ("invalid", "it crashed", [])),
        (DISTURBED, ("ok", None, [])),
        (DISTURBED | {"answer": "unchecked"}, ("ok", f"{WHY}ended with status invalid", ["unchecked"])),
        (LATE, ("ok", f"{WHY}ended with status timeout", ["unchecked"])),
        (None, ("ok", f"{WHY}is not among these rows", ["unchecked"])),
    ],
)
def test_later_trials_are_worth_what_the_first_allows(
    row: Row, first: dict[str, Any] | None, later: tuple[object, ...]
) -> None:
    """Of two cells, of which the other is sound; a later trial that is not ok stays as it is."""
    others = [row(size=5, trial=trial) for trial in (1, 2)]
    own = [] if first is None else [row(size=4, trial=1, **first)]
    own += [row(size=4, trial=2), row(size=4, trial=3, status="oom", reason="full", flags=["drift"])]
    table = pa.Table.from_pylist([*own, *others], schema=arrow_schema())
    found = resting_on_first(table)
    assert found.schema == table.schema
    before, rows = (one.select(["status", "reason", "flags"]).to_pylist() for one in (table, found))
    assert tuple(rows[-4].values()) == later
    assert tuple(rows[-3].values()) == ("oom", "full", ["drift"])
    assert rows[:-4] == before[:-4]
    assert rows[-2:] == [{"status": "ok", "reason": None, "flags": []}] * 2


@pytest.mark.parametrize(
    ("share", "beside", "flags"),
    [
        (0.51, 1, ["side_by_side"]),
        (0.5, 1, []),
        (0.9, 0, []),
        (0.9, None, []),
        (None, 1, []),
    ],
)
def test_the_first_trials_profile_tells_whether_trials_beside_it_matter(
    row: Row, share: float | None, beside: int | None, flags: list[str]
) -> None:
    """Only the first trial is profiled; one that is flagged already, or not ok, stays as it is."""
    table = pa.Table.from_pylist(
        [
            row(trial=1, host_bound_share=share, leased_beside=1, flags=["side_by_side"]),
            row(trial=2, leased_beside=beside),
            row(trial=3, leased_beside=1, status="oom", flags=None),
            row(trial=2, leased_beside=1, size=5),
        ],
        schema=arrow_schema(),
    )
    found = resting_on_first(table)["flags"].to_pylist()
    assert found == [["side_by_side"], flags, None, ["unchecked"]]

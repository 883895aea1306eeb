from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.answers.side_by_side import machine_notes, side_by_side

Row = Callable[..., dict[str, Any]]


def test_a_row_has_each_machines_time_and_how_many_times_as_fast_it_is(row: Row) -> None:
    """Two trials a side, the logarithms of one side 0.01 below and above its mean: t is 12.706 with one degree."""
    spread = [
        row(machine="b", trial=trial, step_time_s=5e-4 * math.exp(sign * 0.01)) for trial, sign in ((1, -1), (2, 1))
    ]
    exact = [row(machine="a", trial=trial, step_time_s=1e-3) for trial in (1, 2)]
    found = side_by_side(pd.DataFrame([*exact, *spread]))
    assert found is not None
    (one,) = found["rows"]
    factor = math.exp(12.7062 * 0.01)
    assert found["machines"] == ["a", "b"]
    assert one["times"] == ["1.00 ms", "500 µs"]
    assert one["speeds"] == [f"2.00 ({2 / factor:.2f} to {2 * factor:.2f})"]
    assert (one["size"], one["device"]) == ("4", "CPU")


def test_a_time_that_is_missing_is_told_by_how_it_ended(row: Row) -> None:
    rows = [
        row(machine="a", size=1),
        row(machine="b", size=1, status="oom"),
        row(machine="a", size=2),
        row(machine="b", size=3),
    ]
    found = side_by_side(pd.DataFrame(rows))
    assert found is not None
    assert [one["times"] for one in found["rows"]] == [["1.00 ms", "oom"], ["1.00 ms", "–"], ["–", "1.00 ms"]]
    assert [one["speeds"] for one in found["rows"]] == [["–"]] * 3


def test_one_machine_has_nothing_beside_it(row: Row) -> None:
    assert side_by_side(pd.DataFrame([row(), row(trial=2)])) is None
    assert machine_notes(pd.DataFrame([row()])) == []


def test_the_notes_name_what_differs_beside_the_hardware(row: Row) -> None:
    rows = [
        row(machine="a", torch_version="2.12.0", driver_version=None, effort="{}", python_version="3.11"),
        row(machine="b", torch_version="2.13.0", driver_version="570", effort="{}", python_version="3.11"),
        row(machine="b", torch_version="2.13.0", driver_version="570", effort="{}", study="hsf_width"),
    ]
    assert machine_notes(pd.DataFrame(rows)) == [
        "This report holds 2 machines, each as it was measured: a, b.",
        "Their torch (2.12.0 on a, 2.13.0 on b) differs, so that a difference between them need not be the hardware's.",
        "Study hsf_width was measured on b only.",
    ]


def test_all_that_differs_is_one_note_with_short_commits(row: Row) -> None:
    commit = "0123456789" * 4
    rows = [row(machine="a", torch_version="2.12.0"), row(machine="b", torch_version="2.13.0")]
    table = pd.DataFrame(rows).assign(code_version=[commit, f"{commit[::-1]}-dirty"])
    assert machine_notes(table)[1:] == [
        "Their torch (2.12.0 on a, 2.13.0 on b) and measuring code (0123456789 on a, 9876543210-dirty on b) differ, so "
        "that a difference between them need not be the hardware's."
    ]

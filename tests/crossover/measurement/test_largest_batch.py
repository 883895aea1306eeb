from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.batch_try import HOST_FACTS
from crossover.measurement.largest_batch import LargestBatch, Try, describe, search_largest
from crossover.measurement.requests import BatchTry
from crossover.measurement.supervision import Outcome
from crossover.records import AXES
from trials import CELL

FIRST = BatchTry(CELL, 0, "data", 1, 60.0, memory_limit_bytes=1000)  # batch 100


def outcomes(status_of: Callable[[int], str]) -> Callable[[BatchTry], Outcome]:
    def attempt(job: BatchTry) -> Outcome:
        size = job.cell.batch_size
        status = status_of(size)
        return Outcome(status, None if status == "ok" else f"{size} is too much", False, {"hostname": "here"})

    return attempt


def search(status_of: Callable[[int], str], limit: int | None = None) -> tuple[LargestBatch, list[str]]:
    lines: list[str] = []
    seconds = (0.5 * number for number in count())
    return search_largest(FIRST, limit, outcomes(status_of), lines.append, lambda: next(seconds)), lines


def test_only_the_batch_size_differs_between_tries() -> None:
    jobs: list[BatchTry] = []

    def attempt(job: BatchTry) -> Outcome:
        jobs.append(job)
        return Outcome("ok", None, False, {})

    search_largest(FIRST, 200, attempt, lambda _: None)
    assert [job.cell.batch_size for job in jobs] == [100, 200, 200, 200]
    assert {job.memory_limit_bytes for job in jobs} == {1000}
    assert jobs[0] == FIRST


def test_every_try_is_kept_and_told() -> None:
    found, lines = search(lambda size: "ok" if size <= 101 else "oom", limit=103)
    assert (found.status, found.reason, found.largest, found.smallest_failing) == ("ok", None, 101, 102)
    assert found.tries == [
        Try(100, "ok", None, 0.5),
        Try(103, "oom", "103 is too much", 0.5),
        Try(101, "ok", None, 0.5),
        Try(102, "oom", "102 is too much", 0.5),
        Try(101, "ok", None, 0.5),
        Try(101, "ok", None, 0.5),
    ]
    assert found.facts == {"hostname": "here"}
    assert lines[:2] == ["batch 100: ok, 0.5 s", "batch 103: oom (103 is too much), 0.5 s"]


@pytest.mark.parametrize("status", ["timeout", "invalid", "unsupported"])
def test_any_other_end_stops_the_search(status: str) -> None:
    found, _ = search(lambda size: "ok" if size < 400 else status)
    assert (found.status, found.reason) == (status, "batch 400: 400 is too much")
    assert (found.largest, found.smallest_failing) == (None, None)
    assert [one.batch_size for one in found.tries] == [100, 200, 400]


def test_nothing_fits() -> None:
    found, _ = search(lambda _: "oom")
    assert (found.status, found.reason) == ("oom", "batch 1 does not fit: 1 is too much")
    assert (found.largest, found.smallest_failing) == (None, 1)


def test_a_result_is_plain_values_without_a_batch_size() -> None:
    found, _ = search(lambda size: "ok" if size < 150 else "oom")
    result: dict[str, Any] = describe(FIRST, 7000, found, "the command")
    assert (result["largest"], result["smallest_failing"], result["start"], result["limit"]) == (149, 150, 100, 7000)
    assert (result["size"], result["memory_limit_bytes"], result["hostname"]) == (3, 1000, "here")
    assert result["tries"][0] == {"batch_size": 100, "status": "ok", "reason": None, "duration_s": 0.5}
    assert not {"batch_size", "facts"} & result.keys()


def test_the_results_readme_names_every_key() -> None:
    found, _ = search(lambda _: "ok", limit=100)
    keys = {*describe(FIRST, None, found, ""), *HOST_FACTS, *vars(found.tries[0])} - set(AXES)
    text = (Path(__file__).parents[3] / "results" / "README.md").read_text().partition("## Keys of largest_batch")[2]
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crossover.config.words import AXES
from crossover.measurement.batch_try import HOST_FACTS
from crossover.measurement.largest_batch import LargestBatch, Throughput, Try, describe, search_largest, time_largest
from crossover.measurement.process.requests import BatchTry
from crossover.measurement.process.supervision import Outcome
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
    assert (found.largest, found.smallest_failing, found.largest_fitting) == (None, None, 200)
    assert describe(FIRST, None, found, "")["largest_fitting"] == 200
    assert [one.batch_size for one in found.tries] == [100, 200, 400]


def test_a_stopped_search_keeps_what_did_not_fit_as_well() -> None:
    """100, 200 and 400 fit, 800 does not; 600 is stopped."""
    found, _ = search(lambda size: {800: "oom", 600: "timeout"}.get(size, "ok"))
    assert [one.batch_size for one in found.tries] == [100, 200, 400, 800, 600]
    assert (found.status, found.largest, found.largest_fitting, found.smallest_failing) == ("timeout", None, 400, 800)


def test_a_batch_that_fitted_once_and_then_no_more_is_no_batch_that_fits() -> None:
    """Up to 150 once; when 150 is tried again it does not fit, and the try of 149 after it is stopped."""
    seen: list[int] = []

    def status_of(size: int) -> str:
        seen.append(size)
        if 150 in seen[:-1] and seen.count(150) == 2:
            return "oom" if size == 150 else "invalid"
        return "ok" if size <= 150 else "oom"

    found, _ = search(status_of)
    assert [one.batch_size for one in found.tries][-2:] == [150, 149]
    largest_before = max(size for size in seen if size < 149)
    assert (found.status, found.largest_fitting, found.smallest_failing) == ("invalid", largest_before, 150)


def test_an_ended_search_has_no_batch_that_fits_so_far() -> None:
    for found, _ in (search(lambda size: "ok" if size < 150 else "oom"), search(lambda _: "oom")):
        assert found.largest_fitting is None


def test_nothing_fits() -> None:
    found, _ = search(lambda _: "oom")
    assert (found.status, found.reason) == ("oom", "batch 1 does not fit: 1 is too much")
    assert (found.largest, found.smallest_failing) == (None, 1)


def test_the_largest_batch_is_timed_in_a_process_of_its_own() -> None:
    jobs: list[BatchTry] = []

    def attempt(job: BatchTry) -> Outcome:
        jobs.append(job)
        return Outcome("ok", None, True, {}, {"timed_batches": 40, "timed_s": 8.0})

    found, lines = search(lambda size: "ok" if size < 150 else "oom")
    timed = time_largest(FIRST, found, 100, attempt, lines.append)
    assert jobs == [replace(FIRST, cell=replace(CELL, batch_size=149), timed_batches=100)]
    assert timed == replace(found, throughput=Throughput(40 * 149 / 8.0, 40, 8.0))  # tries and all as they were
    assert lines[-1] == "batch 149: 745 samples/s over 40 batches"
    result = describe(FIRST, None, timed, "")
    assert [result[key] for key in ("throughput_samples_per_s", "timed_batches", "timed_s")] == [745, 40, 8.0]
    assert result["throughput_reason"] is None


@pytest.mark.parametrize("status", ["oom", "timeout", "invalid"])
def test_a_largest_batch_that_cannot_be_timed_is_the_largest_still(status: str) -> None:
    found, lines = search(lambda size: "ok" if size < 150 else "oom")
    timed = time_largest(FIRST, found, 100, outcomes(lambda _: status), lines.append)
    assert timed == replace(found, throughput=Throughput(throughput_reason=f"{status}: 149 is too much"))
    assert (timed.status, timed.largest) == ("ok", 149)
    assert lines[-1] == f"batch 149: not timed, {status} (149 is too much)"


@pytest.mark.parametrize(("status", "timed_batches"), [("oom", 100), ("invalid", 100), ("ok", 0)])
def test_nothing_is_timed_without_a_largest_batch_or_where_none_is_wanted(status: str, timed_batches: int) -> None:
    found, _ = search(lambda _: status, limit=100)
    timed = time_largest(FIRST, found, timed_batches, lambda _: pytest.fail("tried"), pytest.fail)
    assert timed is found
    result = describe(FIRST, None, timed, "")
    assert result["throughput_samples_per_s"] is result["timed_batches"] is result["throughput_reason"] is None


def test_a_result_is_plain_values_without_a_batch_size() -> None:
    found, _ = search(lambda size: "ok" if size < 150 else "oom")
    result: dict[str, Any] = describe(FIRST, 7000, found, "the command")
    assert (result["largest"], result["smallest_failing"], result["start"], result["limit"]) == (149, 150, 100, 7000)
    assert (result["size"], result["memory_limit_bytes"], result["hostname"]) == (3, 1000, "here")
    assert result["tries"][0] == {"batch_size": 100, "status": "ok", "reason": None, "duration_s": 0.5}
    assert not {"batch_size", "facts", "throughput"} & result.keys()


def test_the_results_readme_names_every_key() -> None:
    found, _ = search(lambda _: "ok", limit=100)
    keys = {*describe(FIRST, None, found, ""), *HOST_FACTS, *vars(found.tries[0])} - set(AXES)
    text = (Path(__file__).parents[3] / "results" / "README.md").read_text().partition("## Keys of largest_batch")[2]
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossover.plan.progress import (
    ProgressTeller,
    cut_inputs,
    duration_words,
    estimate_left,
    failure_words,
    kinds_of,
    partial_command_of,
)


def kinds(size: int, trial: int = 1, device: str = "cpu", study: str = "a") -> Any:
    return kinds_of("measure_cell", {"study": study, "size": size, "device": device, "trial": trial})


def taken(jobs: Mapping[tuple[int, str], float]) -> dict[tuple[str, ...], list[float]]:
    """Seconds of finished jobs, by size and device."""
    found: dict[tuple[str, ...], list[float]] = {}
    for (size, device), seconds in jobs.items():
        for kind in kinds(size, device=device):
            found.setdefault(kind, []).append(seconds)
    return found


def test_a_later_trial_is_expected_to_take_what_its_cell_took() -> None:
    """Two cells of 10 s and 30 s ran one after the other; the same two once more."""
    left = estimate_left([(kinds(1, trial=2), 0), (kinds(2, trial=2), 0)], taken({(1, "cpu"): 10, (2, "cpu"): 30}), 40)
    assert left is not None
    assert (left.left_s, left.rough) == (pytest.approx(40), False)


def test_a_new_cell_is_expected_to_take_what_others_of_its_study_and_device_took() -> None:
    times = taken({(1, "cpu"): 10, (2, "cpu"): 30, (1, "cuda"): 2})
    left = estimate_left([(kinds(3), 0)], times, 42)
    assert left is not None
    assert (left.left_s, left.rough) == (pytest.approx(20), False)


def test_where_nothing_alike_has_finished_the_guess_is_rough() -> None:
    left = estimate_left([(kinds(1, device="cuda"), 0)], taken({(1, "cpu"): 10}), 10)
    assert left is not None
    assert left.rough


def test_jobs_at_once_and_the_time_between_jobs_count() -> None:
    """Four GPUs at once: 40 s of work in 10 s. One by one with pauses: 10 s of work in 20 s."""
    at_once = estimate_left([(kinds(1, trial=2), 0)], taken({(size, "cuda"): 10 for size in range(1, 5)}), 10)
    paused = estimate_left([(kinds(1, trial=2), 0)], taken({(1, "cpu"): 10}), 20)
    assert at_once is not None
    assert paused is not None
    assert (at_once.left_s, paused.left_s) == (pytest.approx(10 / 4), pytest.approx(20))


def test_a_running_job_has_less_left_and_never_less_than_nothing() -> None:
    times = taken({(1, "cpu"): 10})
    waiting = [(kinds(1, trial=2), 4.0), (kinds(1, trial=3), 60.0)]
    left = estimate_left(waiting, times, 10)
    assert left is not None
    assert left.left_s == pytest.approx(6)


def test_before_a_job_has_finished_nothing_is_said() -> None:
    assert estimate_left([(kinds(1), 0)], {}, 10) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "less than a minute"), (61, "about 1 min"), (200, "about 3 min"), (4800, "about 1 h 20 min")],
)
def test_durations_are_words(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def event(name: str, **facts: Any) -> logging.LogRecord:
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", None, None)
    record.__dict__.update(facts, event=SimpleNamespace(value=name))
    return record


def test_the_time_left_is_told_after_each_trial() -> None:
    """Three trials of 100 s; the number of a job is told as finished while it still counts as waiting."""
    jobs = {number: ("measure_cell", {"study": "a", "device": "cpu", "size": number}) for number in (1, 2, 3)}
    said: list[str] = []
    now = [0.0]
    more = [True]
    teller = ProgressTeller(lambda: (jobs, more[0]), said.append, lambda: now[0])
    for number in (1, 2, 3):
        rule, wildcards = jobs[number]
        teller.handle(event("job_info", jobid=number, rule_name=rule, wildcards=wildcards))
        now[0] += 100
        teller.handle(event("job_finished", job_id=number))
        more[0] = number == 1
        del jobs[number]
    assert said == [
        "Measured 1 of 3 trials; about 3 min left, before what refinement adds.",
        "Measured 2 of 3 trials; about 2 min left, before what refinement adds.",
    ]


def test_telling_takes_a_small_share_of_the_time() -> None:
    """Here it takes 1 s, which is 2 % of 50 s: of trials of 10 s every fifth is told."""
    jobs = {number: ("measure_cell", {"study": "a", "device": "cpu", "size": number}) for number in range(20)}
    said: list[str] = []
    now = [0.0]

    def waiting() -> Any:
        now[0] += 1
        return jobs, False

    teller = ProgressTeller(waiting, said.append, lambda: now[0])
    for number in range(14):
        teller.handle(event("job_info", jobid=number, rule_name="measure_cell", wildcards=jobs[number][1]))
        now[0] += 10
        teller.handle(event("job_finished", job_id=number))
        del jobs[number]
    assert [text.split(";")[0] for text in said] == [f"Measured {number} of 20 trials" for number in (1, 6, 11)]


def test_jobs_that_take_no_time_are_not_counted() -> None:
    said: list[str] = []
    teller = ProgressTeller(lambda: ({}, False), said.append)
    teller.handle(event("job_info", jobid=1, rule_name="plot_times", wildcards={}))
    teller.handle(event("job_finished", job_id=1))
    assert said == []


def test_failed_jobs_are_counted_by_rule() -> None:
    teller = ProgressTeller(lambda: ({}, False), lambda _: None)
    for number in (1, 2):
        teller.handle(event("job_info", jobid=number, rule_name="measure_cell", wildcards={}))
        teller.handle(event("job_error", jobid=number, rule_name="measure_cell"))
    lines = failure_words(teller.failed, "snakemake --nolock").splitlines()
    assert lines[0] == "Failed: 2 jobs (measure_cell 2); the line of each is above."
    assert lines[2] == "A report of what has finished: snakemake --nolock"
    assert failure_words({}, "x").startswith("The run was stopped.")


def test_the_command_of_a_partial_report_asks_for_what_the_run_did() -> None:
    assert partial_command_of([], [], {}) == "snakemake --nolock --cores 1 -- partial_report"
    command = partial_command_of([Path("a b.yaml")], ["seed=3"], {"devices": ("cpu", "cuda"), "check_devices": False})
    assert shlex.split(command) == [
        *("snakemake", "--nolock", "--cores", "1", "--configfile=a b.yaml"),
        *("--config", "seed=3", 'devices=["cpu", "cuda"]', "check_devices=false", "--", "partial_report"),
    ]


def test_of_a_failed_jobs_inputs_the_first_are_shown() -> None:
    """A report has hundreds, and the line that says why it failed is to be seen beside them."""
    for event, shown in (("job_error", ["a", "b", "c", "and 97 more"]), ("job_info", [*"abc", *["x"] * 97])):
        record = logging.makeLogRecord({"event": SimpleNamespace(value=event), "input": [*"abc", *["x"] * 97]})
        assert cut_inputs(record)
        assert record.__dict__["input"] == shown
    short = logging.makeLogRecord({"event": SimpleNamespace(value="job_error"), "input": ["a", "b", "c"]})
    assert cut_inputs(short)
    assert short.__dict__["input"] == ["a", "b", "c"]
    assert cut_inputs(logging.makeLogRecord({"msg": "a line"}))

"""How far a run is: the time left, told after a finished trial, and what failed.

Snakemake's own lines count jobs, of which a trial takes seconds and most others none.
"""

from __future__ import annotations

import json
import logging
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

MEASURING = {"measure_cell": "trials", "train_model": "trainings", "find_largest_batch": "searches"}
"""The rules whose jobs take time, and what these are called."""

TELLING_SHARE = 0.02
"""Of the time that may go into telling: it looks at every waiting job, of which a large run has thousands."""

MOST_INPUTS = 3
"""Inputs of a failed job that are shown."""

Kinds = tuple[tuple[str, ...], ...]
"""What a job is like, from its very cell to any of its rule."""


@dataclass(frozen=True)
class Estimate:
    """The time that the waiting jobs will take, in seconds."""

    left_s: float
    rough: bool
    """Whether some of them are of a study and device of which none has finished, so that others stand for them."""


def kinds_of(rule: str, wildcards: Mapping[str, object]) -> Kinds:
    """A job is like another trial of its cell, else like one of its study and device, else like any of its rule."""
    values = {name: str(value) for name, value in wildcards.items()}
    cell = tuple(value for name, value in sorted(values.items()) if name not in ("trial", "seed"))
    return (rule, *cell), (rule, values.get("study", ""), values.get("device", "")), (rule,), ()


def estimate_left(
    waiting: Sequence[tuple[Kinds, float]], taken: Mapping[tuple[str, ...], Sequence[float]], elapsed_s: float
) -> Estimate | None:
    """How long the waiting jobs take if they go on as the finished ones did; None before one has finished.

    `waiting` has for each job what it is like and the seconds that it has run for already, `taken` the seconds of the
    finished jobs by what they are like, `elapsed_s` the time since the first began: the finished ones over it is how
    many ran at once.
    """
    if () not in taken or elapsed_s <= 0:
        return None
    at_once = sum(taken[()]) / elapsed_s
    mean_s = cache(lambda kind: fmean(taken[kind]))
    total, rough = 0.0, False
    for kinds, running_s in waiting:
        known = next(kind for kind in kinds if kind in taken)
        rough = rough or known not in kinds[:2]
        total += max(mean_s(known) - running_s, 0.0)
    return Estimate(total / at_once, rough) if at_once else None


def duration_words(seconds: float) -> str:
    """'less than a minute', 'about 3 min', 'about 1 h 20 min'."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"


def failure_words(failed: Mapping[str, int], command: str) -> str:
    """What a failed run ends with: `failed` counts the failed jobs by rule, `command` reports what has finished."""
    counts = ", ".join(f"{rule} {count}" for rule, count in failed.items())
    total = sum(failed.values())
    what = (
        f"Failed: {total} job{'' if total == 1 else 's'} ({counts}); the line of each is above."
        if failed
        else "The run was stopped."
    )
    return (
        f"{what}\nThe same command again measures what is missing, and nothing else."
        f"\nA report of what has finished: {command}\n"
    )


def partial_command_of(configfiles: Iterable[object], typed: Iterable[str], config: Mapping[str, object]) -> str:
    """The command that reports here what has finished of a run with these files, values as typed, and further ones."""
    files = [f"--configfile={path}" for path in configfiles]
    values = [*typed, *(f"{key}={json.dumps(value)}" for key, value in config.items())]
    options = ["--nolock", "--cores", "1", *files, *(["--config", *values] if values else [])]
    return shlex.join(["snakemake", *options, "--", "partial_report"])


def cut_inputs(record: logging.LogRecord) -> bool:
    """A filter that lets every event pass, but cuts the list of a failed job's inputs: beside it a line is not seen."""
    inputs: Sequence[str] = getattr(record, "input", None) or ()
    if getattr(getattr(record, "event", None), "value", None) == "job_error" and len(inputs) > MOST_INPUTS:
        record.input = [*inputs[:MOST_INPUTS], f"and {len(inputs) - MOST_INPUTS} more"]
    return True


class ProgressTeller(logging.Handler):
    """Listens to Snakemake's events; after a measuring job it says how many are done and how long the others take. Not
    after each of many: telling takes no more than TELLING_SHARE of the time.

    `waiting` gives the rule and the wildcards of each measuring job that has not finished, by its number, and whether
    further ones will be planned.
    """

    def __init__(
        self,
        waiting: Callable[[], tuple[Mapping[int, tuple[str, Mapping[str, object]]], bool]],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.failed: Counter[str] = Counter()
        self._waiting, self._say, self._clock = waiting, say, clock
        self._started: dict[int, float] = {}
        self._like: dict[int, Kinds] = {}
        self._taken: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._begun = 0.0
        self._done = 0
        self._silent_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of an event; a mistake in here must not disturb the run."""
        try:
            self._note(getattr(getattr(record, "event", None), "value", None), record)
        except Exception:
            self.handleError(record)

    def _note(self, event: str | None, record: logging.LogRecord) -> None:
        facts = record.__dict__
        if event == "job_info" and facts["rule_name"] in MEASURING:
            now = self._clock()
            self._begun = self._begun if self._started or self._done else now
            self._started[facts["jobid"]] = now
            self._kinds(facts["jobid"], facts["rule_name"], facts["wildcards"])
        elif event == "job_error":
            self.failed[facts["rule_name"]] += 1
            self._started.pop(facts["jobid"], None)
        elif event == "job_finished" and facts["job_id"] in self._started:
            began = self._started.pop(facts["job_id"])
            for kind in self._like[facts["job_id"]]:
                self._taken[kind].append(self._clock() - began)
            self._done += 1
            if (now := self._clock()) >= self._silent_until:
                self._tell(facts["job_id"], now)
                told = self._clock()
                self._silent_until = told + (told - now) / TELLING_SHARE

    def _tell(self, finished: int, now: float) -> None:
        jobs, more = self._waiting()
        # Snakemake tells that a job has finished before it counts it as such.
        jobs = {number: job for number, job in jobs.items() if number != finished}
        waiting = [
            (self._kinds(number, rule, wildcards), now - self._started.get(number, now))
            for number, (rule, wildcards) in jobs.items()
        ]
        left = estimate_left(waiting, self._taken, now - self._begun)
        if left is None or not (waiting or more):
            return
        names = {MEASURING[rule] for rule, _ in jobs.values()} or {"trials"}
        text = f"Measured {self._done} of {self._done + len(waiting)} {' and '.join(sorted(names))}"
        guess = "a first guess: " if left.rough else ""
        text += f"; {guess}{duration_words(left.left_s)} left" if waiting else ""
        self._say(f"{text}{', before what refinement adds' if more else ''}.")

    def _kinds(self, number: int, rule: str, wildcards: Mapping[str, object]) -> Kinds:
        """What a job is like, worked out once: of a large run there are many, and each finished one asks for all."""
        if number not in self._like:
            self._like[number] = kinds_of(rule, wildcards)
        return self._like[number]

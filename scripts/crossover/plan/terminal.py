"""Messages of a run on the terminal: time left, first answers, and failures.

Handlers and filters for Snakemake's log, based on the events that logger plugins receive.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.errors import STOPPED, UserError
from crossover.machine.turns import WAITING
from crossover.plan.stages import REST, path_of_row, planned_trials
from crossover.reading import read_json
from crossover.text import plural, with_noun

MEASURING = {"measure_cell": "trial", "train_model": "training", "find_largest_batch": "search"}
"""The rules that measure, and what one of their jobs is called."""

OUTDATING = ("measure_cell", "train_model", "collect_measurements", "analyse_run")
"""The rules that make an earlier report outdated, whether they succeed or not."""

ANSWERING = "give_first_answer"
"""The rule whose output is shown when it has finished, if the run measures its study."""

ADDING = {
    "plan_refinement": "Refinement adds {}.",
    "plan_repeats": "To measure again, because they were disturbed: {}.",
}
"""The rules whose output names further trials, with the line about them."""

MOST_REASONS = 3

LEAST_FREE_BYTES = 1 << 20
"""Free bytes below which the disk counts as full; jobs on a full disk may fail without a log."""

MOST_PATHS = 3

HIDDEN = (
    *("job_info", "job_started", "job_finished", "group_info", "progress", "shellcmd"),
    *("workflow_started", "run_info", "resources_info"),
)
"""Events that the terminal does not show; they are in Snakemake's log file."""
CHATTER = (
    *("Select jobs to execute", "Execute ", "DAG of jobs will be updated", "Updating checkpoint dependencies"),
    *("Touching output file", "Assuming unrestricted", "Building DAG", "Using shell", "Conda environments: ignored"),
)
"""Prefixes of other lines that the terminal does not show."""

NOTHING_TO_DO = "Nothing to be done"
STOPPING = ("Terminating processes on user request", "Will exit after finishing currently running jobs")
"""Prefixes of Snakemake's lines after Ctrl-C and after a SIGTERM."""
FAILING = "Exiting because a job execution failed"
"""Prefix of Snakemake's last line, also if a job was stopped."""

LOG_S = 0.5
"""Seconds after which a command that got a signal has written its log."""

STEPS = 20
"""About how many times the time left is shown during a run."""

LEAST_TOLD_S = 60
"""Duration of trials from which the time left is told before the first of STEPS; the first trial is slow to import."""


def duration_words(seconds: float) -> str:
    """Format a time left: 'less than a minute', 'about 3 min', 'about 1 h 20 min'."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"


def failure_words(
    failed: Mapping[str, int], ended: Mapping[str, int], reasons: Sequence[str], report: str, results: str
) -> str:
    """The last lines of a run that failed or was stopped.

    `failed` and `ended` are numbers of failed and of stopped jobs by rule, `reasons` the last lines of the failed jobs'
    logs, `report` is the command that reports on what there is.
    """
    what = "The run was stopped."
    if failed:
        what = f"Failed: {_jobs_text(failed)}; see above."
    elif ended:
        what = f"Stopped: {_jobs_text(ended)}."
    first_reasons = "".join(f"\n  {reason}" for reason in dict.fromkeys(reasons[:MOST_REASONS]))
    full = shutil.disk_usage(results).free < LEAST_FREE_BYTES if Path(results).is_dir() else False
    full_disk = f"\nThe disk of {results} is full, which may not be in the logs: free some space first." if full else ""
    return (
        f"{what}{first_reasons}{full_disk}\nThe same command again measures what is missing, and nothing else."
        f"\nA report of what has finished: {report}\n"
    )


def _jobs_text(jobs: Mapping[str, int]) -> str:
    counts = ", ".join(f"{rule} {count}" for rule, count in jobs.items())
    return f"{with_noun(sum(jobs.values()), 'job')} ({counts})"


def cut_paths(record: logging.LogRecord) -> bool:
    """Pass all events, with long lists of paths truncated.

    A reason reads 'Missing output files: a, b; Input files updated by another job: c'.
    """
    if getattr(record, "event", None) in ("job_info", "job_error"):
        record.input = _few(getattr(record, "input", None) or ())
        reasons = [part.partition(": ") for part in str(getattr(record, "reason", None) or "").split("; ")]
        record.reason = "; ".join(f"{why}{sign}{', '.join(_few(paths.split(', ')))}" for why, sign, paths in reasons)
    return True


def _few(paths: Sequence[str]) -> list[str]:
    left_out = len(paths) - MOST_PATHS
    return [*paths[:MOST_PATHS], *([f"and {left_out} more"] if left_out > 0 else [])]


class Progress(logging.Handler):
    """Counts the jobs of a run, and reports progress and the time left."""

    def __init__(
        self,
        say: Callable[[str], None],
        up_to_date: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        missing: Callable[[], Sequence[int]] = tuple,
        names: Callable[[], Mapping[str, str]] = dict,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """`names` gives the rules of this workflow by their names in the run; jobs of other rules do not count.
        `begin` is called once the run's jobs are known, before the first starts.

        `missing` gives the round of each trial of the first grid that is to be measured.
        Snakemake counts those of later rounds only once these or the stages of refinement are planned.
        """
        super().__init__()
        self.planned: Counter[str] = Counter()
        """Jobs of the run by rule, as known at its start."""
        self.finished: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.reasons: list[str] = []
        """The last line of each failed job's log."""
        self.stopped = False
        """Whether the run was stopped; jobs that end later do not count as failed."""
        self.ended: Counter[str] = Counter()
        """Jobs that were stopped by a signal of their own, such as a batch system's, while the run went on."""
        self._say, self._up_to_date, self._clock = say, up_to_date, clock
        self._missing, self._names, self._begin = missing, names, begin
        self._running: dict[int, str] = {}
        self._outputs: dict[int, str] = {}
        """Output of each running job of `ANSWERING` and `ADDING`."""
        self._measured: set[str] = set()
        """The studies that this run measures. The first answer of another study was shown by an earlier run."""
        self._answers: dict[str, str] = {}
        """First answers of studies that this run has not measured yet."""
        self._began: float | None = None
        self._added = 0
        self._last_step = -1
        self._logs: dict[int, Sequence[str]] = {}
        self._told: set[int] = set()
        """Failed jobs whose error has been told in a line."""
        self._waited_for: set[tuple[str, ...]] = set()
        """The logs of jobs that were empty when they were first read."""
        self._holder: str | None = None
        """The process for which the latest trial waited, by its log."""

    def measures(self) -> bool:
        """Whether the run has measuring jobs, or may get some by later rounds, refinement or repeats."""
        return any(self.planned[rule] for rule in (*MEASURING, "plan_round", "plan_refinement", "plan_repeats"))

    def outdates_report(self) -> bool:
        """Whether the run changes rows or tables that the report of an earlier run shows."""
        return any(self.planned[rule] for rule in OUTDATING)

    def emit(self, record: logging.LogRecord) -> None:
        """Record an event; an exception here must not stop the run."""
        try:
            if record.getMessage().startswith(NOTHING_TO_DO):
                self._up_to_date()
            self.stopped |= record.getMessage().startswith(STOPPING)
            self._note(str(getattr(record, "event", "")), record.__dict__)
        except Exception:
            self.handleError(record)
        if getattr(record, "event", None) == "run_info":
            self._begin()

    def _note(self, event: str, facts: Mapping[str, Any]) -> None:
        if event == "run_info":
            names = self._names()
            self.planned = Counter({names[rule]: count for rule, count in facts["stats"].items() if rule in names})
            missing = self._missing() if self.planned["plan_round"] or self.planned["plan_refinement"] else ()
            self.planned["measure_cell"] = max(self.planned["measure_cell"], len(missing))
            rounds = f" in {with_noun(len({*missing}), 'round')}" if self.planned["plan_round"] else ""
            roofs = "the peak rates" if self.planned["probe_roofs"] else ""
            trials = self._counted(self._trials())
            if words := " and ".join(filter(None, [trials and trials + rounds, roofs])):
                self._say(f"To measure: {words}{self._more()}.")
        elif event == "job_info" and (rule := self._names().get(facts["rule_name"])):
            self._running[facts["jobid"]] = rule
            if rule in MEASURING:
                self._began = self._clock() if self._began is None else self._began
                self._logs[facts["jobid"]] = facts.get("log") or ()
                self._measured.add(study := facts["wildcards"]["study"])
                self._tell_answer(study)
            if rule in (ANSWERING, *ADDING):
                self._outputs[facts["jobid"]] = facts["output"][0]
        elif event == "job_error" and not self.stopped and facts["jobid"] in self._running:
            # Snakemake 9.19 reports some errors twice.
            rule = self._running.pop(facts["jobid"])
            if self._is_stopped(facts):
                self.ended[rule] += 1
            else:
                self.failed[rule] += 1
                if log := _log_of_error(facts):
                    self._told.add(facts["jobid"])
                    if (reason := _last_line(log)) not in self.reasons:
                        self._say(f"{reason} (log: {log})")
                self.reasons += filter(None, map(_last_line, facts.get("log") or ()))
            if rule in MEASURING:
                self._tell()
        elif event == "job_finished" and facts["job_id"] in self._running:
            rule = self._running.pop(facts["job_id"])
            self.finished[rule] += 1
            if rule in MEASURING:
                self._holder = _holder_in(self._logs.pop(facts["job_id"], ()))
                self._tell()
            elif rule == ANSWERING:
                path = Path(self._outputs.pop(facts["job_id"]))
                self._answers[path.stem] = _text(path).rstrip()
                self._tell_answer(path.stem)
            elif rule in ADDING:
                self._tell_added(rule, Path(self._outputs.pop(facts["job_id"])))

    def _tell_answer(self, study: str) -> None:
        if study in self._measured and (answer := self._answers.pop(study, "")):
            self._say(answer)

    def _tell_added(self, rule: str, plan: Path) -> None:
        added = _added_trials(plan)
        if added is None:
            return
        if added:
            self._added += added
            self._last_step = -1
        words = ADDING[rule].format(with_noun(added, "trial")) if added else None
        if said := " ".join(filter(None, (words, _note_of(plan)))):
            self._say(said)

    def tells(self, record: logging.LogRecord) -> bool:
        """Whether the terminal shows a record: jobs of another workflow, or what `is_for_terminal` lets pass.

        Errors of jobs that were stopped are not shown, nor Snakemake's account of one that is told in a line.
        """
        facts = record.__dict__
        if facts.get("event") == "job_info" and facts["rule_name"] not in self._names():
            return True
        if facts.get("event") == "job_finished" and facts["job_id"] not in self._running:
            return True
        if not is_for_terminal(record):
            return False
        if record.getMessage().startswith(FAILING):
            return bool(self.failed) or not (self.stopped or self.ended)
        if getattr(record, "event", None) not in ("job_error", "error"):
            return True
        if self.stopped or self._is_stopped(facts):
            return False
        return not (facts.get("jobid") in {*self._running, *self._told} and _log_of_error(facts))

    def _is_stopped(self, facts: Mapping[str, Any]) -> bool:
        """Whether the job of an error was stopped by a signal, according to its log.

        A signal to all processes ends a job's shell before the command that it runs has written so: an empty log is
        read again after LOG_S, the first time that it is read.
        """
        logs = tuple(facts.get("log") or ())
        if logs and logs not in self._waited_for and not any(map(_last_line, logs)):
            self._waited_for.add(logs)
            time.sleep(LOG_S)
        return any((_last_line(log) or "").startswith(STOPPED) for log in logs)

    def _trials(self) -> int:
        return sum(self.planned[rule] for rule in MEASURING) + self._added

    def _counted(self, jobs: int) -> str:
        names = [name for rule, name in MEASURING.items() if self.planned[rule]] or ["trial"]
        return f"{jobs:,} {' and '.join(name if jobs == 1 else plural(name) for name in names)}" if jobs else ""

    def _more(self) -> str:
        refines = self.planned["plan_refinement"] > self.finished["plan_refinement"]
        return ", before what refinement adds" if refines else ""

    def _tell(self) -> None:
        done, failed, stopped = (
            sum(jobs[rule] for rule in MEASURING) for jobs in (self.finished, self.failed, self.ended)
        )
        # Trials of a repeat that an earlier run planned are not in this run's counts.
        planned = max(self._trials(), done + failed + stopped)
        left = planned - done - failed - stopped
        words = f"Measured {done:,} of {self._counted(planned)}"
        if left <= 0:
            lost = f"{f'; {failed:,} failed' if failed else ''}{f'; {stopped:,} stopped' if stopped else ''}"
            self._say(f"{words}{lost}{self._more()}.")
        elif done and self._began is not None and (step := STEPS * done // planned) > self._last_step:
            self._last_step = step
            took = self._clock() - self._began
            is_known = step or took >= LEAST_TOLD_S
            remains = f"; {duration_words(left * took / done)} left" if is_known else ""
            waits = f"; trials take turns with {self._holder}" if self._holder else ""
            self._say(f"{words}{remains}{self._more()}{waits}.")


def _added_trials(plan: Path) -> int | None:
    """Number of trials in the plan of a stage or a repeat that have no row yet; None if all have, as in a resumed run.

    It is 0 for a plan without trials, and for one that cannot be read.
    """
    kind, _, number = plan.stem.partition("-")
    repeat = int(number.removesuffix(REST)) if kind == "repeat" else 0
    cells = plan.parents[1] / "cells"
    try:
        trials = planned_trials(plan)
    except UserError:
        return 0
    added = sum(not (cells / path_of_row(*trial, repeat)).exists() for trial in trials)
    return None if trials and not added else added


def _note_of(plan: Path) -> str | None:
    """The sentence in the plan of a stage or a repeat; None without one, or for a plan that cannot be read."""
    try:
        note: str | None = read_json(plan, "plan").get("note")
    except (UserError, AttributeError):
        return None
    return note


def _holder_in(logs: Sequence[str]) -> str | None:
    """The process for which a job waited for its turn, by its log."""
    lines = [line for log in logs for line in _text(log).splitlines() if line.startswith(WAITING)]
    return lines[0].removeprefix(WAITING).strip() if lines else None


def _log_of_error(facts: Mapping[str, Any]) -> str | None:
    """The log of a failed job that ends with an error in one line."""
    return next((log for log in facts.get("log") or () if (_last_line(log) or "").startswith("error: ")), None)


def _last_line(log: str) -> str | None:
    return next((line.strip() for line in reversed(_text(log).split("\n")) if line.strip()), None)


def _text(path: Path | str) -> str:
    """The content of a file; empty if it cannot be read, such as a file in remote storage."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def is_for_terminal(record: logging.LogRecord) -> bool:
    """Whether the terminal shows a record, such as an error or an answer; Snakemake's log file has all records."""
    event, text = getattr(record, "event", None), record.getMessage()
    # The event of the failed job follows, with its log.
    repeated = event == "error" and "CalledProcessError in " in text
    return event not in HIDDEN and not repeated and not (event is None and text.startswith(CHATTER))


class WithoutCommand(logging.Formatter):
    """Formats records like another formatter, but without a failed job's command, which would hide the error."""

    def __init__(self, whole: logging.Formatter) -> None:
        super().__init__()
        self._whole = whole

    def format(self, record: logging.LogRecord) -> str:
        """The formatted text; the record is not changed, so that the log file shows the command."""
        return self._whole.format(logging.makeLogRecord({**record.__dict__, "shellcmd": None}))

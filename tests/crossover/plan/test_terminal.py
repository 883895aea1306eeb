"""What a run prints on the terminal while it measures."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from crossover.config.studies import Cell
from crossover.plan import terminal
from crossover.plan.snakemake_internals import evaluated_partition
from crossover.plan.stages import path_of_row, write_stage
from crossover.plan.terminal import (
    ADDING,
    ANSWERING,
    MEASURING,
    OUTDATING,
    STEPS,
    STOPPING,
    Progress,
    WithoutCommand,
    cut_paths,
    failure_words,
    is_for_terminal,
)

CELL = Cell("mine", "linear_stack", "resident", 1, "fp32", "eager", 14, "cuda", "plain")


class Run:
    """Events of a run, as Snakemake logs them, and a clock that the test advances; rules may have a prefix."""

    def __init__(self, missing: Sequence[int] = (), prefix: str = "", **planned: int) -> None:
        self.prefix = prefix
        names = {f"{prefix}{rule}": rule for rule in (*OUTDATING, *MEASURING, ANSWERING, *ADDING, *planned)}
        self.now_s = 0.0
        self.said: list[str] = []
        up_to_date = partial(self.said.append, "up to date")
        self.progress = Progress(self.said.append, up_to_date, lambda: self.now_s, lambda: missing, lambda: names)
        counts = {f"{prefix}{rule}": count for rule, count in planned.items()}
        self.event(LogEvent.RUN_INFO, stats={"answer": 1, **counts, "total": sum(planned.values())})

    def event(self, event: LogEvent, **facts: object) -> None:
        record = logging.makeLogRecord({"event": event, **facts})
        self.progress.handle(record)

    def job(
        self,
        number: int,
        rule: str = "measure_cell",
        seconds: float = 1.0,
        ends: bool = True,
        output: str = "",
        log: Path = Path("no log"),
    ) -> None:
        rule, wildcards = f"{self.prefix}{rule}", {"study": CELL.study}
        self.event(
            LogEvent.JOB_INFO, jobid=number, rule_name=rule, output=[output], log=[str(log)], wildcards=wildcards
        )
        self.now_s += seconds
        if ends:
            self.event(LogEvent.JOB_FINISHED, job_id=number)
        else:
            self.event(LogEvent.JOB_ERROR, jobid=number, rule_name=rule)


def test_the_time_left_is_extrapolated_from_finished_jobs() -> None:
    run = Run(make_dataset=1, measure_cell=4, render_report=1, all=1)
    run.job(0, "make_dataset", 500)
    for number, seconds in enumerate((100, 60, 80, 100), start=1):
        run.job(number, seconds=seconds)
    run.job(9, "render_report", 5)
    assert run.said == [
        "To measure: 4 trials.",
        "Measured 1 of 4 trials; about 5 min left.",  # 3 x 100 s
        "Measured 2 of 4 trials; about 3 min left.",  # 2 x 80 s
        "Measured 3 of 4 trials; about 1 min left.",  # 1 x 80 s
        "Measured 4 of 4 trials.",
    ]


def test_one_job_is_told_in_the_singular() -> None:
    run = Run(find_largest_batch=1)
    run.job(1, "find_largest_batch")
    assert run.said == ["To measure: 1 search.", "Measured 1 of 1 search."]


def test_the_rules_of_a_module_may_have_other_names() -> None:
    run = Run(prefix="x_", measure_cell=2, make_dataset=1)
    run.job(1, "make_dataset")
    run.job(2)
    run.event(LogEvent.JOB_INFO, jobid=3, rule_name="measure_cell", output=[""])  # of the workflow with the module
    run.event(LogEvent.JOB_ERROR, jobid=3, rule_name="measure_cell")
    assert run.said == ["To measure: 2 trials.", "Measured 1 of 2 trials; less than a minute left."]
    assert (run.progress.finished, run.progress.failed) == ({"make_dataset": 1, "measure_cell": 1}, {})


def test_the_terminal_shows_the_jobs_of_the_workflow_that_uses_this_one_as_a_module() -> None:
    run = Run(prefix="x_", measure_cell=1)
    run.event(LogEvent.JOB_INFO, jobid=1, rule_name="x_measure_cell", log=[], wildcards={"study": "mine"})
    for is_ours, number, rule in ((True, 1, "x_measure_cell"), (False, 2, "measure_cell")):
        for facts in ({"event": "job_info", "rule_name": rule}, {"event": "job_finished", "job_id": number}):
            assert run.progress.tells(record(**facts)) is not is_ours


def test_the_progress_says_whose_turns_trials_wait_for(tmp_path: Path) -> None:
    waited = tmp_path / "log"
    waited.write_text("waiting for a turn on this host, which is used by trial 3 (pid 7, user eve)\n1 ms per step\n")
    run = Run(measure_cell=4)
    run.job(1, seconds=60, log=waited)
    run.job(2, seconds=60)
    assert run.said[1:] == [
        "Measured 1 of 4 trials; about 3 min left; trials take turns with trial 3 (pid 7, user eve).",
        "Measured 2 of 4 trials; about 2 min left.",
    ]


def test_refinement_and_repeats_add_the_trials_of_their_plans(tmp_path: Path) -> None:
    stage, repeat = tmp_path / "refinement" / "stage-1.json", tmp_path / "repeats" / "repeat-1.json"
    stage.parent.mkdir()
    repeat.parent.mkdir()
    write_stage(stage, 1, {CELL: [3, 4, 5, 6]}, [], "They take long.")
    write_stage(repeat, 1, {CELL: [2]}, [])
    row = tmp_path / "cells" / path_of_row(CELL, 3)  # as after an interrupted run
    row.parent.mkdir(parents=True)
    row.touch()
    run = Run(measure_cell=2, plan_refinement=1)
    run.job(1, seconds=60)
    assert run.said[-1] == "Measured 1 of 2 trials; about 1 min left, before what refinement adds."
    run.job(2, seconds=60)
    assert run.said[-1] == "Measured 2 of 2 trials, before what refinement adds."
    run.job(3, "plan_refinement", 1, output=str(stage))
    run.job(4, seconds=59)
    assert run.said[-2:] == ["Refinement adds 3 trials. They take long.", "Measured 3 of 5 trials; about 2 min left."]
    for number in (5, 6):
        run.job(number, seconds=60)
    run.job(7, "plan_repeats", 1, output=str(repeat))
    run.job(8, seconds=60)
    write_stage(repeat.with_stem("repeat-1-rest"), 1, {}, [], "Repeats did not help.")
    run.job(9, "plan_repeats", 1, output=str(repeat.with_stem("repeat-1-rest")))
    assert run.said[-4:] == [
        "Measured 5 of 5 trials.",
        "To measure again, because they were disturbed: 1 trial.",
        "Measured 6 of 6 trials.",
        "Repeats did not help.",
    ]


def test_a_plan_whose_trials_were_measured_before_says_nothing(tmp_path: Path) -> None:
    stage = tmp_path / "refinement" / "stage-1.json"
    stage.parent.mkdir()
    write_stage(stage, 1, {CELL: [3]}, [], "They take long.")
    row = tmp_path / "cells" / path_of_row(CELL, 3)
    row.parent.mkdir(parents=True)
    row.touch()
    run = Run(measure_cell=1, plan_refinement=1)
    said = [*run.said]
    run.job(1, "plan_refinement", 1, output=str(stage))
    assert run.said == said


@pytest.mark.parametrize("study", ["mine", "other"])
def test_a_first_answer_is_shown_only_by_a_run_that_measures_its_study(tmp_path: Path, study: str) -> None:
    answer = tmp_path / f"{study}.txt"
    answer.write_text("GPU faster\n")
    run = Run(measure_cell=2, give_first_answer=1)
    run.job(1)  # of study mine
    run.job(2, "give_first_answer", output=str(answer))
    assert ("GPU faster" in run.said) is (study == "mine")


def test_a_first_answer_from_rows_of_an_interrupted_run_is_shown_once_its_study_is_measured(tmp_path: Path) -> None:
    answer = tmp_path / "mine.txt"
    answer.write_text("GPU faster\n")
    run = Run(measure_cell=3, give_first_answer=1)
    run.job(1, "give_first_answer", output=str(answer))
    assert "GPU faster" not in run.said
    for number in (2, 3):
        run.job(number)
    assert run.said.count("GPU faster") == 1


def test_rows_that_snakemake_plans_later_count_from_the_start() -> None:
    rounds = [*[1] * 1000, *[2] * 1000, *[3] * 999]
    assert Run(rounds, measure_cell=3, plan_refinement=1).said == [
        "To measure: 2,999 trials, before what refinement adds."
    ]
    run = Run(rounds, measure_cell=1000, plan_round=1)
    for number in range(1200):
        run.job(number)
    assert run.said[0] == "To measure: 2,999 trials in 3 rounds."
    assert run.said[-1].startswith("Measured 1,200 of 2,999 trials; ")
    assert Run([2], measure_cell=1, plan_round=1, probe_roofs=1).said == [
        "To measure: 1 trial in 1 round and the peak rates."
    ]
    assert Run(rounds, measure_cell=3).said == ["To measure: 3 trials."]


def test_peak_rates_that_are_measured_again_are_told_beside_the_trials() -> None:
    assert Run(measure_cell=2, probe_roofs=1).said == ["To measure: 2 trials and the peak rates."]
    assert Run(probe_roofs=1).said == ["To measure: the peak rates."]


@pytest.mark.parametrize("line", STOPPING)
def test_jobs_that_the_user_stops_have_not_failed(line: str) -> None:
    run = Run(measure_cell=2)
    error = logging.makeLogRecord({"event": LogEvent.JOB_ERROR, "jobid": 1})
    assert run.progress.tells(error)
    run.progress.handle(logging.makeLogRecord({"msg": f"{line}, this might take some time."}))
    run.job(1, ends=False)
    assert not run.progress.failed
    assert not run.progress.tells(error)


def test_a_job_that_a_signal_stops_has_not_failed(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("host: n1\nstopped by a signal (SIGTERM)\n")
    run = Run(measure_cell=2)
    run.event(LogEvent.JOB_INFO, jobid=1, rule_name="measure_cell", output=[""])
    error = {"event": LogEvent.JOB_ERROR, "jobid": 1, "rule_name": "measure_cell", "log": [str(log)]}
    assert not run.progress.tells(logging.makeLogRecord(error))
    run.event(**error)
    assert (run.progress.failed, run.progress.ended) == ({}, {"measure_cell": 1})
    run.job(2)
    assert run.said[-1] == "Measured 1 of 2 trials; 1 stopped."
    last = logging.makeLogRecord({"msg": "Exiting because a job execution failed. Look below for error messages"})
    assert not run.progress.tells(last)
    run.job(3, ends=False)
    assert run.progress.failed == {"measure_cell": 1}
    assert run.progress.tells(last)


def test_a_stopped_job_whose_log_is_empty_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "job.log"
    log.touch()
    monkeypatch.setattr(terminal.time, "sleep", lambda _seconds: log.write_text("stopped by a signal (SIGTERM)\n"))
    run = Run(measure_cell=2)
    run.event(LogEvent.JOB_INFO, jobid=1, rule_name="measure_cell", output=[""])
    run.event(LogEvent.JOB_ERROR, jobid=1, rule_name="measure_cell", log=[str(log)])
    assert (run.progress.failed, run.progress.ended) == ({}, {"measure_cell": 1})


def test_the_empty_log_of_a_failed_job_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(terminal.time, "sleep", waits.append)
    log = tmp_path / "job.log"
    log.touch()
    run = Run(measure_cell=2)
    run.event(LogEvent.JOB_INFO, jobid=1, rule_name="measure_cell", output=[""])
    error = {"event": LogEvent.JOB_ERROR, "jobid": 1, "rule_name": "measure_cell", "log": [str(log)]}
    for _ in range(2):  # Snakemake 9.19 reports some errors twice
        run.event(**error)
        assert run.progress.tells(logging.makeLogRecord(error))
    assert waits == [terminal.LOG_S]
    assert run.progress.failed == {"measure_cell": 1}


def test_an_error_in_one_line_is_told_without_snakemakes_account_of_the_job(tmp_path: Path) -> None:
    log, other = tmp_path / "job.log", tmp_path / "other.log"
    log.write_text("host: n1\nerror: my_net.py: line 3: no such width\n")
    other.write_text("error: of another workflow\n")
    run = Run(measure_cell=2)
    run.event(LogEvent.JOB_INFO, jobid=1, rule_name="measure_cell", output=[""])
    error = {"event": LogEvent.JOB_ERROR, "jobid": 1, "rule_name": "measure_cell", "log": [str(log)]}
    for _ in range(2):  # Snakemake 9.19 reports some errors twice
        assert not run.progress.tells(logging.makeLogRecord(error))
        run.event(**error)
    assert run.said[1:] == [f"error: my_net.py: line 3: no such width (log: {log})"]
    run.event(LogEvent.JOB_INFO, jobid=3, rule_name="measure_cell", output=[""])
    run.event(**error | {"jobid": 3})
    assert run.said[2:] == ["Measured 0 of 2 trials; 2 failed."]  # the same error is told once
    assert run.progress.tells(logging.makeLogRecord(error | {"jobid": 2, "log": [str(other)]}))


def test_failed_jobs_are_counted_and_not_expected_to_finish() -> None:
    run = Run(measure_cell=3)
    run.job(1, ends=False)
    run.event(LogEvent.JOB_ERROR, jobid=1, rule_name="measure_cell")  # reported twice
    run.job(2)
    assert run.said[-1].startswith("Measured 1 of 3 trials; less than a minute left")
    run.job(3)
    assert run.said[-1] == "Measured 2 of 3 trials; 1 failed."
    assert run.progress.failed == {"measure_cell": 1}
    assert run.progress.finished == {"measure_cell": 2}


def test_a_failed_run_names_the_command_that_reports_what_has_finished() -> None:
    reasons = ["error: no", "error: no", "b", "c"]
    text = failure_words({"measure_cell": 2, "make_dataset": 1}, {}, reasons, "python a.py b", "results/quick")
    assert "see above.\n  error: no\n  b\nThe same" in text
    assert "3 jobs (measure_cell 2, make_dataset 1)" in text
    assert text.endswith("\nA report of what has finished: python a.py b\n")
    assert failure_words({}, {}, [], "s.py", "results").startswith("The run was stopped.")
    assert failure_words({}, {"measure_cell": 1}, [], "s.py", "results").startswith("Stopped: 1 job (measure_cell 1).")


@pytest.mark.parametrize(("free_bytes", "full"), [(1000, True), (10**9, False)])
def test_a_full_disk_is_reported_since_logs_may_be_empty(
    free_bytes: int, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal.shutil, "disk_usage", lambda _: SimpleNamespace(free=free_bytes))
    text = failure_words({"measure_cell": 1}, {}, [], "s.py", str(tmp_path))
    assert (f"\nThe disk of {tmp_path} is full" in text) is full


@pytest.mark.parametrize("event", [LogEvent.JOB_ERROR, LogEvent.JOB_INFO])
def test_long_lists_of_paths_are_truncated(event: LogEvent) -> None:
    reason = "Missing output files: a, b; Input files updated by another job: c, d, e, f, g"
    record = logging.makeLogRecord({"event": event, "input": list("abcde"), "reason": reason})
    assert cut_paths(record)
    assert record.__dict__["input"] == ["a", "b", "c", "and 2 more"]
    assert record.__dict__["reason"] == (
        "Missing output files: a, b; Input files updated by another job: c, d, e, and 2 more"
    )


def record(message: str = "", **facts: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, **facts})


@pytest.mark.parametrize(
    "event", [LogEvent.WORKFLOW_STARTED, LogEvent.RUN_INFO, LogEvent.JOB_INFO, LogEvent.PROGRESS, LogEvent.SHELLCMD]
)
def test_events_of_successful_jobs_are_hidden(event: LogEvent) -> None:
    assert not is_for_terminal(record(event=event))
    assert not is_for_terminal(record("Select jobs to execute..."))


def test_a_long_run_reports_progress_twenty_times() -> None:
    run = Run(measure_cell=1000)
    for number in range(1000):
        run.job(number)
    told = [line.partition(" trials")[0] for line in run.said[1:]]
    assert len(told) == STEPS + 1
    assert [*told[:2], told[-1]] == ["Measured 1 of 1,000", "Measured 50 of 1,000", "Measured 1,000 of 1,000"]


@pytest.mark.parametrize(("seconds", "left"), [(59, ""), (60, "; about 10 h 39 min left")])
def test_a_first_trial_of_many_tells_the_time_left_if_it_is_long(seconds: float, left: str) -> None:
    run = Run(measure_cell=640)
    run.job(1, seconds=seconds)
    assert run.said[-1] == f"Measured 1 of 640 trials{left}."


def test_the_command_of_a_failed_job_is_only_in_the_log_file() -> None:
    failed = record(event=LogEvent.JOB_ERROR, shellcmd="python3 measure_cell.py")
    assert WithoutCommand(logging.Formatter("%(event)s %(shellcmd)s")).format(failed) == f"{LogEvent.JOB_ERROR} None"
    assert failed.__dict__["shellcmd"] == "python3 measure_cell.py"


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        ("cpu", "cpu"),
        ("'small' if wildcards.get('device', 'cpu').startswith('cpu') else 'gpu'", "small"),
        ("wildcards.size", "wildcards.size"),
    ],
)
def test_the_partition_of_cpu_cells_is_read_from_a_name_or_an_expression(text: str | None, partition: str) -> None:
    assert evaluated_partition(text) == partition

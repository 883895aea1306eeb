"""The terminal's last line, and what passes above it."""

from __future__ import annotations

import io
import logging

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from crossover.plan.status_line import ERASE, STEPS, StatusLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def record(message: str = "", **facts: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, **facts})


@pytest.mark.parametrize("event", [LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, LogEvent.PROGRESS, LogEvent.SHELLCMD])
def test_jobs_that_go_well_are_not_for_the_terminal(event: LogEvent) -> None:
    assert not StatusLine(io.StringIO()).filter(record(event=event))
    assert not StatusLine(io.StringIO()).filter(record("Select jobs to execute..."))


@pytest.mark.parametrize("event", [LogEvent.JOB_ERROR, LogEvent.ERROR, LogEvent.RUN_INFO, None])
def test_errors_the_plan_and_answers_are(event: LogEvent | None) -> None:
    assert StatusLine(io.StringIO()).filter(record("First answer", **({"event": event} if event else {})))


def test_on_a_terminal_one_line_is_written_over_and_makes_room() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    line.show("1 of 4", 0.25)
    line.show("2 of 4", 0.5)
    assert stream.getvalue() == f"{ERASE}1 of 4{ERASE}2 of 4"
    line.filter(record("an answer"))
    assert stream.getvalue().endswith(f"2 of 4{ERASE}")
    line.clear()
    assert stream.getvalue().count(ERASE) == 3


def test_in_a_file_it_is_told_now_and_then() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    for done in range(1, 1001):
        line.show(f"{done} of 1000", done / 1000)
    told = stream.getvalue().splitlines()
    assert told[0] == "1 of 1000"
    assert len(told) == STEPS + 1
    assert ERASE not in stream.getvalue()

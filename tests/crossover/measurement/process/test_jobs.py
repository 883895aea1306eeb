"""Jobs as JSON, and messages on pipes."""

from __future__ import annotations

import os
from dataclasses import fields

import pytest

from crossover.config.studies import BatchSearch
from crossover.measurement.process.jobs import Job, TrainingJob, TrialJob, TryJob, job_from_json
from crossover.measurement.process.messages import Inbox, send
from trials import CELL, EFFORT

COMMON = {
    "cell": CELL,
    "seed": 7,
    "cpu_threads": 3,
    "dataset": "data",
    "output": "row",
    "command": "the command",
    "code_version": "f00",
    "threads": 3,
    "time_limit_s": 60.0,
    "isolation": "server",
    "uuid": "GPU-1",
    "cpus": [0, 4],
    "rank_uuids": ["GPU-1", "GPU-2"],
    "rank_cpus": [[0], [1]],
    "written_files": "record",
    "plan_key": "the plan's key",
    "environment_variables": "{}",
    "lease_wait_s": 0.5,
    "turn_missed": "a process",
    "code_key": "a key",
    "model_key": "another key",
    "measurement_key": "a third key",
    "packages": "{}",
}
TRIAL = {"trial": 2, "effort": EFFORT, "latency_steps": 400, "latency_mistakes": True, "repeat": 1, "attempts": 2}
JOBS = [
    TrialJob(**COMMON, **TRIAL),
    TrainingJob(**COMMON, epochs=2, test_share=0.25),
    TryJob(**COMMON, search=BatchSearch(start=8, memory_limit_gb=2), steps=1, memory_limit_bytes=2, timed_batches=100),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.kind)
def test_a_job_is_the_same_after_the_transfer_as_json(job: Job) -> None:
    assert all(getattr(job, field.name) != field.default for field in fields(job))
    assert job_from_json(job.to_json()) == job


def test_messages_arrive_whole_and_in_order() -> None:
    reader, writer = os.pipe()
    inbox = Inbox(reader)
    os.write(writer, b'{"a": 1}\n{"b"')
    assert inbox.next(0) == {"a": 1}
    assert inbox.next(0) is None
    assert not inbox.closed
    os.write(writer, b": 2}\n")
    send(writer, {"c": "ü\n"})
    os.close(writer)
    assert [inbox.next(0) for _ in range(3)] == [{"b": 2}, {"c": "ü\n"}, None]
    assert inbox.closed
    os.close(reader)

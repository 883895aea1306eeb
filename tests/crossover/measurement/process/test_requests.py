from __future__ import annotations

from dataclasses import fields

from crossover.measurement.process.requests import BatchTry, Request, TrainingRun, job_from_json
from trials import CELL, EFFORT


def test_a_request_survives_the_journey() -> None:
    gpu = ("GPU-1", [0, 4])
    request = Request(
        *(CELL, 2, 7, "data", "row", 3, 60.0, EFFORT, 300, True, "the command", "server", 2, *gpu, 0.5, "f00"),
        *("a key", "{}"),
    )
    plain = Request(CELL, 2, 7, "data", "row", 3, 60.0, EFFORT)
    assert all(getattr(request, f.name) != getattr(plain, f.name) for f in fields(Request)[8:])
    assert job_from_json(request.to_json()) == request


def test_a_try_of_a_batch_survives_it_too() -> None:
    job = BatchTry(CELL, 7, "data", 3, 60.0, 2**31, 100, "server", "GPU-1", [0, 4], "a key", "{}")
    plain = BatchTry(CELL, 7, "data", 3, 60.0)
    assert all(getattr(job, f.name) != getattr(plain, f.name) for f in fields(BatchTry)[5:])
    assert job_from_json(job.to_json()) == job


def test_so_does_a_training() -> None:
    more = ("the command", "server", "GPU-1", [0, 4], "f00", "a key", "{}")
    job = TrainingRun(CELL, 7, 2, 0.25, "data", "row", 3, 60.0, *more)
    plain = TrainingRun(CELL, 7, 2, 0.25, "data", "row", 3, 60.0)
    assert all(getattr(job, f.name) != getattr(plain, f.name) for f in fields(TrainingRun)[8:])
    assert job_from_json(job.to_json()) == job

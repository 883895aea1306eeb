from __future__ import annotations

from dataclasses import fields

from crossover.measurement.requests import Request, job_from_json
from trials import CELL, EFFORT


def test_a_request_survives_the_journey() -> None:
    request = Request(CELL, 2, 7, "data", "row", 3, 60.0, EFFORT, 300, "the command", "server", 2, "GPU-1", 0.5)
    plain = Request(CELL, 2, 7, "data", "row", 3, 60.0, EFFORT)
    assert all(getattr(request, f.name) != getattr(plain, f.name) for f in fields(Request)[8:])
    assert job_from_json(request.to_json()) == request

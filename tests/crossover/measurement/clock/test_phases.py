from __future__ import annotations

import json

from crossover.measurement.clock.phases import Phases


def test_a_phase_lasts_from_the_end_of_the_one_before() -> None:
    """The process is 2.5 s old as the first phase ends, at 100 on the clock."""
    times_s = iter([100.0, 100.25, 103.0])
    phases = Phases(2.5, lambda: next(times_s))
    phases.end("build")
    phases.end("timing")
    assert json.loads(phases.to_json()) == {"import": 2.5, "build": 0.25, "timing": 2.75}

"""A trial of workload `null`, whose step does nothing. It writes a row like any other trial but does not import
torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from crossover.config.studies import Effort
from crossover.measurement.clock.timing import Phases, Stopwatch, process_age_s, time_steps
from crossover.measurement.host.description import describe_machine
from crossover.measurement.process.jobs import TrialJob
from crossover.tables.columns import Measurement

NO_EFFORT = Effort(
    warmup_min_steps=1,
    warmup_min_s=0,
    warmup_long_s=0,
    warmup_max_s=0,
    block_min_s=1e-5,  # a step must take longer than the resolution of any clock
    blocks_min=2,
    timed_min_s=0,
    timed_max_s=0,
)


def run_null_trial(job: TrialJob, tell: Callable[[dict[str, Any]], None]) -> Measurement:
    """Time an empty step briefly, whatever the config's effort; no pass follows. `tell` receives messages as in
    `run_trial`."""
    machine = describe_machine()
    facts = {
        **job.columns(),
        **machine,
        "parameters": job.cell.size,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "device_name": machine["cpu_model"],
        "threads": job.threads,
        "effort": json.dumps(asdict(NO_EFFORT)),
    }
    tell({"begun": facts})
    watch = Stopwatch(synchronise=lambda: None)
    timed, _ = time_steps(lambda: None, 1, NO_EFFORT, watch)
    return Measurement(**facts, **timed, status="ok", flags=[], spent_s=Phases(process_age_s()).to_json())

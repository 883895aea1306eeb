"""A trial of the workload that does nothing: a row like any other, without torch and without effort."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from crossover.config.studies import Effort
from crossover.config.workloads import workload_traits
from crossover.measurement.clock.timing import Stopwatch, time_steps
from crossover.measurement.clock.timing_columns import timing_columns
from crossover.measurement.host.host import describe_machine, process_age_s
from crossover.measurement.process.requests import Request
from crossover.tables.columns import Measurement

NO_EFFORT = Effort(
    warmup_min_steps=1,
    warmup_min_s=0,
    warmup_long_s=0,
    warmup_max_s=0,
    block_min_s=1e-5,  # longer than the resolution of any clock
    blocks_min=2,
    timed_min_s=0,
    timed_max_s=0,
)


def run_null_trial(
    request: Request,
    begin: Callable[[dict[str, Any]], None] = lambda _facts: None,
    _keep: Callable[[dict[str, Any]], None] = lambda _row: None,
) -> Measurement:
    """Time an empty step for a moment, whatever effort is asked for; `begin` as in `run_trial`. No pass follows."""
    machine = describe_machine()
    facts = {
        **asdict(request.cell),
        **machine,
        "trial": request.trial,
        "size_name": workload_traits(request.cell.workload).size_name,
        "parameters": request.cell.size,
        "seed": request.seed,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "device_name": machine["cpu_model"],
        "threads": request.threads,
        "effort": json.dumps(asdict(NO_EFFORT)),
        "isolation": request.isolation,
        "attempts": request.attempts,
        "lease_wait_s": request.lease_wait_s,
        "code_version": request.code_version,
        "code_key": request.code_key,
        "packages": request.packages,
        "command": request.command,
    }
    begin(facts)
    watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, synchronise=lambda: None)
    timing = time_steps(lambda: None, 1, NO_EFFORT, watch)
    columns = {**facts, **timing_columns(timing), "status": "ok", "flags": [], "process_s": process_age_s()}
    return Measurement(**columns)

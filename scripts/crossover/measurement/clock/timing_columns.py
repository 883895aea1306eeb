"""What was timed, as columns of `Measurement`."""

from __future__ import annotations

import statistics
from typing import Any

from crossover.measurement.clock.timing import Timing, summarise_samples


def timing_columns(timing: Timing) -> dict[str, Any]:
    """Columns of a trial's blocks."""
    summary = summarise_samples(timing.samples_s)
    device = timing.device_samples_s
    return {
        "step_time_s": summary.median_s,
        "step_time_mean_s": summary.mean_s,
        "step_time_iqr_s": summary.iqr_s,
        "severe_outliers": summary.severe_outliers,
        "samples_s": list(timing.samples_s),
        "block_steps": timing.block_steps,
        "timed_s": timing.timed_s,
        "timed_steps": timing.timed_steps,
        "timed_cpu_s": timing.timed_cpu_s,
        "first_step_s": timing.first_step_s,
        "warmup_s": timing.warmup_s,
        "warmup_steps": timing.warmup_steps,
        "device_time_s": statistics.median(device) if device else None,
        "device_samples_s": list(device) if device else None,
        **timing.counted,
    }


def latency_columns(latencies_s: list[float]) -> dict[str, float]:
    """Columns of percentiles of individually synchronised steps."""
    cuts = statistics.quantiles(latencies_s, n=100, method="inclusive")
    return {"latency_p50_s": cuts[49], "latency_p95_s": cuts[94], "latency_p99_s": cuts[98]}

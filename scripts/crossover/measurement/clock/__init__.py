"""The clock: timing, warm-up, stopping, latencies, profiler."""

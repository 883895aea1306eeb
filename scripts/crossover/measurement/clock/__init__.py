"""Time: warm-up, blocks, stopping, latencies, profiler."""

"""What the state of host and GPU says about a result: flags, and reasons to exclude it.

Both read a row's columns by name (`tables.columns.Measurement`). What is not known raises nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.config.words import is_cpu
from crossover.machine.gpu_state import SLOWDOWN

CLOCK_MIN_SHARE = 0.75
"""Below this share of its default clock, a GPU is not the one that its data sheet describes (nvbench's threshold)."""

OTHERS_CPUS = 0.25
"""Below it are a quiet machine's own tasks (0.01 CPUs on 2 cores, 0.02 to 0.07 on 16). Above it, 48 of 50 CPU trials
were over 10 % slower than their cell's fastest, below it 6 of 87 (docs/method.md, "Trust")."""

THROTTLED_SHARE = 0.01
"""Time lost to a quota that a time known to 1 % would show."""

HOST_BOUND_SHARE = 0.5
"""Of a step: above it the GPU waits for the host for most of the time, and whatever slows the host down shows."""


def host_flags(facts: Mapping[str, Any]) -> list[str]:
    """Why the host or the GPU makes an ok result deserve less trust; names as in `config.words.FLAGS`."""
    checks = {
        "throttled": _clock_was_low(facts),
        "busy_host": others_disturb(facts),
        "side_by_side": bool(facts.get("leased_beside")) and (facts.get("host_bound_share") or 0) > HOST_BOUND_SHARE,
        "quota": _per(facts, "cgroup_throttled_s", "timed_s") > THROTTLED_SHARE,
    }
    return [flag for flag, raised in checks.items() if raised]


def others_disturb(facts: Mapping[str, Any]) -> bool:
    """Whether other processes kept more CPUs busy than the trial could spare.

    A CPU trial needs a core per thread; a GPU trial needs one, for the thread that feeds the GPU.
    """
    others, cores = facts.get("others_cpus"), facts.get("physical_cores")
    if others is None or not cores:
        return False
    needed = facts.get("threads") or cores if _on_cpu(facts) else 1
    spare = max(0, cores - needed)
    return bool(others > spare + OTHERS_CPUS)


def why_invalid(facts: Mapping[str, Any]) -> str | None:
    """Why a result must not count, in one line with the remedy; None where nothing speaks against it.

    The software power cap is no reason: it is how a GPU at its limit works.
    """
    return "; ".join(reason for reason, _ in _objections(facts)) or None


def may_pass(facts: Mapping[str, Any]) -> bool:
    """Whether something speaks against an invalid result that may be gone when it is measured again."""
    return facts.get("status") == "invalid" and any(passing for _, passing in _objections(facts))


def _objections(facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Reasons, and whether each may be gone the next time."""
    if foreign := facts.get("foreign_processes"):
        yield f"other compute processes on the GPU ({foreign}): stop them, or take another GPU", True
    # Not every GPU has every counter, so a reason that held at the end counts as well. `hw_slowdown` alone does not:
    # NVML says that it also shows for a moment when the clock changes.
    slowed = sorted(set(SLOWDOWN) & set(facts.get("throttle_reasons") or ()))
    if slowed or facts.get("slowdown_s"):
        named = ", ".join(slowed) or "by its counters"
        yield f"heat or the hardware slowed the GPU down ({named}): see to its cooling and its power supply", True
    if retries := facts.get("allocator_retries"):
        yield f"allocator retries while timing ({retries}): the memory is too full; take a smaller batch or size", True
    if recompiles := facts.get("recompiles"):
        what = f"recompilations while timing ({recompiles})"
        yield f"{what}: shapes or guards change from step to step; keep them fixed", False


def _clock_was_low(facts: Mapping[str, Any]) -> bool:
    """Whether the SM clock was low under load; the highest clock stands in for a default that many GPUs lack."""
    clock = facts.get("sm_clock_after_mhz")
    expected = facts.get("sm_clock_default_mhz") or facts.get("sm_clock_max_mhz")
    if clock is None or not expected or "gpu_idle" in (facts.get("throttle_reasons") or ()):
        return False
    return bool(clock < CLOCK_MIN_SHARE * expected)


def _on_cpu(facts: Mapping[str, Any]) -> bool:
    return is_cpu(facts.get("device") or "")


def _per(facts: Mapping[str, Any], counted: str, over: str) -> float:
    """One column over another; 0 where either is not known."""
    count, base = facts.get(counted), facts.get(over)
    return 0.0 if count is None or not base else float(count / base)

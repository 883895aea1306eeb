"""What the state of host and GPU says about a result: flags, and reasons to exclude it.

Both read a row's columns by name (`tables.columns.Measurement`). What is not known raises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from crossover.config.words import HOST_BOUND_SHARE, is_cpu
from crossover.machine.nvml import SLOWDOWN

CLOCK_MIN_SHARE = 0.75
"""Below this share of its default clock, a GPU is not the one in its data sheet (nvbench's threshold)."""

OTHERS_CPUS = 0.25
"""A quiet machine's own tasks stay below it (0.01 CPUs on 2 cores, 0.02 to 0.07 on 16). Above it, 48 of 50 CPU trials
were over 10 % slower than their cell's fastest, below it 6 of 87 (docs/explanation/trust.md)."""

TICK_S = 0.004
"""How often the kernel looks who runs on a CPU (Linux's usual 250 times a second); the whole tick counts as theirs."""

THROTTLED_SHARE = 0.01
"""Share of time lost to a quota, or to heat, that shows in a time known to 1 %."""

STEAL_SHARE = 0.1
"""A step loses at least the share that the hypervisor took; less than this does not show beside the spread of trials (2
to 15 %), and a virtual host may lose a few percent all the time."""

FOREIGN_SHARE = 0.02
"""Kernels take turns on a GPU, so a step loses what others use of it: that would show beside the same 2 %."""


def host_flags(facts: Mapping[str, Any]) -> list[str]:
    """Why the host or the GPU makes an ok result deserve less trust; names as in `config.words.FLAGS`.

    A later trial is flagged `side_by_side` with the first one's host-bound share, by `tables.rows`.
    """
    checks = {
        "throttled": _clock_was_low(facts),
        "busy_host": others_disturb(facts),
        "steal": (facts.get("steal_share") or 0) > STEAL_SHARE,
        "side_by_side": bool(facts.get("leased_beside")) and (facts.get("host_bound_share") or 0) > HOST_BOUND_SHARE,
        "shared_gpu": bool(facts.get("foreign_processes")) and facts.get("foreign_gpu_share") is None,
        "quota": (_timed_share("cgroup_throttled_s", facts) or 0) > THROTTLED_SHARE,
    }
    return [flag for flag, raised in checks.items() if raised]


def others_disturb(facts: Mapping[str, Any]) -> bool:
    """Whether other processes kept more CPUs busy than the trial could spare.

    A CPU trial needs a core per thread; a GPU trial needs one, for the thread that feeds the GPU. What it can spare are
    the cores that it may be scheduled on, also those that a quota does not let it use at the same time.
    """
    others, cores = facts.get("others_cpus"), facts.get("affinity_cores")
    if others is None or not cores:
        return False
    needed = facts.get("threads") or cores if is_cpu(facts.get("device") or "") else 1
    return bool(others > max(0, cores - needed) + OTHERS_CPUS + others_resolution(facts))


def others_resolution(facts: Mapping[str, Any]) -> float:
    """Standard deviation of `others_cpus` at most, from the kernel's ticks on CPUs that we keep half busy."""
    cpus, timed_s = facts.get("logical_cpus"), facts.get("timed_s")
    return math.sqrt(cpus * TICK_S / timed_s) / 2 if cpus and timed_s else 0.0


def why_invalid(facts: Mapping[str, Any]) -> str | None:
    """Why a result must not count, in one line with the remedy; None if nothing speaks against it.

    The software power cap is no reason: it is how a GPU at its limit works.
    """
    return "; ".join(reason for reason, _ in _objections(facts)) or None


def may_pass(facts: Mapping[str, Any]) -> bool:
    """Whether an invalid result may become valid when it is measured again."""
    return facts.get("status") == "invalid" and any(passing for _, passing in _objections(facts))


def _objections(facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Reasons, and whether each may be gone the next time."""
    if (foreign := facts.get("foreign_gpu_share") or 0) > FOREIGN_SHARE:
        yield f"other processes used {foreign:.0%} of the GPU while timing: stop them, or take another GPU", True
    # Where no counter tells for how long, a reason that held at the end counts. `hw_slowdown` alone does not: NVML says
    # that it also shows for a moment when the clock changes.
    slowed = sorted(set(SLOWDOWN) & set(facts.get("throttle_reasons") or ()))
    share = _timed_share("slowdown_s", facts)
    if slowed if share is None else share > THROTTLED_SHARE:
        named = ", ".join(slowed) or "by its counters"
        during = "" if share is None else f" for {share:.0%} of the timing"
        yield f"heat or the hardware slowed the GPU down{during} ({named}): see to its cooling and power supply", True
    if retries := facts.get("allocator_retries"):
        yield f"allocator retries while timing ({retries}): the memory is too full; take a smaller batch or size", True
    if recompiles := facts.get("recompiles"):
        what = f"recompilations while timing ({recompiles})"
        yield f"{what}: shapes or guards change from step to step; keep them fixed", False


def _timed_share(column: str, facts: Mapping[str, Any]) -> float | None:
    """A time over that of the timed blocks; None if one of them is not known."""
    seconds, timed_s = facts.get(column), facts.get("timed_s")
    return None if seconds is None or not timed_s else float(seconds / timed_s)


def _clock_was_low(facts: Mapping[str, Any]) -> bool:
    """Whether the SM clock was low under load; the highest clock stands in for a default that many GPUs lack."""
    clock = facts.get("sm_clock_after_mhz")
    expected = facts.get("sm_clock_default_mhz") or facts.get("sm_clock_max_mhz")
    if clock is None or not expected or "gpu_idle" in (facts.get("throttle_reasons") or ()):
        return False
    return bool(clock < CLOCK_MIN_SHARE * expected)

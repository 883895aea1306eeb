"""Flags of a result, and reasons why it is invalid, from columns of its row (`tables.columns.Measurement`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from crossover.config.words import HOST_BOUND_SHARE, is_cpu
from crossover.machine.nvml import SLOWDOWN

CLOCK_MIN_SHARE = 0.75
"""A GPU whose clock is below this share of its default or maximum clock is throttled (nvbench's threshold)."""

OTHERS_CPUS = 0.25
"""Number of CPUs that other programs may use beyond those that a trial leaves free; above it, the trial is disturbed.

On two quiet machines, system tasks used 0.01 CPUs (of 2 cores) and 0.02 to 0.07 CPUs (of 16). Above the limit, 48 of 50
CPU trials were over 10 % slower than their cell's fastest trial; below it, 6 of 87 were (docs/explanation/trust.md).
"""

TICK_S = 0.004
"""Length of the kernel's tick (Linux usually has 250 per second). The task that runs at the end of a tick may be
charged for the whole tick."""

THROTTLED_SHARE = 0.01
"""Share of the time that a result may lose to a CPU quota without a flag, or to heat or hardware protection without
being invalid."""

STEAL_SHARE = 0.1
"""Share of the busy time that the hypervisor may take without a flag. Smaller losses are hard to tell from the spread
of trials, and a virtual host may lose a few percent all the time."""

FOREIGN_SHARE = 0.02


def host_flags(facts: Mapping[str, Any]) -> list[str]:
    """Flags from `config.statuses.FLAGS` for the state of the host and the GPU during the timing.

    `tables.rows` flags a cell's later trials `side_by_side`, by the first trial's host-bound share.
    """
    checks = {
        "throttled": _clock_was_low(facts),
        "busy_host": others_disturb(facts),
        "steal": (facts.get("steal_share") or 0) > STEAL_SHARE,
        "side_by_side": bool(facts.get("leased_beside")) and (facts.get("host_bound_share") or 0) > HOST_BOUND_SHARE,
        "shared_gpu": bool(facts.get("foreign_processes")) and facts.get("foreign_gpu_share") is None,
        "no_turn": bool(facts.get("turn_missed")),
        "quota": (_timed_share("cgroup_throttled_s", facts) or 0) > THROTTLED_SHARE,
    }
    return [flag for flag, raised in checks.items() if raised]


def others_disturb(facts: Mapping[str, Any]) -> bool:
    """True if other processes kept clearly more CPUs busy than the trial left free.

    A CPU trial needs a core per thread, a GPU trial one core for the thread that launches kernels. The other cores in
    the affinity mask are free, including those that a quota keeps the trial from using.
    """
    others, cores = facts.get("others_cpus"), facts.get("affinity_cores")
    if others is None or not cores:
        return False
    needed = facts.get("threads") or cores if is_cpu(facts.get("device") or "") else 1
    return bool(others > max(0, cores - needed) + OTHERS_CPUS + others_resolution(facts))


def others_resolution(facts: Mapping[str, Any]) -> float:
    """Upper bound of the standard deviation of `others_cpus` that is due to the kernel's ticks."""
    cpus, timed_s = facts.get("logical_cpus"), facts.get("timed_s")
    return math.sqrt(cpus * TICK_S / timed_s) / 2 if cpus and timed_s else 0.0


def why_invalid(facts: Mapping[str, Any]) -> str | None:
    """Reasons to discard a result, with remedies, in one line; None if the result is valid.

    The software power cap is not a reason, since it is always active on a GPU at its power limit.
    """
    return "; ".join(reason for reason, _ in _reasons(facts)) or None


def may_pass(facts: Mapping[str, Any]) -> bool:
    """True if an invalid result may become valid when it is measured again."""
    return facts.get("status") == "invalid" and any(is_temporary for _, is_temporary in _reasons(facts))


def _reasons(facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Reasons why a result is invalid, each with whether it is temporary, so that a second attempt may help."""
    if (foreign := facts.get("foreign_gpu_share") or 0) > FOREIGN_SHARE:
        yield f"other processes used {foreign:.0%} of the GPU while timing: stop them, or use another GPU", True
    # Without a counter, any reason in SLOWDOWN that is active at the end makes the result invalid. `hw_slowdown` is not
    # in SLOWDOWN, since NVML also reports it for a moment when the clock changes.
    slowed = sorted(set(SLOWDOWN) & set(facts.get("throttle_reasons") or ()))
    share = _timed_share("slowdown_s", facts)
    if slowed if share is None else share > THROTTLED_SHARE:
        causes = ", ".join(slowed) or "by its counters"
        during = "" if share is None else f" for {share:.0%} of the timing"
        yield f"heat or the hardware slowed the GPU down{during} ({causes}): check its cooling and power supply", True
    if retries := facts.get("allocator_retries"):
        yield f"allocator retries while timing ({retries}): memory is too full; use a smaller batch or size", True
    if recompiles := facts.get("recompiles"):
        yield (
            f"recompilations while timing ({recompiles}): shapes or guards change between steps; keep them fixed",
            False,
        )


def _timed_share(column: str, facts: Mapping[str, Any]) -> float | None:
    seconds, timed_s = facts.get(column), facts.get("timed_s")
    return None if seconds is None or not timed_s else float(seconds / timed_s)


def _clock_was_low(facts: Mapping[str, Any]) -> bool:
    clock = facts.get("sm_clock_after_mhz")
    expected = facts.get("sm_clock_default_mhz") or facts.get("sm_clock_max_mhz")
    if clock is None or not expected or "gpu_idle" in (facts.get("throttle_reasons") or ()):
        return False
    return bool(clock < CLOCK_MIN_SHARE * expected)

from __future__ import annotations

from typing import Any

import pytest

from crossover.config.statuses import FLAGS
from crossover.machine.trust import host_flags, may_pass, others_resolution, why_invalid
from crossover.tables.columns import COLUMNS

CPU = {
    "device": "cpu",
    "timed_s": 10.0,
    "threads": 8,
    "affinity_cores": 8,
    "logical_cpus": 16,
    "others_cpus": 0.29,  # the threshold of 0.25, and a resolution of 0.04
    "steal_share": 0.1,
    "cgroup_throttled_s": 0.1,  # 1 % of 10 s
}
GPU = {
    "device": "cuda",
    "timed_s": 10.0,
    "threads": 8,
    "affinity_cores": 8,
    "logical_cpus": 16,
    "others_cpus": 7.29,  # 7 of 8 cores are spare
    "cgroup_throttled_s": 0.0,
    "sm_clock_after_mhz": 1350.0,  # 75 % of 1800
    "sm_clock_default_mhz": 1800.0,
    "sm_clock_max_mhz": 1980.0,
    "throttle_reasons": ["sw_power_cap"],
    "foreign_processes": 1,
    "foreign_gpu_share": 0.02,
    "slowdown_s": 0.1,  # 1 % of 10 s
    "power_capped_s": 9.0,
    "allocator_retries": 0,
    "recompiles": 0,
    "leased_beside": 0,
    "host_bound_share": 0.9,
}


@pytest.mark.parametrize("facts", [CPU, GPU, dict.fromkeys(COLUMNS), {}], ids=["cpu", "gpu", "unknown", "none"])
def test_no_flag_at_the_thresholds_or_without_data(facts: dict[str, Any]) -> None:
    assert host_flags(facts) == []
    assert why_invalid(facts) is None


@pytest.mark.parametrize(
    ("facts", "flag"),
    [
        ({**CPU, "others_cpus": 0.3}, "busy_host"),
        ({**CPU, "steal_share": 0.11}, "steal"),
        ({**GPU, "foreign_gpu_share": None}, "shared_gpu"),
        ({**CPU, "cgroup_throttled_s": 0.11}, "quota"),
        ({**CPU, "turn_missed": "python3 (pid 7, user eve)"}, "no_turn"),
        ({**GPU, "sm_clock_after_mhz": 1349.0}, "throttled"),
        ({**GPU, "leased_beside": 1}, "side_by_side"),
        ({**CPU, "device": "cpu-1", "threads": 1, "others_cpus": 7.3}, "busy_host"),
        ({**CPU, "threads": 16, "others_cpus": 0.3}, "busy_host"),  # with more threads than cores, none is spare
    ],
)
def test_a_value_beyond_a_threshold_raises_its_flag(facts: dict[str, Any], flag: str) -> None:
    assert host_flags(facts) == [flag]
    assert flag in FLAGS


@pytest.mark.parametrize(
    "facts",
    [
        {**GPU, "sm_clock_after_mhz": 345.0, "throttle_reasons": ["gpu_idle"]},
        {**GPU, "leased_beside": 3, "host_bound_share": 0.5},
        {**CPU, "device": "cpu-1", "threads": 1, "others_cpus": 7.25},  # 7 of 8 cores are spare
        # A quota of 2 CPUs in a machine of 8 cores: others may use the other 6.
        {**CPU, "threads": 2, "physical_cores": 2, "others_cpus": 6.2},
        {**GPU, "foreign_gpu_share": 0.0},  # open and idle
    ],
)
def test_harmless_load_raises_no_flag(facts: dict[str, Any]) -> None:
    assert host_flags(facts) == []


def test_resolution_of_the_load_by_others() -> None:
    """In 1 s each of 16 CPUs has 250 ticks, half of them this process's, with a variance of 250 / 4."""
    assert others_resolution({"logical_cpus": 16, "timed_s": 1.0}) == pytest.approx((16 * 250 / 4) ** 0.5 / 250)
    assert others_resolution({"logical_cpus": 16}) == others_resolution({"timed_s": 1.0}) == 0
    busy = {**CPU, "others_cpus": 0.4, "cgroup_throttled_s": 0.0}
    assert [host_flags({**busy, "timed_s": seconds}) for seconds in (1.0, 0.3)] == [["busy_host"], []]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"foreign_gpu_share": 0.25}, "other processes used 25% of the GPU while timing"),
        ({"slowdown_s": 1.5, "throttle_reasons": ["gpu_idle", "thermal"]}, "down for 15% of the timing (thermal)"),
        ({"slowdown_s": None, "throttle_reasons": ["hw_power_brake"]}, "slowed the GPU down (hw_power_brake)"),
        ({"allocator_retries": 3}, "allocator retries while timing (3)"),
        ({"recompiles": 4}, "recompilations while timing (4)"),
    ],
)
def test_reasons_for_an_invalid_result(changes: dict[str, Any], words: str) -> None:
    assert words in str(why_invalid({**GPU, **changes}))


@pytest.mark.parametrize(
    ("facts", "passes"),
    [
        ({"foreign_gpu_share": 0.1}, True),
        ({"slowdown_s": 0.2}, True),
        ({"recompiles": 2}, False),
        ({"recompiles": 2, "foreign_gpu_share": 0.1}, True),
        ({}, False),  # a wrong result, or a setting that the workload changes
    ],
)
def test_only_temporary_reasons_lead_to_another_attempt(facts: dict[str, Any], passes: bool) -> None:
    assert may_pass({**GPU, **facts, "status": "invalid"}) is passes
    assert not may_pass({**GPU, **facts, "status": "oom"})

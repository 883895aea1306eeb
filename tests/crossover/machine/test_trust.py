from __future__ import annotations

from typing import Any

import pytest

from crossover.config.words import FLAGS
from crossover.machine.trust import host_flags, may_pass, why_invalid
from crossover.tables.columns import COLUMNS

CPU = {
    "device": "cpu",
    "timed_s": 10.0,
    "threads": 8,
    "physical_cores": 8,
    "others_cpus": 0.25,
    "cgroup_throttled_s": 0.1,  # 1 % of 10 s
}
GPU = {
    "device": "cuda",
    "timed_s": 10.0,
    "threads": 8,
    "physical_cores": 8,
    "others_cpus": 7.25,  # 7 of 8 cores are spare
    "cgroup_throttled_s": 0.0,
    "sm_clock_after_mhz": 1350.0,  # 75 % of 1800
    "sm_clock_default_mhz": 1800.0,
    "sm_clock_max_mhz": 1980.0,
    "throttle_reasons": ["sw_power_cap"],
    "foreign_processes": 0,
    "slowdown_s": 0.0,
    "power_capped_s": 9.0,
    "allocator_retries": 0,
    "recompiles": 0,
    "leased_beside": 0,
    "host_bound_share": 0.9,
}


@pytest.mark.parametrize("facts", [CPU, GPU, dict.fromkeys(COLUMNS), {}], ids=["cpu", "gpu", "unknown", "none"])
def test_at_the_thresholds_and_where_nothing_is_known_nothing_is_raised(facts: dict[str, Any]) -> None:
    assert host_flags(facts) == []
    assert why_invalid(facts) is None


@pytest.mark.parametrize(
    ("facts", "flag"),
    [
        ({**CPU, "others_cpus": 0.26}, "busy_host"),
        ({**CPU, "cgroup_throttled_s": 0.11}, "quota"),
        ({**GPU, "sm_clock_after_mhz": 1349.0}, "throttled"),
        ({**GPU, "leased_beside": 1}, "side_by_side"),
        ({**GPU, "sm_clock_after_mhz": 1484.0, "sm_clock_default_mhz": None}, "throttled"),
        ({**CPU, "device": "cpu-1", "threads": 1, "others_cpus": 7.26}, "busy_host"),
        ({**CPU, "threads": 16, "others_cpus": 0.3}, "busy_host"),  # more threads than cores leave nothing to spare
    ],
)
def test_beyond_a_threshold_the_flag_says_so(facts: dict[str, Any], flag: str) -> None:
    assert host_flags(facts) == [flag]
    assert flag in FLAGS


@pytest.mark.parametrize(
    "facts",
    [
        {**GPU, "sm_clock_after_mhz": 1485.0, "sm_clock_default_mhz": None},  # 75 % of the highest, 1980
        {**GPU, "sm_clock_after_mhz": 345.0, "throttle_reasons": ["gpu_idle"]},
        {**GPU, "leased_beside": 3, "host_bound_share": 0.5},
        {**CPU, "device": "cpu-1", "threads": 1, "others_cpus": 7.25},  # 7 of 8 cores are spare
    ],
)
def test_what_disturbs_nothing_raises_no_flag(facts: dict[str, Any]) -> None:
    assert host_flags(facts) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"foreign_processes": 2}, "other compute processes on the GPU (2)"),
        ({"slowdown_s": 1.5, "throttle_reasons": ["gpu_idle", "thermal"]}, "slowed the GPU down (thermal)"),
        ({"allocator_retries": 3}, "allocator retries while timing (3)"),
        ({"recompiles": 4}, "recompilations while timing (4)"),
    ],
)
def test_what_makes_a_result_invalid_is_named(changes: dict[str, Any], words: str) -> None:
    assert words in str(why_invalid({**GPU, **changes}))


@pytest.mark.parametrize(
    ("facts", "passes"),
    [
        ({"foreign_processes": 1}, True),
        ({"throttle_reasons": ["hw_thermal_slowdown"]}, True),
        ({"recompiles": 2}, False),
        ({"recompiles": 2, "foreign_processes": 1}, True),
        ({}, False),  # a wrong answer, or something that the workload sets
    ],
)
def test_only_what_may_go_away_by_itself_is_worth_a_second_attempt(facts: dict[str, Any], passes: bool) -> None:
    assert may_pass({**GPU, **facts, "status": "invalid"}) is passes
    assert not may_pass({**GPU, **facts, "status": "oom"})

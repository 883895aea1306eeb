"""Busy time of a device, from a fake profiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossover.measurement.clock.profiling import COPY_IN, COPY_OUT, PROFILED_STEPS, covered, profile_device

DeviceType: Any = torch.autograd.DeviceType


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12))))
def test_the_union_of_intervals_counts_each_moment_once(pairs: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in pairs]
    assert covered(spans) == len({moment for start, end in spans for moment in range(start, end)})


def event(
    kind: Any, start_us: float, end_us: float, annotation: bool = False, name: str = "a kernel"
) -> SimpleNamespace:
    time_range = SimpleNamespace(start=start_us, end=end_us)
    return SimpleNamespace(device_type=kind, time_range=time_range, is_user_annotation=annotation, name=name)


def profiled(
    monkeypatch: pytest.MonkeyPatch,
    events: list[SimpleNamespace] | None,
    kind: str = "cuda",
    step_time_s: float = 0.001,
    **options: Any,
) -> Any:
    """Profile with a fake profiler; returns the profile and the order of steps and calls."""
    log: list[str] = []

    class Profile:
        def __init__(self, activities: list[Any]) -> None:
            log.append(str(activities[0].name))

        def __enter__(self) -> Profile:
            return self

        def __exit__(self, *_: object) -> None:
            log.append("stop")

        def events(self) -> list[SimpleNamespace] | None:
            return events

    monkeypatch.setattr(torch.profiler, "profile", Profile)
    device = torch.device(kind)
    return profile_device(lambda: log.append("step"), device, lambda: log.append("wait"), step_time_s, **options), log


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_only_the_devices_kernels_count(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    device_type = getattr(DeviceType, kind.upper())
    events = [
        event(device_type, 1000, 3000),
        event(device_type, 2000, 5000),
        event(DeviceType.CPU, 0, 90_000),
        event(device_type, 0, 90_000, annotation=True),
        event(device_type, 4500, 7000, name="Memcpy HtoD (Pageable -> Device)"),
    ]
    profile, log = profiled(monkeypatch, events, kind)
    assert profile == pytest.approx((6e-3 / PROFILED_STEPS, 4e-3 / PROFILED_STEPS, 3 / PROFILED_STEPS))
    assert log == [kind.upper(), *["step"] * PROFILED_STEPS, "wait", "stop"]


def test_copies_to_the_host_count_as_work_unless_they_are_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        event(DeviceType.CUDA, 0, 3000),
        event(DeviceType.CUDA, 3000, 8000, name="Memcpy DtoH (Device -> Pageable)"),
    ]
    for transfers, work_s in (((COPY_IN,), 8e-3), ((COPY_IN, COPY_OUT), 3e-3)):
        profile, _ = profiled(monkeypatch, events, transfers=transfers)
        assert profile == pytest.approx((8e-3 / PROFILED_STEPS, work_s / PROFILED_STEPS, 2 / PROFILED_STEPS))


@pytest.mark.parametrize(("step_time_s", "steps"), [(0.0101, 20), (0.05, 4), (0.099, 2), (0.7, 1)])
def test_slow_steps_are_profiled_a_few_times(monkeypatch: pytest.MonkeyPatch, step_time_s: float, steps: int) -> None:
    profile, log = profiled(monkeypatch, [event(DeviceType.CUDA, 0, 8000)], step_time_s=step_time_s)
    assert log.count("step") == steps
    assert profile == pytest.approx((8e-3 / steps, 8e-3 / steps, 1 / steps))


@pytest.mark.parametrize("events", [None, [], [event(DeviceType.CPU, 0, 5)]])
def test_a_profile_without_kernels_is_none(monkeypatch: pytest.MonkeyPatch, events: Any) -> None:
    assert profiled(monkeypatch, events)[0] is None
    assert profiled(monkeypatch, events, "mps") == (None, [])

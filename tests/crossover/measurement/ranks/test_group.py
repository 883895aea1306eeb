"""Parts of a trial on several devices, without processes and devices."""

from __future__ import annotations

import threading
from multiprocessing.connection import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from crossover.measurement.clock.timing import Stopwatch, time_block
from crossover.measurement.ranks import group as groups
from crossover.measurement.ranks.group import Barrier, Group
from crossover.measurement.ranks.trial import DISTURBANCES, TrialOnRanks


def test_a_barrier_lets_nobody_through_before_all_have_arrived() -> None:
    barrier, passed = Barrier(2), []

    def second() -> None:
        for turn in range(3):
            barrier.wait(1)
            passed.append(turn)

    other = threading.Thread(target=second)
    other.start()
    for turn in range(3):
        assert len(passed) <= turn
        barrier.wait(0)
    other.join()
    assert passed == [0, 1, 2]


def test_the_time_of_a_block_is_that_of_the_slowest_process() -> None:
    """The first takes 2 s by its clock, the others 3 s and 1 s."""
    near, far = zip(*(Pipe() for _ in range(2)), strict=True)
    group = Group(0, 3, "", Barrier(1), list(near))
    ran: list[int] = []
    group.steps = [lambda: None, lambda: ran.append(1)]
    for pipe, wall_s in zip(far, (3.0, 1.0), strict=True):
        pipe.send(wall_s)
    clock = iter([0, 2 * 10**9])
    block = time_block(group.steps[1], 4, group.watch(Stopwatch(synchronise=lambda: None, wall_ns=lambda: next(clock))))
    assert block.wall_s == 3.0
    assert [pipe.recv() for pipe in far] == [("block", 1, 4)] * 2
    assert group.samples_s == [[2.0, 3.0, 1.0]]
    assert len(ran) == 4


class EndedError(Exception):
    pass


@pytest.mark.parametrize("closed", [False, True])
def test_of_the_processes_that_ended_the_one_that_others_lost_is_reported(
    monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    def end(status: int) -> None:
        raise EndedError(status)

    monkeypatch.setattr(groups, "GRACE_S", 0)
    monkeypatch.setattr(groups.os, "_exit", end)
    group = Group(0, 3, "", Barrier(3), [], ranks={11: 1, 12: 2}, is_closed=closed)
    (first, tells_first), (second, tells_second) = Pipe(duplex=False), Pipe(duplex=False)
    tells_first.send({"status": "invalid", "reason": "Connection closed by peer", "is_lost": True})
    tells_second.send({"status": "oom", "reason": "CUDA out of memory", "is_lost": False})
    told: list[Any] = []
    if closed:
        group.report_ends({first: 11, second: 12}, told.append)
        assert told == []
        return
    with pytest.raises(EndedError):
        group.report_ends({first: 11, second: 12}, told.append)
    cause = {"status": "oom", "reason": "CUDA out of memory", "is_lost": False, "name": "process 3 of 3"}
    assert told == [{"lost": cause}]


@pytest.mark.parametrize(
    ("protocol", "second_j", "energy_j", "time_s", "steps"),
    [("resident", 5.0, 8.0, 4.0, 10), ("each", 5.0, 8.0, 2.0, 20), ("resident", None, None, 4.0, 10)],
)
def test_energy_is_summed_and_with_a_batch_each_times_are_for_a_batch(
    protocol: str, second_j: float | None, energy_j: float | None, time_s: float, steps: int
) -> None:
    columns = {
        **{"step_time_s": 4.0, "step_time_mean_s": 4.0, "step_time_iqr_s": 0.0, "samples_s": [4.0, 4.0]},
        **{"device_time_s": None, "device_samples_s": None, "block_steps": 5, "timed_s": 40.0, "timed_steps": 10},
    }

    def call(name: str, timed_s: float, timed_steps: int) -> list[dict[str, Any]]:
        assert (name, timed_s, timed_steps) == ("surroundings", 40.0, steps)
        joules = ({"energy_j": value, "energy_per_step_j": value and value / steps} for value in (3.0, second_j))
        first, second = (dict.fromkeys(DISTURBANCES, value) for value in (0.0, 0.5))
        first |= {"throttle_reasons": None, "power_capped_s": None}
        second |= {"throttle_reasons": ["sw_thermal"], "power_capped_s": None}
        return [{"leased_beside": 3, **energy, **state} for energy, state in zip(joules, (first, second), strict=True)]

    trial: Any = object.__new__(TrialOnRanks)
    samples_s = [[99.0, 99.0], [20.0, 10.0], [20.0, 10.0]]  # the first block belongs to the warm-up
    trial.group = SimpleNamespace(size=2, samples_s=samples_s, call=call)
    trial.job = SimpleNamespace(cell=SimpleNamespace(device="cuda-2", protocol=protocol))
    trial.columns = columns
    trial.execution, trial.watch = SimpleNamespace(step=lambda: None), Stopwatch(synchronise=lambda: None)
    trial._read_surroundings()
    assert (columns["step_time_s"], columns["samples_s"], columns["timed_steps"]) == (time_s, [time_s] * 2, steps)
    assert columns["rank_times_s"] == [time_s, time_s / 2]
    assert columns["energy_j"] == energy_j
    assert columns["energy_per_step_j"] == (None if energy_j is None else pytest.approx(energy_j / steps))
    assert columns["leased_beside"] == 2
    # The other GPU was shared and hot.
    assert (columns["foreign_gpu_share"], columns["slowdown_s"], columns["power_capped_s"]) == (0.5, 0.5, None)
    assert columns["throttle_reasons"] == ["sw_thermal"]

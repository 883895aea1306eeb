"""The remedies for a step, and the part of the step that each removes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.config.words import LARGER_BATCH
from crossover.errors import UnsupportedError
from crossover.measurement import remedies
from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.remedies import (
    FEWER_THREADS_S,
    LONGEST_STEP_S,
    ROUNDS,
    HostCopies,
    Method,
    dense_bytes,
    has_rows,
    held_batch,
    is_pinned,
    remedies_of,
    time_interleaved,
    time_remedies,
    working_s,
)
from crossover.measurement.step.execution import Execution, prepare
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task
from fake_device import MILLISECOND, FakeDevice
from tiny_tasks import TinyTraining


class Loading(TinyTraining):
    taken = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        self.taken += 1
        return super().next_inputs()

    def run(self, *inputs: torch.Tensor) -> None:
        self.rows = len(inputs[0])
        super().run(*inputs)


def methods_of(task: Any, name: str = "eager", step_time_s: float = 0.001) -> Any:
    inputs = task.next_inputs()
    return remedies_of(task, Execution(task.step, task.run), name, step_time_s, inputs, inputs, HostCopies())


@pytest.fixture
def task() -> Loading:
    return Loading(nn.Linear(2, 1), [torch.randn(5, 2)])


@pytest.mark.parametrize(
    ("threads", "fewer"), [(1, set()), (2, {"one_thread_s"}), (4, {"one_thread_s", "half_threads_s"})]
)
def test_a_cpu_tries_a_held_batch_a_larger_one_and_fewer_threads(
    task: Loading, monkeypatch: pytest.MonkeyPatch, threads: int, fewer: set[str]
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    always = {"split_step_s", "loading_s", "held_s", "larger_s"}
    assert methods_of(task).keys() == always | fewer
    assert methods_of(task, step_time_s=FEWER_THREADS_S).keys() == always
    assert methods_of(task, "compile", FEWER_THREADS_S).keys() == always - {"larger_s"}


def test_a_held_batch_is_not_loaded_again_and_a_larger_one_has_more_rows(task: Loading) -> None:
    methods = methods_of(task)
    taken = task.taken
    methods["held_s"].step()
    assert (task.taken, task.rows) == (taken, 5)
    methods["larger_s"].step()
    assert (task.taken, task.rows) == (taken, 5 * LARGER_BATCH)
    methods["split_step_s"].step()
    assert (task.taken, task.rows) == (taken + 1, 5)


def test_a_model_for_a_fixed_batch_size_has_no_larger_batch(task: Loading, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*inputs: torch.Tensor) -> None:
        inputs[0].view(5, 2)

    monkeypatch.setattr(task, "run", run)
    assert "larger_s" not in methods_of(task)


def test_copies_to_another_device_are_seen_but_not_numbers_or_sparse_tensors() -> None:
    with HostCopies() as copies:
        torch.zeros(3, 5).to("meta")
        torch.zeros(()).to("meta")
        torch.zeros(7).to(torch.float64)
        SPARSE.to("meta")
    assert (copies.bytes, copies.pinned) == (3 * 5 * 4, False)
    assert (dense_bytes(SPARSE), dense_bytes(ROWS), is_pinned(SPARSE)) == (0, 24, False)


def test_the_work_of_a_step_is_timed_without_its_batch(task: Loading) -> None:
    device = FakeDevice(MILLISECOND, device_ns=2 * MILLISECOND)
    watch = Stopwatch(wall_ns=lambda: device.now, cpu_ns=lambda: 0, synchronise=device.synchronise)
    execution = Execution(task.step, lambda *_inputs: device.step())
    assert working_s(task, execution, watch, 0.1) == pytest.approx(0.003)
    assert task.taken == 3


@pytest.mark.parametrize(("step_time_s", "larger"), [(LONGEST_STEP_S / 4, True), (LONGEST_STEP_S / 3.9, False)])
def test_a_larger_batch_does_not_take_long(task: Loading, step_time_s: float, larger: bool) -> None:
    assert ("larger_s" in methods_of(task, step_time_s=step_time_s)) is larger


@pytest.mark.parametrize(
    ("peak_bytes", "free_bytes", "larger"),
    [(500, 4000, True), (500, 3999, True), (None, 1919, False), (None, 1920, True), (10**9, 1919, False)],
)
def test_a_larger_batch_fits_into_half_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch, task: Loading, peak_bytes: int | None, free_bytes: int, larger: bool
) -> None:
    """A step adds 200 B to the process's memory; its batch of 5 rows with two numbers has 40 B."""
    monkeypatch.setattr(remedies, "available_bytes", lambda: free_bytes)
    monkeypatch.setattr(remedies, "status_bytes", lambda *_: peak_bytes)
    monkeypatch.setattr(remedies, "grown_bytes", lambda _: 200)
    assert ("larger_s" in methods_of(task)) is larger


ROWS = torch.zeros(3, 2)
SPARSE = ROWS.to_sparse()


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        ((ROWS,), True),
        (({"rows": ROWS, "others": (torch.zeros(3), None)},), True),
        ((ROWS, torch.zeros(4)), False),
        ((ROWS, torch.tensor(3)), False),
        (([torch.zeros(3, 8, 8)] * 3,), False),  # three images of three colours
        ((SPARSE,), False),
    ],
)
def test_rows_are_dense_tensors_of_one_length(batch: Any, rows: bool) -> None:
    assert has_rows(batch) is rows


def test_lengths_on_the_host_stay_there_if_other_tensors_are_on_the_device() -> None:
    device = torch.device("meta")
    rows, lengths = ROWS.to(device), torch.tensor([2, 1])
    (batch,) = held_batch(({"rows": rows, "lengths": lengths},), device)
    assert batch["rows"] is rows
    assert batch["lengths"] is lengths
    assert [tensor.device.type for tensor in held_batch((ROWS, lengths), device)] == ["meta"] * 2


class Queued(Task):
    """A step without tensors that takes host time and then device time; its batch takes 0.1 ms of host time."""

    def __init__(self, device: FakeDevice) -> None:
        self.arithmetic = Arithmetic(torch.device("cuda"))
        self.fake = device

    def next_inputs(self) -> tuple[Any, ...]:
        self.fake.now += MILLISECOND // 10
        return ()

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError

    def run(self, *_inputs: Any) -> None:
        self.fake.step()


class Graph:
    def __init__(self, device: FakeDevice) -> None:
        self.device = device

    def replay(self) -> None:
        self.device.busy_until = max(self.device.busy_until, self.device.now) + self.device.device_ns


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (Graph, {"fits_graph": True, "replayed_s": pytest.approx(0.001)}),
        (UnsupportedError("cuda-graph cannot capture the step: operation not permitted"), {"fits_graph": False}),
        (torch.OutOfMemoryError("full"), {}),
        (RuntimeError("Detected recompile"), {}),
    ],
)
def test_a_step_is_replayed_if_it_can_be_captured(
    monkeypatch: pytest.MonkeyPatch, graph: Any, expected: dict[str, Any]
) -> None:
    """A GPU whose step takes 8 ms on the host, then 1 ms on the device."""
    device = FakeDevice(8 * MILLISECOND, device_ns=MILLISECOND)
    task = Queued(device)

    def capture(*_: Any) -> Any:
        if isinstance(graph, Exception):
            raise graph
        return graph(device)

    monkeypatch.setattr(remedies, "capture", capture)
    monkeypatch.setattr(remedies, "prepare", lambda *_: None)
    monkeypatch.setattr(remedies, "host_work_s", lambda _: 0.005)
    columns = time_remedies(
        task, Execution(task.step, task.run), "eager", 0.008, lambda: Queued(device), device.watch()
    )
    assert columns["host_work_s"] == 0.005
    assert columns["split_step_s"] == pytest.approx(0.0086)  # in a block of two, device and host work at the same time
    assert {name: columns[name] for name in ("fits_graph", "replayed_s") if name in columns} == expected


@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning")
def test_a_compiled_step_is_replayed_only_with_its_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new model of the same size uses the compiled code; one of another size would be recompiled."""
    torch._dynamo.reset()
    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda forward, **options: real(forward, backend="eager", **options))
    monkeypatch.setattr(remedies, "why_not_captured", lambda _: None)

    def capture(task: Any, batch: Any) -> Any:
        task.run(*batch)
        return SimpleNamespace(replay=lambda: None)

    monkeypatch.setattr(remedies, "capture", capture)

    def new(width: int) -> Loading:
        return Loading(nn.Sequential(nn.Linear(2, width), nn.Linear(width, 1)), [torch.randn(5, 2)])

    try:
        measured = new(3)
        prepare(measured, "compile").step()
        methods, fits = remedies.replayed(new(3), "compile", (torch.randn(5, 2),))
        assert (list(methods), fits) == (["replayed_s"], True)
        with pytest.raises(RuntimeError, match="recompile"):
            remedies.replayed(new(4), "compile", (torch.randn(5, 2),))
    finally:
        torch._dynamo.reset()


def test_an_error_of_the_step_is_raised_and_a_remedy_with_an_error_is_skipped(
    task: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = FakeDevice(MILLISECOND)

    def next_inputs() -> tuple[torch.Tensor, ...]:
        device.now += MILLISECOND // 10
        return (ROWS,)

    monkeypatch.setattr(task, "next_inputs", next_inputs)

    def run(*_inputs: torch.Tensor) -> None:
        if torch.get_num_threads() == 1:
            raise RuntimeError("not on one thread")
        device.step()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        execution = Execution(lambda: run(*task.next_inputs()), run)
        columns = time_remedies(task, execution, "eager", 0.001, lambda: task, device.watch())
        assert columns["held_s"] == pytest.approx(0.001)
        assert "one_thread_s" not in columns
        ended = Execution(lambda: next(iter(())), run)
        with pytest.raises(StopIteration):
            time_remedies(task, ended, "eager", 0.001, lambda: task, device.watch())
    finally:
        torch.set_num_threads(before)


class Machine:
    def __init__(self) -> None:
        self.now_ns = 0
        self.ran: list[str] = []

    def watch(self) -> Stopwatch:
        return Stopwatch(wall_ns=lambda: self.now_ns, cpu_ns=lambda: 0, synchronise=lambda: None)

    def method(self, name: str, step_ms: float, setting_ms: float = 0) -> Method:
        def step() -> None:
            self.now_ns += round(step_ms * 1e6)
            self.ran.append(name)

        @contextmanager
        def setting() -> Iterator[None]:
            self.now_ns += round(setting_ms * 1e6)
            yield
            self.now_ns += round(setting_ms * 1e6)

        return Method(step, setting)


def test_every_second_round_is_reversed() -> None:
    machine = Machine()
    time_interleaved({"a": machine.method("a", 1), "b": machine.method("b", 1)}, 0.002, machine.watch())
    order = "".join(machine.ran)
    assert order[:4] == "ab" + "ba"  # two steps each, to determine the length of blocks
    assert order[4:] == "aaabbb" + "bbbaaa" + "aaabbb"  # an uncounted step, then two counted ones
    assert len(order[4:]) == ROUNDS * 6


def test_the_first_two_runs_of_a_step_over_10_ms_count_and_it_runs_once_more() -> None:
    """Its time is the median of 12 ms, 40 ms and 20 ms."""
    machine = Machine()
    lasts_ms = iter([12, 40, 20])

    def step() -> None:
        machine.now_ns += round(next(lasts_ms) * 1e6)
        machine.ran.append("b")

    times_s = time_interleaved({"a": machine.method("a", 1), "b": Method(step)}, 0.002, machine.watch())
    assert times_s == pytest.approx({"a": 0.001, "b": 0.02})
    assert "".join(machine.ran) == "ab" + "ba" + "aaab" + "aaa" + "aaa"


def test_the_setting_of_a_method_is_not_timed() -> None:
    machine = Machine()
    methods = {
        "quick": machine.method("quick", 1),
        "slow": machine.method("slow", 40),
        "set": machine.method("set", 3, setting_ms=500),
    }
    assert time_interleaved(methods, 0.02, machine.watch()) == pytest.approx(
        {"quick": 0.001, "slow": 0.04, "set": 0.003}
    )
    assert machine.ran.count("quick") == 2 + ROUNDS * (1 + 20)  # blocks of 20 ms, each after an uncounted step


@pytest.mark.parametrize("good_steps", [0, 1, 5])
def test_a_method_that_raises_is_skipped_unless_it_is_the_first(good_steps: int) -> None:
    """The step raises in its first run or later, like an environment that ends."""
    machine = Machine()
    plain = machine.method("plain", 1)
    left = iter(range(good_steps))

    def ending() -> None:
        plain.step()
        next(left)

    methods = {"plain": plain, "ending": Method(ending), "slow": machine.method("slow", 40)}
    assert time_interleaved(methods, 0.02, machine.watch()) == pytest.approx({"plain": 0.001, "slow": 0.04})
    with pytest.raises(StopIteration):
        time_interleaved({"ending": Method(ending), "plain": plain}, 0.02, machine.watch())

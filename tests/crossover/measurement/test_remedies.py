"""The remedies of a step, and what each leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.config.words import LARGER_BATCH
from crossover.errors import UnsupportedError
from crossover.measurement import remedies
from crossover.measurement.clock.profiling import DeviceProfile
from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.remedies import (
    FEWER_THREADS_S,
    LONGEST_STEP_S,
    HostCopies,
    are_rows,
    dense_bytes,
    held_batch,
    is_pinned,
    remedies_of,
    time_remedies,
    working_s,
)
from crossover.measurement.step.execution import Execution, prepare
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task
from crossover.statistics.bottlenecks import RoofTimes, bottleneck_of
from fake_device import MILLISECOND, FakeDevice
from tiny_tasks import TinyTraining


class Loading(TinyTraining):
    """Counts its batches, and the rows of the last one."""

    taken = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        self.taken += 1
        return super().next_inputs()

    def run(self, *inputs: torch.Tensor) -> None:
        self.rows = len(inputs[0])
        super().run(*inputs)


def ways_of(task: Any, name: str = "eager", step_time_s: float = 0.001) -> Any:
    inputs = task.next_inputs()
    return remedies_of(task, Execution(task.step, task.run), name, step_time_s, inputs, inputs, HostCopies())


@pytest.fixture
def task() -> Loading:
    return Loading(nn.Linear(2, 1), [torch.randn(5, 2)])


@pytest.mark.parametrize(
    ("threads", "fewer"), [(1, set()), (2, {"one_thread_s"}), (4, {"one_thread_s", "half_threads_s"})]
)
def test_a_cpu_holds_its_batch_and_tries_fewer_threads(
    task: Loading, monkeypatch: pytest.MonkeyPatch, threads: int, fewer: set[str]
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    always = {"split_step_s", "loading_s", "held_s", "larger_s"}
    assert ways_of(task).keys() == always | fewer
    assert ways_of(task, step_time_s=FEWER_THREADS_S).keys() == always
    assert ways_of(task, "compile", FEWER_THREADS_S).keys() == always - {"larger_s"}


def test_a_held_batch_is_not_taken_again_and_a_larger_one_has_more_rows(task: Loading) -> None:
    methods = ways_of(task)
    taken = task.taken
    methods["held_s"].step()
    assert (task.taken, task.rows) == (taken, 5)
    methods["larger_s"].step()
    assert (task.taken, task.rows) == (taken, 5 * LARGER_BATCH)
    methods["split_step_s"].step()
    assert (task.taken, task.rows) == (taken + 1, 5)


def test_a_model_for_one_batch_size_has_no_larger_one(task: Loading, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*inputs: torch.Tensor) -> None:
        inputs[0].view(5, 2)

    monkeypatch.setattr(task, "run", run)
    assert "larger_s" not in ways_of(task)


def test_threads_are_as_before(task: Loading) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        method = ways_of(task)["one_thread_s"]
        with method.setting():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


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
    assert ("larger_s" in ways_of(task, step_time_s=step_time_s)) is larger


@pytest.mark.parametrize(
    ("most_bytes", "free_bytes", "larger"),
    [(500, 4000, True), (500, 3999, True), (None, 1919, False), (None, 1920, True), (10**9, 1919, False)],
)
def test_a_larger_batch_fits_into_half_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch, task: Loading, most_bytes: int | None, free_bytes: int, larger: bool
) -> None:
    """A step adds 200 B to what the process holds, and its batch has 5 rows of two numbers, 40 B."""
    monkeypatch.setattr(remedies, "available_bytes", lambda: free_bytes)
    monkeypatch.setattr(remedies, "status_bytes", lambda *_: most_bytes)
    monkeypatch.setattr(remedies, "grown_bytes", lambda _: 200)
    assert ("larger_s" in ways_of(task)) is larger


ROWS = torch.zeros(3, 2)
SPARSE = ROWS.to_sparse()


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        ((ROWS,), True),
        (({"rows": ROWS, "others": (torch.zeros(3), None)},), True),
        ((ROWS, torch.zeros(4)), False),
        ((ROWS, 3), False),
        ((ROWS, torch.tensor(3)), False),
        (([torch.zeros(3, 8, 8)] * 3,), False),  # three images of three colours
        ((SPARSE,), False),
        ((), False),
    ],
)
def test_rows_are_dense_tensors_of_one_length(batch: Any, rows: bool) -> None:
    assert are_rows(batch) is rows


def test_lengths_that_stay_on_the_host_stay_there() -> None:
    """Beside a tensor on the device; a whole batch on the host is one that the step copies."""
    device = torch.device("meta")
    there, lengths = ROWS.to(device), torch.tensor([2, 1])
    (batch,) = held_batch(({"rows": there, "lengths": lengths},), device)
    assert batch["rows"] is there
    assert batch["lengths"] is lengths
    assert [tensor.device.type for tensor in held_batch((ROWS, lengths), device)] == ["meta"] * 2


class Queued(Task):
    """A step that costs host time and then device time, without a tensor."""

    def __init__(self, device: FakeDevice) -> None:
        self.arithmetic = Arithmetic(torch.device("cuda"))
        self.fake = device

    def next_inputs(self) -> tuple[Any, ...]:
        return ()

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError

    def run(self, *_inputs: Any) -> None:
        self.fake.step()


class Graph:
    """Replays the device's part of a step at once."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device

    def replay(self) -> None:
        self.device.busy_until = max(self.device.busy_until, self.device.now) + self.device.device_ns


def trial_of(
    monkeypatch: pytest.MonkeyPatch, graph: Any, host_work_s: float = 0.0, name: str = "eager"
) -> dict[str, Any]:
    """Columns of a trial on a GPU whose step takes 8 ms of the host and 1 ms of the device after it."""
    device = FakeDevice(8 * MILLISECOND, device_ns=MILLISECOND)
    task = Queued(device)

    def capture(*_: Any) -> Any:
        if isinstance(graph, Exception):
            raise graph
        return graph(device)

    monkeypatch.setattr(remedies, "capture", capture)
    monkeypatch.setattr(remedies, "prepare", lambda *_: None)
    monkeypatch.setattr(remedies, "host_work_s", lambda _: host_work_s)
    profile = DeviceProfile(busy_s=0.001, work_s=0.001, kernels=40)
    columns = time_remedies(task, Execution(task.step, task.run), name, 0.008, lambda: Queued(device), device.watch())
    return {"device": "cuda", "device_busy_s": profile.busy_s, "device_work_s": profile.work_s} | columns


UNKNOWN = RoofTimes(*[float("nan")] * 5)


def cause_of(trial: dict[str, Any]) -> tuple[str, str | None, str | None]:
    columns = bottleneck_of([trial], UNKNOWN)
    return columns["bottleneck"], columns["second_bottleneck"], columns.get("remedy")


def test_a_step_that_no_graph_can_hold_is_host_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a policy with an environment on the host."""
    trial = trial_of(monkeypatch, UnsupportedError("cuda-graph cannot hold the step: operation not permitted"))
    assert trial["fits_graph"] is False
    assert "replayed_s" not in trial
    assert cause_of(trial) == ("host", None, None)
    assert bottleneck_of([trial], UNKNOWN)["host_share"] == pytest.approx(7 / 8, abs=0.01)


def test_a_step_that_a_graph_holds_is_bound_by_its_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(monkeypatch, Graph)
    assert (trial["fits_graph"], trial["replayed_s"]) == (True, pytest.approx(0.001))
    assert cause_of(trial) == ("launch", None, "graph")


def test_host_work_that_a_graph_would_leave_out_stays_and_no_graph_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python code whose result no operator uses: a graph can be captured, and skips it."""
    trial = trial_of(monkeypatch, Graph, host_work_s=0.005)
    assert trial["fits_graph"] is True
    assert cause_of(trial) == ("host", "launch", None)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("full"), RuntimeError("Detected recompile"), StopIteration("the world has ended")]
)
def test_a_graph_that_fails_for_another_reason_is_left_out(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    trial = trial_of(monkeypatch, error)
    assert not {"fits_graph", "replayed_s"} & trial.keys()
    assert cause_of(trial) == ("launch", None, None)


@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning")
def test_a_compiled_step_is_replayed_with_the_code_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new model of the class compiles nothing; one of other sizes would, and has no remedy."""
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


def test_an_error_of_the_step_is_raised_and_a_remedy_with_an_error_is_left_out(task: Loading) -> None:
    device = FakeDevice(MILLISECOND)

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

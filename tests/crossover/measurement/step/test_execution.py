"""Executions: compiled steps compute the same as eager ones, and CUDA graphs are captured on a fake GPU."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch._inductor.config
from torch import nn

from crossover.errors import UnsupportedError
from crossover.measurement.step import execution
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.execution import CAPTURE_WARMUP_STEPS, RECOMPILED_MAX, prepare
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from tiny_tasks import CPU, FP32, TinyInference, TinyTraining, linear

GPU = torch.device("cuda", 0)

pytestmark = [  # warnings raised by torch itself
    pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.relu(self.inner(inputs)))


def sequential() -> nn.Module:
    """A model whose `forward` is torch's own."""
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


@pytest.fixture
def dynamo(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let torch.compile generate no code, which takes seconds, and forget what earlier tests compiled."""
    compile_ = torch.compile
    monkeypatch.setattr(execution, "_compiler_missing", lambda _: None)
    monkeypatch.setattr(torch, "compile", lambda what, **options: compile_(what, backend="aot_eager", **options))
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=False):
        yield monkeypatch
    torch._dynamo.reset()


def check_compiled(model: nn.Module, arithmetic: Arithmetic = FP32) -> TinyTraining:
    """Assert that a compiled training ends with the weights of the eager one; returns the compiled task."""
    batches = [torch.randn(40, 3) for _ in range(2)]
    eager, compiled = (TinyTraining(copy.deepcopy(model), batches, arithmetic) for _ in range(2))
    ready = prepare(compiled, "compile")
    before = ready.compilations()
    for _ in range(3):
        ready.step()
        eager.step()
    assert ready.compilations() - before == 1
    assert (ready.compile_s() or 0) > 0
    for weights, expected in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        assert torch.allclose(weights, expected, rtol=1e-5, atol=1e-7)
    return compiled


@pytest.mark.parametrize("model", [Perceptron, sequential])
@pytest.mark.usefixtures("dynamo")
def test_a_compiled_step_computes_the_same_as_the_eager_one(model: Callable[[], nn.Module]) -> None:
    check_compiled(model())


def test_the_check_does_not_replace_the_timed_graph(dynamo: pytest.MonkeyPatch) -> None:
    """The check's smaller batch must not lead to a graph for dynamic batch sizes."""
    shapes: list[Any] = []

    def backend(graph: Any, _example: Any) -> Any:
        def run(*arguments: Any) -> Any:
            shapes.append(any(isinstance(argument, int) for argument in arguments) or "as timed")
            return graph.forward(*arguments)

        return run

    compile_ = torch._dynamo.optimize
    dynamo.setattr(torch, "compile", lambda what, **options: compile_(backend, **options)(what))
    task = TinyTraining(sequential(), [torch.randn(40, 3)])
    ready = prepare(task, "compile")
    ready.step()
    compare_with_reference(task, sequential, "fp32", "compile")
    compiled = ready.compilations()
    ready.step()
    assert ready.compilations() == compiled
    assert set(shapes) == {"as timed"}  # the arguments of a graph for any batch include the number of rows


@pytest.mark.slow
def test_generated_code_is_right_and_can_be_checked_with_a_loss_scaler() -> None:
    """The only test that generates code. With a scaler, the check must not run backward twice through a graph."""
    if (reason := execution._compiler_missing(CPU)) is not None:
        pytest.skip(reason)
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=False):
        compiled = check_compiled(sequential(), replace(FP32, scaler=torch.amp.GradScaler("cpu")))
        answer = compare_with_reference(compiled, sequential, "fp32", "compile")
    torch._dynamo.reset()
    assert answer.wrong is answer.unchecked is None
    assert "gradient" in answer.errors


def test_compile_without_a_compiler_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.cpp_builder as builder
    import torch.utils._triton as triton

    def missing() -> None:
        raise RuntimeError("No working C++ compiler found\nin many lines")

    monkeypatch.setattr(builder, "get_cpp_compiler", missing)
    monkeypatch.setattr(triton, "has_triton", lambda: False)
    task = TinyTraining(linear(1.0), [torch.ones(1, 1)])
    for device, reason in (
        (CPU, r"a C\+\+ compiler for the CPU \(No working C\+\+ compiler found\);"),
        (GPU, "triton"),
    ):
        task.arithmetic = Arithmetic(device)
        with pytest.raises(UnsupportedError, match=f"compile needs {reason}"):
            prepare(task, "compile")


def captured(arithmetic: Arithmetic = FP32, **attributes: Any) -> TinyTraining:
    """A task that runs on the CPU, although its device is a GPU."""
    task = TinyTraining(linear(1.0), [torch.full((2, 1), number) for number in (1.0, 2.0, 3.0)], arithmetic)
    task.arithmetic = replace(task.arithmetic, device=GPU)
    for name, value in attributes.items():
        setattr(task, name, value)
    return task


def adam(**options: bool) -> torch.optim.Optimizer:
    return torch.optim.Adam([torch.zeros(1, requires_grad=True)], **options)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (lambda: TinyTraining(linear(1.0), [torch.ones(1, 1)]), "needs a CUDA device; this is cpu"),
        (lambda: captured(reads_back=True), "cannot capture a step in which the host reads results"),
        (lambda: captured(arithmetic_of("amp-fp16", CPU)), "cannot capture amp-fp16"),
        (lambda: captured(optimizer=adam()), "cannot capture Adam as this workload sets it"),
    ],
)
def test_steps_that_a_cuda_graph_cannot_capture(task: Callable[[], TinyTraining], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"cuda-graph {reason}"):
        prepare(task(), "cuda-graph")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace torch.cuda by a fake; returns the log of its calls."""
    log: list[str] = []

    class Stream:
        def __init__(self, device: torch.device | None = None, name: str = "side") -> None:
            assert device in (None, GPU)
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            log.append(f"{self.name} waits for {other.name}")

    class Graph:
        def replay(self) -> None:
            log.append("replay")

    @contextmanager
    def on(name: str) -> Iterator[None]:
        log.append(f"begin {name}")
        yield
        log.append(f"end {name}")

    main = Stream(name="main")
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: main)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: on(stream.name))
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: on("capture") if isinstance(graph, Graph) else None)
    return log


def test_a_step_is_warmed_up_on_a_side_stream_and_captured(cuda: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    task = captured()
    ran: list[torch.Tensor] = []
    monkeypatch.setattr(task, "run", lambda buffer: (cuda.append("run"), ran.append(buffer)))
    ready = prepare(task, "cuda-graph")
    warmup = ["side waits for main", "begin side", *["run"] * CAPTURE_WARMUP_STEPS, "end side", "main waits for side"]
    assert cuda == [*warmup, "begin capture", "run", "end capture"]
    (buffer,) = {id(tensor): tensor for tensor in ran}.values()
    assert buffer.data_ptr() != task.resident[0].data_ptr()  # otherwise copying would overwrite the dataset
    assert (ready.compile_s() or 0) > 0
    assert ready.compilations() == 0

    cuda.clear()
    copied = []
    for _ in range(4):
        ready.step()
        copied.append(buffer[0].item())
    assert cuda == ["replay"] * 4
    assert copied == [1, 2, 3, 1]
    assert [tensor[0].item() for tensor in task.resident] == [1, 2, 3]
    assert task.events.count("end") == 4


@pytest.mark.parametrize("draw", [lambda: torch.rand(()), random.random, lambda: np.random.rand()])
def test_a_step_that_draws_on_the_host_is_not_captured(cuda: list[str], draw: Callable[[], object]) -> None:
    """For example stochastic depth: every replay would use the same layers."""
    task = captured(run=lambda *_: draw())
    with pytest.raises(UnsupportedError, match="draws random numbers on the host"):
        prepare(task, "cuda-graph")
    assert "begin capture" not in cuda


def test_a_step_that_fails_only_during_the_capture_is_unsupported(cuda: list[str]) -> None:
    def run(*_: torch.Tensor) -> None:
        if "begin capture" in cuda:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    with pytest.raises(UnsupportedError, match=r"^cuda-graph cannot capture the step: operation not .* capturing$"):
        prepare(captured(run=run), "cuda-graph")


class Lengths(TinyTraining):
    def __init__(self, model: nn.Module, lengths: list[int]) -> None:
        super().__init__(model, [torch.randn(2, length, 3) for length in lengths], learning_rate=0.01)
        self.taken = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        self.taken += 1
        return (self.resident[self.taken % len(self.resident)],)


@pytest.mark.parametrize(("lengths", "dynamic"), [(list(range(4, 20)), True), ([4], False)])
@pytest.mark.usefixtures("dynamo")
def test_batches_of_any_length_need_one_or_two_compilations(lengths: list[int], dynamic: bool) -> None:
    task = Lengths(Perceptron(), lengths)
    ready = prepare(task, "compile")
    assert ready.dynamic_shapes is dynamic
    before = ready.compilations()
    for _ in range(2 * len(lengths)):
        ready.step()
        assert ready.check_compilations is not None
        ready.check_compilations()
    assert ready.compilations() - before <= 2


class Counting(nn.Module):
    """A model whose code depends on the number of steps, so that each step is compiled anew."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.names = "a"

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.names += "a"
        outputs: torch.Tensor = self.layer(inputs)
        return outputs * len(self.names)


@pytest.mark.usefixtures("dynamo")
def test_a_step_that_is_recompiled_again_and_again_is_unsupported() -> None:
    ready = prepare(TinyTraining(Counting(), [torch.randn(4, 3)]), "compile")
    steps = 0
    with pytest.raises(UnsupportedError, match=r"recompiles the model in step after step \(5 times"):
        for _ in range(20):
            ready.step()
            steps += 1
            assert ready.check_compilations is not None
            ready.check_compilations()
    assert steps == 1 + RECOMPILED_MAX + 1


@pytest.mark.parametrize(
    ("first", "later", "change"),
    [
        (torch.zeros(2, 3), torch.zeros(2, 4), r"shape \[2, 3\], then shape \[2, 4\]"),
        (torch.zeros(2, 3), torch.zeros(1, 3), r"shape \[2, 3\], then shape \[1, 3\]"),  # copy_ would broadcast it
        (7, 8, "7, then 8"),
    ],
)
def test_batches_that_change_cannot_be_captured(cuda: list[str], first: Any, later: Any, change: str) -> None:
    batches = iter([(torch.zeros(1), first), *[(torch.zeros(1), later)] * 20])
    task = captured(next_inputs=lambda: next(batches))
    with pytest.raises(UnsupportedError, match=f"cuda-graph cannot take batches that change: {change}; give all"):
        prepare(task, "cuda-graph")
    assert not cuda


def test_a_timed_cuda_graph_reads_and_checks_a_held_batch_once(
    cuda: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TinyInference(linear(1.0), torch.full((2, 1), 1.0))
    task.arithmetic = replace(task.arithmetic, device=GPU)
    buffers: list[torch.Tensor] = []
    monkeypatch.setattr(task, "run", buffers.append)
    ready = prepare(task, "cuda-graph")
    ready.step()
    step = ready.timed_step()
    monkeypatch.setattr(execution, "tensors_of", lambda _: pytest.fail("read in each step"))
    cuda.clear()
    task.resident[0].fill_(5.0)
    step()
    step()
    assert cuda == ["replay"] * 2
    assert buffers[0].tolist() == [[5.0], [5.0]]  # the batch is copied before each replay


def test_a_batch_that_changes_later_is_not_copied_into_a_cuda_graph(cuda: list[str]) -> None:
    task = captured(run=lambda *_: None)
    ready = prepare(task, "cuda-graph")
    with pytest.raises(UnsupportedError, match=r"shape \[2, 1\], then shape \[1, 1\]"):
        ready.run(torch.ones(1, 1))
    assert "replay" not in cuda

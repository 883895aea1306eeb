"""Executions: compiled steps compute what eager ones do; what a capture records is what a replay runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch import nn

from crossover.measurement.step import execution
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.execution import CAPTURE_WARMUP_STEPS, prepare
from crossover.measurement.step.precision import Arithmetic, UnsupportedError, arithmetic_of
from tiny_tasks import CPU, FP32, TinyInference, TinyTraining, linear

GPU = torch.device("cuda", 0)

pytestmark = [  # torch's own; the first says what was asked for
    pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]


class Perceptron(nn.Module):
    """A forward pass of one's own, as most models have."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.relu(self.inner(inputs)))


def sequential() -> nn.Module:
    """A forward pass that is torch's own."""
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


@pytest.fixture
def dynamo(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """torch.compile without generated code, which takes seconds; what it has compiled is forgotten before and after."""
    compile_ = torch.compile
    monkeypatch.setattr(execution, "_compiler_missing", lambda _: None)
    monkeypatch.setattr(torch, "compile", lambda what, **options: compile_(what, backend="aot_eager", **options))
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=False):
        yield monkeypatch
    torch._dynamo.reset()


def twins(model: nn.Module, rows: int = 40) -> tuple[TinyTraining, TinyTraining]:
    """The same training twice."""
    batches = [torch.randn(rows, 3) for _ in range(2)]
    return TinyTraining(copy.deepcopy(model), batches), TinyTraining(copy.deepcopy(model), batches)


def weights(task: TinyTraining) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in task.model.parameters()])


def test_an_eager_step_is_the_tasks_own() -> None:
    task = TinyTraining(linear(1.0), [torch.ones(1, 1)])
    ready = prepare(task, "eager")
    ready.step()
    assert task.events[-1] == "end"
    assert ready.compile_s() is None
    assert ready.compilations() == 0


@pytest.mark.parametrize("model", [Perceptron, sequential])
@pytest.mark.usefixtures("dynamo")
def test_a_compiled_step_computes_what_the_eager_one_does(model: Any) -> None:
    eager, compiled = twins(model())
    ready = prepare(compiled, "compile")
    before = ready.compilations()
    for _ in range(3):
        ready.step()
        eager.step()
    assert ready.compilations() - before == 1
    assert (ready.compile_s() or 0) > 0
    assert torch.allclose(weights(compiled), weights(eager), rtol=1e-5, atol=1e-7)


@pytest.mark.usefixtures("dynamo")
def test_a_new_shape_is_a_compilation_of_its_own() -> None:
    task = TinyTraining(sequential(), [torch.randn(40, 3), torch.randn(7, 3)])
    ready = prepare(task, "compile")
    counts = [ready.compilations()]
    for _ in range(4):
        ready.step()
        counts.append(ready.compilations())
    assert [later - counts[0] for later in counts] == [0, 1, 2, 2, 2]


def test_the_check_leaves_the_timed_graph_in_use(dynamo: pytest.MonkeyPatch) -> None:
    """Its batch is smaller; no graph for batches of any size may take the place of the one that was timed."""
    shapes: list[Any] = []

    def backend(graph: Any, example: Any) -> Any:
        def run(*arguments: Any) -> Any:
            shapes.append(any(isinstance(argument, int) for argument in arguments) or "as timed")
            return graph.forward(*arguments)

        assert example
        return run

    compile_ = torch._dynamo.optimize
    dynamo.setattr(torch, "compile", lambda what, **options: compile_(backend, **options)(what))
    _, task = twins(sequential(), rows=40)
    ready = prepare(task, "compile")
    ready.step()
    compare_with_reference(task, sequential, "fp32", "compile")
    compiled = ready.compilations()
    ready.step()
    assert ready.compilations() == compiled
    assert set(shapes) == {"as timed"}  # a graph for any batch is told the number of rows


@pytest.mark.slow
def test_code_from_torchs_compiler_is_right_and_can_be_checked_when_scaled() -> None:
    """The one test that generates code: with a scaler, since the check must not go backward twice through a graph."""
    if (reason := execution._compiler_missing(CPU)) is not None:
        pytest.skip(reason)
    scaled = replace(FP32, scaler=torch.amp.GradScaler("cpu"))
    batch = torch.randn(40, 3)
    model = sequential()
    eager, compiled = (TinyTraining(copy.deepcopy(model), [batch], scaled) for _ in range(2))
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=False):
        ready = prepare(compiled, "compile")
        before = ready.compilations()
        ready.step()
        eager.step()
        assert ready.compilations() - before == 1
        assert torch.allclose(weights(compiled), weights(eager), rtol=1e-5, atol=1e-7)
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
    task = TinyTraining(linear(1.0), [torch.ones(1, 1)])
    with pytest.raises(UnsupportedError) as caught:
        prepare(task, "compile")
    assert str(caught.value) == (
        "compile needs a C++ compiler for the CPU (No working C++ compiler found); install one (g++)"
    )
    monkeypatch.setattr(triton, "has_triton", lambda: False)
    task.arithmetic = Arithmetic(GPU)
    with pytest.raises(UnsupportedError, match="compile needs triton for this GPU"):
        prepare(task, "compile")


def on_a_gpu(task: Any) -> Any:
    """A task of the CPU that believes to be on a GPU."""
    task.arithmetic = replace(task.arithmetic, device=GPU)
    return task


def test_what_a_cuda_graph_cannot_hold() -> None:
    def task(arithmetic: Arithmetic = FP32) -> TinyTraining:
        return TinyTraining(linear(1.0), [torch.ones(1, 1)], arithmetic)

    with pytest.raises(UnsupportedError, match="cuda-graph needs a CUDA device; this is cpu"):
        prepare(task(), "cuda-graph")
    reading = on_a_gpu(task())
    reading.reads_back = True
    with pytest.raises(UnsupportedError, match="cuda-graph cannot hold a step whose results the host reads"):
        prepare(reading, "cuda-graph")
    with pytest.raises(UnsupportedError, match="cuda-graph cannot hold amp-fp16"):
        prepare(on_a_gpu(task(arithmetic_of("amp-fp16", CPU))), "cuda-graph")
    counting = on_a_gpu(task())
    counting.optimizer = torch.optim.Adam(counting.model.parameters())
    with pytest.raises(UnsupportedError, match="cuda-graph cannot hold Adam as this workload sets it"):
        prepare(counting, "cuda-graph")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A made-up torch.cuda whose streams and graphs say what they are asked for."""
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
    batches = [torch.full((2, 1), float(number)) for number in (1, 2, 3)]
    task = on_a_gpu(TinyTraining(linear(1.0), batches))
    ran: list[torch.Tensor] = []
    monkeypatch.setattr(task, "run", lambda buffer: (cuda.append("run"), ran.append(buffer)))

    ready = prepare(task, "cuda-graph")
    assert cuda == [
        "side waits for main",
        "begin side",
        *["run"] * CAPTURE_WARMUP_STEPS,
        "end side",
        "main waits for side",
        "begin capture",
        "run",
        "end capture",
    ]
    (buffer,) = {id(tensor): tensor for tensor in ran}.values()
    assert buffer.data_ptr() != task.resident[0].data_ptr()  # else copying would overwrite the dataset
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


@pytest.mark.usefixtures("cuda")
def test_an_optimizer_that_counts_on_the_device_can_be_captured() -> None:
    task = on_a_gpu(TinyTraining(linear(1.0), [torch.ones(1, 1)]))
    task.optimizer = torch.optim.Adam(task.model.parameters())
    for group in task.optimizer.param_groups:
        group["capturable"] = True
    task.run = lambda *_: None
    assert prepare(task, "cuda-graph").compilations() == 0


def test_an_inference_in_amp_fp16_can_be_captured(cuda: list[str]) -> None:
    """It has no use for the loss scaler that its arithmetic brings."""
    task = TinyInference(linear(2.0), torch.ones(1, 1), arithmetic_of("amp-fp16", CPU))
    task.arithmetic = Arithmetic(GPU, scaler=task.arithmetic.scaler)
    prepare(task, "cuda-graph")
    assert cuda[-1] == "end capture"
    assert task.seen[0].item() == 2

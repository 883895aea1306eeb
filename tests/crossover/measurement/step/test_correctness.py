"""The numerical check: right answers pass in every precision, planted wrong ones do not."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from crossover.config.studies import Cell
from crossover.config.words import PRECISIONS
from crossover.measurement.step.correctness import checked_rows, compare_with_reference, relative_error
from crossover.measurement.step.judgement import ROUNDING, Answer, Errors
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_model, build_task
from tiny_tasks import CPU, FP32, TinyInference, TinyTraining, linear, mean_output


def tensors(*values: float) -> list[torch.Tensor]:
    return [torch.tensor([value]) for value in values]


@pytest.mark.parametrize(
    ("ours", "exact", "error"),
    [
        (tensors(3.0, 4.0), tensors(3.0, 4.0), 0.0),
        (tensors(3.0, 4.5), tensors(3.0, 4.0), 0.1),  # 0.5 of 5: several tensors are one vector
        (tensors(0.0), tensors(2.0), 1.0),
        (tensors(-2.0), tensors(2.0), 2.0),
        (tensors(0.0), tensors(0.0), 0.0),
        (tensors(1e-30), tensors(0.0), math.inf),
        (tensors(math.inf), tensors(1.0), math.nan),
        (tensors(math.nan), tensors(1.0), math.nan),
        ([], [], None),
        ([torch.zeros(0)], [torch.zeros(0)], None),
    ],
)
def test_relative_error_by_hand(ours: list[torch.Tensor], exact: list[torch.Tensor], error: float | None) -> None:
    assert relative_error(ours, exact) == pytest.approx(error, nan_ok=True)


@pytest.fixture
def data() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {
        "features": torch.randn(300, 2, generator=random),
        "labels": torch.randint(0, 2, (300,), generator=random),
    }


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "tf32"])
@pytest.mark.parametrize(
    ("workload", "protocol", "size"),
    [("disc_mlp", "resident", 8), ("higgs_mlp", "resident", 100), ("higgs_mlp", "as_published", 100)],
)
def test_the_shipped_workloads_are_right_in_every_precision(
    data: dict[str, torch.Tensor], workload: str, protocol: str, size: int, precision: str
) -> None:
    torch.manual_seed(2)
    cell = Cell("study", workload, protocol, 100, precision, "eager", size, "cpu")
    task = build_task(cell, data, arithmetic_of(precision, CPU))
    for _ in range(3):
        task.step()
    answer = compare_with_reference(task, lambda: build_model(cell), precision)
    assert answer == Answer(answer.errors)
    assert set(answer.errors) == {"result", "gradient"}
    assert (answer.errors["gradient"] == 0) is (precision == "fp64")
    task.step()


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))


def squared(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (model(inputs).square().mean(),)


def checked(
    wrong: Callable[[nn.Module], nn.Module] = lambda right: right,
    precision: str = "fp32",
    claimed: str | None = None,
    right: Callable[[], nn.Module] = model,
    **options: Any,
) -> Answer:
    """What is said of a training whose model is made wrong while the reference's is not."""
    torch.manual_seed(0)
    batch = options.pop("batch", torch.randn(ROWS, 4))
    task = TinyTraining(wrong(right()), [batch], arithmetic_of(precision, CPU), **{"forward": squared, **options})
    return compare_with_reference(task, right, claimed or precision)


def is_right(answer: Answer) -> bool:
    return bool(answer.errors) and answer.wrong is answer.unchecked is None


def test_a_right_answer_passes() -> None:
    assert is_right(checked())


def with_forward(forward: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[nn.Module], nn.Module]:
    """Passes what a model gives through `forward`; its weights keep their names."""

    def change(right: Any) -> nn.Module:
        right.register_forward_hook(lambda _module, _inputs, outputs: forward(outputs))
        return right

    return change


def test_a_model_that_draws_numbers_of_its_own_is_unchecked() -> None:
    """Its scatter must not pass for what rounding does."""
    own = np.random.default_rng(3)

    def noisy() -> nn.Module:
        return with_forward(lambda outputs: outputs * own.random())(model())

    assert checked(right=noisy).unchecked == "two runs differ in double precision: the model draws numbers of its own"


def test_a_result_times_1_5_is_found() -> None:
    for precision in PRECISIONS:
        answer = checked(with_forward(lambda outputs: outputs * 1.5), claimed=precision)
        assert answer.errors["result"] == pytest.approx(1.25, rel=1e-4)  # of squares: 1.5^2 - 1
        assert "result is off by 1.2 of its norm" in str(answer.wrong)


ROWS = Task.checked_rows


class WrongBackward(torch.autograd.Function):
    """Passes values on as they are and gradients by half."""

    @staticmethod
    def forward(_: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient / 2


def test_a_wrong_gradient_of_a_right_result_is_found() -> None:
    answer = checked(with_forward(WrongBackward.apply))
    assert answer.errors["result"] == pytest.approx(0, abs=1e-6)
    assert answer.errors["gradient"] == pytest.approx(0.5, rel=1e-4)
    assert "gradient is off by 0.5 of its norm, where rounding explains" in str(answer.wrong)


@pytest.mark.parametrize(
    ("ran", "claimed"),
    [("bf16", "fp32"), ("amp-bf16", "fp32"), *((ran, "fp64") for ran in ("fp32", "bf16", "fp16", "amp-fp16"))],
)
def test_a_lower_precision_than_claimed_is_found(ran: str, claimed: str) -> None:
    assert is_right(checked(precision=ran))
    assert checked(precision=ran, claimed=claimed).wrong is not None


def test_a_nan_is_found_unless_the_exact_answer_is_one() -> None:
    assert "result is not finite" in str(checked(with_forward(lambda outputs: outputs / 0)).wrong)
    answer = checked(batch=torch.full((ROWS, 4), math.nan))
    assert answer == Answer(unchecked="in double precision, too, the answer is not finite")


def test_an_unused_parameter_has_no_gradient_and_is_no_error() -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 1), nn.Linear(4, 1)
            self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.used(inputs) * self.frozen

    task = TinyTraining(Partly(), [torch.randn(8, 4)], forward=squared)
    answer = compare_with_reference(task, Partly, "fp32")
    assert is_right(answer)
    assert "gradient" in answer.errors


class WithDropout(nn.Module):
    """Dropout in each of the places where torch has it."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.4, batch_first=True)
        self.recurrent = nn.GRU(4, 4, 2, dropout=0.3, batch_first=True)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(self.drop(inputs.unsqueeze(1).expand(-1, 3, -1)))
        return self.recurrent(hidden)[0]


def test_dropout_is_no_error_and_is_there_again_afterwards() -> None:
    task = TinyTraining(WithDropout(), [torch.randn(16, 4)], forward=squared)
    answer = compare_with_reference(task, WithDropout, "fp32")
    assert is_right(answer)
    assert answer.errors["gradient"] > 0
    found: Any = task.model
    assert (found.drop.p, found.encoder.dropout1.p, found.encoder.self_attn.dropout) == (0.5, 0.4, 0.4)
    assert found.recurrent.dropout == 0.3
    assert all(module.training for module in found.modules())


class Stack(nn.Module):
    """Linear layers, each with batch norm and ReLU, in which rounding grows, or with dropout of whole rows."""

    def __init__(self, layers: int, *, stochastic: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(16) for _ in range(layers))
        self.stochastic = stochastic

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            values = (
                checkpoint(self.block, layer, norm, values, use_reentrant=False)
                if self.stochastic
                else (functional.relu(norm(layer(values))))
            )
        return values

    def block(self, layer: nn.Module, norm: nn.Module, values: torch.Tensor) -> torch.Tensor:
        """As timm's DropPath and torchvision's StochasticDepth."""
        new = functional.dropout(norm(layer(values)), 0.3, self.training)
        kept = new.new_empty((len(new), 1)).bernoulli_(0.5)
        return values + new * kept / 0.5


def test_a_model_in_which_rounding_grows_is_right() -> None:
    """Fresh batch norms: of 60 seeds with 32 layers, gradients were off by up to 0.17, and all found right."""
    errors = []
    for seed in range(3):
        torch.manual_seed(seed)
        task = TinyTraining(Stack(16), [torch.randn(ROWS, 16)], forward=squared)
        answer = compare_with_reference(task, lambda: Stack(16), "fp32")
        assert is_right(answer)
        errors.append(answer.errors["gradient"])
    assert max(errors) > 3 * ROUNDING["fp32"]  # so that noise was needed


def test_cancellation_within_the_model_is_right() -> None:
    """1000.1 is off by 6e-5 in fp32, which is 6e-4 of the 0.1 that is left of it; no weight shows that."""

    def cancelled(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (((model(inputs) + 1000) - 1000).square().mean(),)

    answer = checked(forward=cancelled)
    assert is_right(answer)
    assert answer.errors["gradient"] > 3 * ROUNDING["fp32"]


def test_a_stochastic_model_is_right_and_its_faults_are_found() -> None:
    options: dict[str, Any] = {"right": lambda: Stack(2, stochastic=True), "batch": torch.randn(ROWS, 16)}
    for precision in ("fp32", "bf16"):
        assert is_right(checked(precision=precision, **options))
    assert checked(with_forward(lambda outputs: outputs * 1.1), **options).wrong is not None


class Tf32(TorchDispatchMode):
    """Rounds the fp32 inputs of products to the ten bits that TF32 keeps."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "mm" in func.__name__:
            args = [a.view(torch.int32).add(1 << 12).bitwise_and(-1 << 13).view(torch.float32) for a in args]
        return func(*args, **(kwargs or {}))


def test_tf32_in_the_place_of_fp32_is_found() -> None:
    def wrong(module: Any) -> nn.Module:
        layers = [layer for layer in module if isinstance(layer, nn.Linear)]
        for layer in layers:
            layer.forward = partial(product, layer)
        return module

    def product(layer: nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
        with Tf32():
            return inputs.contiguous() @ layer.weight.t().contiguous() + layer.bias

    answer = checked(wrong)
    assert 1e-5 < answer.errors["gradient"] < 1e-3
    assert "look for what computes otherwise" in str(answer.wrong)


def test_wrong_is_only_what_is_wrong_twice() -> None:
    """The reference's weight is 2 at first and 3 then, ours is what was loaded, or always 3."""
    models: list[float] = []

    def fresh() -> nn.Module:
        models.append(2.0 if not models else 3.0)
        return linear(models[-1])

    task = TinyTraining(linear(3.0), [torch.ones(2, 1)])
    load = task.model.load_state_dict
    task.model.load_state_dict = lambda _state: load(linear(3.0).state_dict())  # type: ignore[assignment, method-assign]
    assert compare_with_reference(task, fresh, "fp32") == Answer({"result": 0.0, "gradient": 0.0})
    assert models == [2.0, 3.0]
    assert compare_with_reference(task, lambda: linear(2.0), "fp32").wrong is not None


def test_a_step_that_differs_from_run_to_run_is_undecided() -> None:
    runs = count(2)

    def forward(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(inputs).mean() * (next(runs) if inputs.dtype == torch.float32 else 1),)

    answer = checked(forward=forward)
    assert answer.wrong is None
    assert "two runs of the step differ" in str(answer.unchecked)


@pytest.mark.parametrize(
    ("forward", "execution", "reason"),
    [
        (functional.gumbel_softmax, "eager", "draws random numbers that the reference cannot draw as well"),
        (functional.dropout, "compile", "draws random numbers that the reference cannot draw as well"),
        (lambda outputs: outputs @ torch.ones(1, 1), "eager", "the comparison with double precision failed: Runtime"),
        (lambda outputs: outputs.view(2 * ROWS, 1), "eager", "the comparison with double precision failed: Runtime"),
    ],
)
def test_what_cannot_be_compared_says_why(
    forward: Callable[[torch.Tensor], torch.Tensor], execution: str, reason: str
) -> None:
    task = TinyTraining(model(), [torch.randn(2 * ROWS, 4)], forward=lambda m, inputs: (forward(m(inputs)).mean(),))
    answer = compare_with_reference(task, model, "fp32", execution)
    assert (answer.errors, answer.wrong) == ({}, None)
    assert reason in str(answer.unchecked)


def test_a_workload_can_leave_the_check_out() -> None:
    task = TinyTraining(model(), [torch.randn(8, 4)])
    task.not_comparable = "it samples"
    answer = compare_with_reference(task, lambda: pytest.fail("built"), "fp32")
    assert answer == Answer(unchecked="the workload leaves the check out: it samples")


def test_buffers_are_left_as_they_were() -> None:
    """Else each run of a model that keeps a state would begin with another."""
    task = TinyTraining(Stack(2), [torch.randn(ROWS, 16)], forward=squared)
    assert is_right(compare_with_reference(task, lambda: Stack(2), "fp32"))
    assert all(torch.equal(now, fresh) for now, fresh in zip(task.model.buffers(), Stack(2).buffers(), strict=True))


def test_fresh_weights_are_left_and_no_gradients() -> None:
    fresh: list[nn.Module] = []

    def fresh_model() -> nn.Module:
        fresh.append(model())
        return fresh[-1]

    task = TinyTraining(model(), [torch.randn(8, 4)], forward=squared)
    before = copy.deepcopy(task.model.state_dict())
    task.step()
    compare_with_reference(task, fresh_model, "fp32")
    for name, weights in task.model.state_dict().items():
        assert torch.equal(weights, fresh[0].state_dict()[name].float())
        assert not torch.equal(weights, before[name])
    assert all(parameter.grad is None for parameter in task.model.parameters())


def test_no_more_rows_are_compared_than_a_cpu_can_do_twice() -> None:
    seen: list[int] = []

    def forward(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen.append(len(inputs))
        return squared(model, inputs)

    checked(batch=torch.randn(1000, 4), forward=forward)
    assert seen == [ROWS, ROWS]


def test_an_inference_compares_its_outputs() -> None:
    task = TinyInference(linear(1.0), torch.tensor([[3.0], [4.0]]))
    task.model.register_forward_hook(lambda _module, _inputs, outputs: outputs + torch.tensor([[0.0], [1.0]]))
    answer = compare_with_reference(task, lambda: linear(2.0), "fp32")
    assert answer.errors == {"result": pytest.approx(0.1)}  # 6, 9 for 6, 8: 1 of 10
    assert not task.seen


def inference_of(
    batch: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor] = lambda outputs: outputs
) -> tuple[Errors, list[int], list[int]]:
    """Errors of an inference with the weight 2 whose outputs are changed; rows that our model and the reference got."""
    ours: list[int] = []
    exact: list[int] = []

    def model(seen: list[int]) -> nn.Module:
        layer = linear(2.0)
        layer.register_forward_hook(lambda _module, inputs, _outputs: seen.append(len(inputs[0])))
        return layer

    task = TinyInference(with_forward(forward)(model(ours)), batch)
    return compare_with_reference(task, lambda: model(exact), "fp32").errors, ours, exact


def test_an_inference_runs_the_whole_batch_that_was_timed_and_compares_some_rows() -> None:
    errors, ours, exact = inference_of(torch.ones(1000, 1))
    assert (ours, exact) == ([1000], [ROWS])
    assert errors == {"result": 0.0}


@pytest.mark.parametrize(
    ("rows", "most", "chosen"),
    [(9, 3, [0, 4, 8]), (1000, 4, [0, 333, 666, 999]), (3, 32, [0, 1, 2]), (1, 32, [0]), (7, 1, [0])],
)
def test_the_rows_compared_are_spread_over_the_batch(rows: int, most: int, chosen: list[int]) -> None:
    assert checked_rows(rows, most).tolist() == chosen


def test_no_row_of_a_large_batch_is_compared_twice() -> None:
    chosen = checked_rows(2**24 + 1, 32).tolist()  # more rows than fp32 tells apart
    assert (chosen[0], chosen[-1], len(set(chosen))) == (0, 2**24, 32)


def test_each_row_is_compared_with_its_own() -> None:
    """Inputs that differ from row to row: a check that paired other rows would find all of them wrong."""
    errors, _, _ = inference_of(torch.arange(1.0, 1001).unsqueeze(1))
    assert errors["result"] == 0


@pytest.mark.parametrize(("row", "found"), [(0, True), (516, True), (999, True), (1, False)])
def test_one_wrong_row_of_those_compared_is_found(row: int, found: bool) -> None:
    """Outputs of 2 and one of 4: an error of 2 in a vector of the norm 2 sqrt(32). Of 1000 rows each 999 / 31st is
    compared: the first, the 17th, which is row 515.6, rounded 516, and the last.
    """
    wrong = torch.ones(1000, 1)
    wrong[row] = 2
    errors, _, _ = inference_of(torch.ones(1000, 1), lambda outputs: outputs * wrong)
    assert errors["result"] == pytest.approx(1 / math.sqrt(ROWS) if found else 0)


def test_a_fault_of_the_whole_batch_alone_is_found() -> None:
    """As of a kernel that is chosen for large batches."""
    errors, _, _ = inference_of(torch.ones(1000, 1), lambda outputs: outputs * (3 if len(outputs) == 1000 else 1))
    assert errors["result"] == pytest.approx(2)


def test_the_check_of_an_inference_compiles_nothing_anew() -> None:
    graphs: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(len(inputs))
        return graph.forward

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.5), nn.Linear(4, 1))

    task = TinyInference(model(), torch.randn(100, 1))
    compiled: Any = task.model
    compiled.forward = torch.compile(compiled.forward, dynamic=False, backend=backend)
    task.step()
    assert len(graphs) == 1
    assert is_right(compare_with_reference(task, model, "fp32", "compile"))
    task.step()
    assert len(graphs) == 1
    task.resident = (torch.randn(32, 1),)
    task.step()
    assert len(graphs) == 2  # so another batch size would have been seen


def large(factor: float) -> Callable[..., tuple[torch.Tensor, ...]]:
    return lambda model, inputs: (mean_output(model, inputs)[0] * factor,)


def test_scaled_as_the_step_scales_and_halved_where_that_overflows() -> None:
    for factor in (2.0**-25, 1.0, 1000.0):  # too small for fp16 without the scaler; within it; too large for 2^16
        task = TinyTraining(linear(1.0), [torch.ones(1, 1)], arithmetic_of("amp-fp16", CPU), large(factor))
        assert compare_with_reference(task, lambda: linear(3.0), "amp-fp16") == Answer({"result": 0.0, "gradient": 0.0})


def test_where_the_reference_does_not_fit_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = 4 * 8 * (4 * 64 + 64 + 64 + 1)
    for available, compared in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda bytes_=available: SimpleNamespace(available=bytes_))
        task = TinyTraining(model(), [torch.randn(8, 4)], FP32, squared)
        answer = compare_with_reference(task, model, "fp32")
        assert is_right(answer) is compared
        assert ("do not fit into the host's free memory" in str(answer.unchecked)) is not compared

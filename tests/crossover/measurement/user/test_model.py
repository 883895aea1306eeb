"""A user's model: what the user's function may return, and the task built from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch.nn import functional

from crossover.config.models import Table, read_model
from crossover.config.studies import Cell
from crossover.errors import InvalidError, UnsupportedError, UserError
from crossover.measurement import Tell, ignore
from crossover.measurement.step.conditions import changes, read_switches, set_switches
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.endings import is_mistake
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.user.model import UserModel, as_user_error
from user_errors import error_line

CPU = Arithmetic(torch.device("cpu"))
HEAD = """
import torch
from torch import nn
from crossover import Step; from tiny_tasks import Applied
"""

Build = Callable[..., Task]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(
        text: str, protocol: str = "resident", precision: str = "fp32", tell: Tell = ignore, **changes: Any
    ) -> Task:
        file = tmp_path / f"net{len(list(tmp_path.iterdir()))}.py"
        file.write_text(HEAD + dedent(text))
        model = read_model(f"{file}:build", tmp_path, "here")
        cell = Cell("s", "model", protocol, 4, precision, "eager", 8, "cpu", model=replace(model, **changes))
        arithmetic = arithmetic_of(precision, CPU.device)
        task = UserModel(cell, tell).build(cell, {}, arithmetic)
        task.build_model = lambda: UserModel(cell).build_model(8)
        task.build_again = lambda: UserModel(cell).build(cell, {}, arithmetic)
        return task

    return make


@pytest.mark.parametrize(
    "text",
    ["Torch not compiled with CUDA enabled", "Found no NVIDIA driver on your system.", "No CUDA GPUs are available"],
)
def test_a_model_built_on_a_missing_gpu_is_told_to_be_built_on_the_cpu(build: Build, text: str) -> None:
    line = error_line(lambda: build(f"def build(size):\n    raise AssertionError({text!r})"))
    assert f"AssertionError: {text}; build on the CPU; Crossover moves the model to each device" in line


LINEAR = "def build():\n    return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), {})"
CLASSES = """
def build(size, batch_size):
    return nn.Linear(3, size), torch.randn(batch_size, 3), torch.randint(size, (batch_size,))
"""


ORDERED = """
import numpy as np; from itertools import count; from torch.nn.functional import mse_loss
NUMBERS = count(3)
class Ordered(nn.Module):
    def __init__(self, order, width=3):
        super().__init__()
        self.order, self.first, self.last = order, nn.Linear(8, width), None
    def forward(self, x):
        self.hidden = self.first(x[:, self.order]).tanh()
        if self.last is None:
            self.last = nn.Linear(self.hidden.shape[1], 1)
        return self.last(self.hidden)
def build(size, batch_size):
    x, y = torch.randn(batch_size, 8), torch.randn(batch_size, 1)
"""
WITH_LOSS = (
    "model = Ordered(torch.arange(8))\n    return Step(model=model, inputs=x, targets=y, loss=lambda out, y: {})"
)


@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return Ordered(torch.randperm(8)), x, y", None),
        ("return Ordered(np.random.permutation(8)), x, y", None),
        ("shift = torch.rand(3); return Applied(lambda m, x: m.a(x) * shift, a=nn.Linear(8, 3)), x", None),
        (WITH_LOSS.format("mse_loss(out, y) + sum(p.square().sum() for p in model.parameters())"), None),
        (WITH_LOSS.format("mse_loss(out, y) + model.hidden.abs().mean()"), None),
        ("return Ordered(np.roll(np.arange(8), next(NUMBERS))), x, y", "computes different results with the same"),
        ("return Ordered(torch.arange(8), next(NUMBERS)), x, y", "has different weights: first.bias"),
        (
            "return Applied(lambda m, x: m.a(x) @ torch.ones(3, 1, dtype=torch.float32), a=nn.Linear(8, 3)), x, y",
            "the same step fails on the CPU in double precision",
        ),
    ],
)
def test_a_model_is_compared_with_another_build_from_the_same_seed(
    build: Build, mode: str, body: str, reason: str | None
) -> None:
    """A built model may keep random choices, leave tensors for its loss, and make layers in its first step."""
    task = build(f"{ORDERED}    {body}", mode=mode)
    for _ in range(3):
        task.step()
    answer = compare_with_reference(task, task.build_model, "fp32")
    assert answer.wrong is None
    if reason is None:
        assert answer.unchecked is None
        assert answer.errors["result"] < 1e-5
    else:
        assert reason in str(answer.unchecked)
        assert "Error" not in str(answer.unchecked)


@pytest.mark.parametrize(("mode", "parameters"), [("train", 2), ("infer", 2 + 3)])
def test_frozen_weights_count_as_parameters_of_an_inference(build: Build, mode: str, parameters: int) -> None:
    known: dict[str, Any] = {}
    text = (
        "first = nn.Linear(2, 1).requires_grad_(False); return nn.Sequential(first, nn.Linear(1, 1)), torch.ones(4, 2)"
    )
    build(f"def build():\n    {text}", mode=mode, tell=lambda message: known.update(message.get("known", {})))
    assert known == {"parameters": parameters}


def test_a_tuple_trains_by_cross_entropy(build: Build) -> None:
    task = build(CLASSES)
    features, labels = task.next_inputs()
    (loss,) = task.forward(task.model, features, labels)
    assert torch.equal(loss, functional.cross_entropy(task.model(features), labels))
    before = task.model.weight.clone()
    task.step()
    assert not torch.equal(before, task.model.weight)
    assert (task.batched, task.resident[0].shape) == (True, (4, 3))


def test_dicts_and_nested_inputs_reach_the_model_unchanged(build: Build) -> None:
    task = build(
        """
        def forward(net, pair, scale, flag=None):
            assert flag == "yes"
            return net.weight * scale * (pair[0] + pair[1])
        def build():
            net = Applied(forward, weight=nn.Parameter(torch.ones(())))
            return net, {"pair": (torch.ones(4, 2), torch.ones(4, 2)), "scale": torch.tensor(3.0), "flag": "yes"}
        """
    )
    (loss,) = task.forward(task.model, *task.next_inputs())
    assert loss.item() == 36  # without targets the mean square of the output


LOADED = """
from torch.utils.data import TensorDataset
def build(size, batch_size):
    return nn.Linear(3, 10), TensorDataset(torch.randn(9, 3), torch.arange(9))
"""


def test_a_dataset_is_loaded_batch_by_batch_or_its_first_batch_is_resident(build: Build) -> None:
    loaded, resident = build(LOADED, "loaded"), build(LOADED)
    seen = [tuple(loaded.next_inputs()[1].tolist()) for _ in range(4)]
    assert all(len(set(batch)) == 4 for batch in seen)
    assert len(set(seen)) > 1
    assert torch.equal(resident.next_inputs()[0], resident.next_inputs()[0])
    loaded.step()


class TestTables:
    NET = "def build(size, batch_size):\n    return nn.Linear(2, size)"

    @pytest.fixture
    def table(self, tmp_path: Path) -> Table:
        (tmp_path / "samples.csv").write_text("a,b,label\n" + "".join(f"{row},1,{row % 8}\n" for row in range(9)))
        return Table(str(tmp_path / "samples.csv"), "label", ("a", "b"))

    def test_the_model_alone_is_trained_on_them(self, build: Build, table: Table) -> None:
        task = build(self.NET, "loaded", table=table)
        inputs, targets = task.next_inputs()
        assert torch.equal(inputs[:, 0].long() % 8, targets)
        assert inputs.shape == (4, 2)
        (loss,) = task.forward(task.model, inputs, targets)
        assert torch.equal(loss, functional.cross_entropy(task.model(inputs), targets))

    def test_a_model_with_too_few_outputs_is_one_line(self, build: Build, table: Table) -> None:
        """All classes of the table count, not only those in the first batch."""
        task = build("def build(size):\n    return nn.Linear(2, 7)", table=table)
        with pytest.raises(UserError, match=r"'label' has 8 different whole numbers.* but the model has 7 outputs"):
            task.step()


def test_a_default_size_that_the_function_rejects_is_unsupported(build: Build) -> None:
    text = "def build(size):\n    assert size < 8\n    return nn.Linear(3, size), torch.ones(4, 3)"
    with pytest.raises(UnsupportedError, match=r"line 6: build\(8\) fails: AssertionError"):
        build(text, may_refuse=True)
    with pytest.raises(UserError, match="ZeroDivisionError"):
        build("def build(size):\n    return 1 / 0", may_refuse=True)
    task = build("def build(size):\n    return nn.Linear(3, size), torch.ones(4, 5)", may_refuse=True)
    with pytest.raises(UnsupportedError, match="its step fails"):
        task.step()


def test_a_batch_whose_rows_are_not_samples_is_compared_whole(build: Build) -> None:
    """The edges of a graph, for example, have two rows that are not samples."""
    task = build(
        """
        def forward(net, nodes, edges):
            return net.layer(nodes).index_add(0, edges[0], nodes[edges[1]])
        def build(size, batch_size):
            return Applied(forward, layer=nn.Linear(3, 3)), (torch.randn(4, 3), torch.randint(4, (2, 7)))
        """
    )
    assert not task.batched
    assert task.checked_rows > 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build(size):\n    raise KeyError('no')", "line 6: build(8) fails: KeyError: 'no'"),
        ("def build(size):\n    return nn.Linear(1, 1)", "returns a Linear; allowed: (model, inputs)"),
        (
            "def build(size):\n    return nn.Linear(1, 1), torch.ones(4, 1).numpy()",
            "returns a NumPy array (torch.from_numpy makes a tensor of it) as the inputs; allowed: a tensor, a tuple",
        ),
        ("def build(size):\n    return nn.ReLU(), torch.ones(4)", "has no parameters to train; use mode: infer"),
        (
            "class Data(list, torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        return 1 / 0\n"
            "def build(): return nn.Linear(1, 1), Data(range(9))",
            "line 7: loading its data fails: ZeroDivisionError",
        ),
        (
            "def build():\n    return nn.Linear(3, 1), torch.ones(5, 3)",
            "its batch has 5 rows, but the batch size is 4; take batch size 5, or give the number of samples",
        ),
        (LINEAR.format("samples=lambda inputs, targets: 1 / 0"), "the count of its samples fails"),
        (LINEAR.format("optimizer=lambda: 1"), "its optimizer fails: TypeError"),
        (
            LINEAR.format("optimizer=torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=1)"),
            "its optimizer has none of the model's parameters; make it from them",
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(build: Build, text: str, message: str) -> None:
    assert message in error_line(lambda: build(text))


def test_a_builder_that_fails_on_a_name_tells_how_numbers_are_given(build: Build) -> None:
    text = "def build(size): return nn.Linear(size, 1), torch.ones(4, 1)"
    line = error_line(lambda: build(text, names=tuple("abcdefgh")))
    assert "build('h') fails (its sizes are names; for numbers: sizes=[64,256]): TypeError: " in line


def test_a_failing_step_is_the_users_mistake_with_the_error_as_cause(tmp_path: Path) -> None:
    model = read_model("a:b", tmp_path, "here")
    for error in (RuntimeError("\"conv\" not implemented for 'Half'"), KeyError("weights")):
        with pytest.raises(UserError, match="its step fails") as raised, as_user_error(model):
            raise error
        assert raised.value.__cause__ is error
    for result in (MemoryError(), UnsupportedError("no graph"), UserError("own words")):
        with pytest.raises(type(result)) as raised, as_user_error(model):
            raise result
        assert raised.value is result


OUTPUTS = """
class Output:
    def __init__(self, scores):
        self.scores, self.name = scores, "a"
def forward(net, inputs):
    scores = net.layer(inputs)
    return FORM
def build(size, batch_size):
    return Applied(forward, layer=nn.Linear(3, size)), torch.randn(batch_size, 3)
"""


@pytest.mark.parametrize(
    ("form", "shapes"),
    [
        ("scores.argmax(1)", [(4,)]),
        ("{'logits': scores, 'extra': [scores.sum(), None, scores > 0]}", [(4, 8), (), (4, 8)]),
        ("Output(scores)", [(4, 8)]),
        ("'no tensor'", []),
    ],
)
def test_an_inference_returns_all_outputs_from_any_container(
    build: Build, form: str, shapes: list[tuple[int, ...]]
) -> None:
    task = build(OUTPUTS.replace("FORM", form), mode="infer")
    task.step()
    assert [tuple(output.shape) for output in task.forward(task.model, *task.next_inputs())] == shapes


class TestPrecision:
    COMPLEX = """
    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([1 + 2j, 3 - 4j]))
            self.register_buffer("places", torch.arange(2))
        def forward(self, signal):
            return (signal * self.weight[self.places]).imag
    def build():
        return Spectral(), torch.ones(4, 2)
    """

    @pytest.mark.parametrize(
        ("precision", "dtype"), [("fp64", torch.complex128), ("fp32", torch.complex64), ("bf16", torch.complex64)]
    )
    def test_complex_weights_stay_complex(self, build: Build, precision: str, dtype: torch.dtype) -> None:
        task = build(self.COMPLEX, precision=precision)
        assert (task.model.weight.dtype, task.model.places.dtype) == (dtype, torch.int64)
        assert task.model.weight.tolist() == [1 + 2j, 3 - 4j]
        (loss,) = task.forward(task.model, *task.next_inputs())
        assert loss.item() == 10  # (2^2 + 4^2) / 2

    def test_tied_weights_stay_tied_and_in_the_optimizer(self, build: Build) -> None:
        task = build(
            """
            def build():
                model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
                model[1].weight = model[0].weight
                adagrad = torch.optim.Adagrad(model.parameters(), lr=0.5)  # which makes its state at once
                return Step(model=model, inputs=torch.ones(4, 3), optimizer=adagrad)
            """,
            precision="fp64",
        )
        (weight,) = task.model.parameters()
        assert task.model[0].weight is task.model[1].weight is weight
        (sums,) = (state["sum"] for state in task.optimizer.state.values())
        assert (weight.dtype, sums.dtype) == (torch.float64, torch.float64)
        before = weight.detach().clone()
        task.step()
        assert not torch.equal(weight, before)

    DOUBLE = "def build():\n    return nn.Linear(3, 1).double(), torch.ones(4, 3).double()"
    BY_DEFAULT = """
    torch.set_default_dtype(torch.float64)
    def build():
        return nn.Linear(3, 1), torch.ones(4, 3)
    """

    @pytest.mark.parametrize("text", [DOUBLE, BY_DEFAULT, DOUBLE.replace(".double(),", ",")])
    def test_a_model_in_double_precision_is_noted_if_it_is_cast(self, build: Build, text: str) -> None:
        try:
            task = build(text)
            whose = "its inputs are" if "double()," not in text and "set_default" not in text else "the model is"
            note = f"{whose} in float64 and measured in fp32; precisions: [fp64] measures it as it is"
            assert (task.notes, task.flags, task.switches) == ((note,), ("cast",), {})
            assert torch.get_default_dtype() == task.model.weight.dtype == torch.float32
            task.step()
            exact = build(text, precision="fp64")
            assert (exact.notes, exact.flags, exact.model.weight.dtype) == ((), (), torch.float64)
            by_default = "set_default" in text
            assert exact.switches == ({"default_dtype": "torch.float64"} if by_default else {})
            assert torch.get_default_dtype() == (torch.float64 if by_default else torch.float32)
        finally:
            torch.set_default_dtype(torch.float32)


class TestCachedModels:
    TEXT = """
    from functools import cache
    @cache
    def load():
        return nn.Linear(3, 1)
    def build():
        model = load()
        return Step(model=model, inputs=torch.ones(4, 3), optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    """

    def test_are_copied_with_their_optimizers(self, build: Build) -> None:
        task = build(self.TEXT)
        fresh = task.build_model()
        assert fresh is not task.model
        fresh.double()
        task.step()
        assert task.model.weight.dtype == torch.float32
        again = task.build_again()
        before = again.model.weight.detach().clone()
        again.step()
        assert not torch.equal(before, again.model.weight)  # its optimizer has its own weights
        assert again.model.weight is not task.model.weight


class TestLosses:
    def test_a_loss_with_tensors_is_cast_with_the_model(self, build: Build) -> None:
        task = build(
            """
            def build():
                loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
                return Step(model=nn.Linear(3, 2), inputs=torch.ones(4, 3), targets=torch.arange(4).clamp(max=1),
                            loss=loss)
            """,
            precision="fp64",
        )
        assert {tensor.dtype for tensor in task.model.state_dict().values()} == {torch.float64}
        single = task.build_model()
        single.load_state_dict(task.model.state_dict())
        features, labels = task.next_inputs()
        (loss,), (rounded,) = task.forward(task.model, features, labels), task.forward(single, features.float(), labels)
        log = task.model(features)[0].log_softmax(0)
        assert loss.item() == pytest.approx(-(log[0] + 9 * log[1]).item() / 10)
        assert rounded.item() == pytest.approx(loss.item(), rel=1e-6)

    @pytest.mark.parametrize("inputs", ["images", "(images,)", "{'images': images}"])
    def test_a_list_of_dicts_is_the_last_argument(self, build: Build, inputs: str) -> None:
        task = build(
            f"""
            class Detector(nn.Linear):
                def forward(self, images, targets):
                    wanted = sum(target["boxes"].sum() for target in targets)
                    return {{"boxes": super().forward(images[0]).sum() * wanted}}
            def build():
                images = [torch.ones(3) for _ in range(4)]
                return Detector(3, 1), {inputs}, [{{"boxes": torch.zeros(2)}} for _ in range(4)]
            """
        )
        assert task.forward(task.model, *task.next_inputs())[0].item() == 0


CHANGING = """
def build():
    def loss(output, targets):
        {loss}
        return functional.cross_entropy(output, targets)
    def forward(net, x):
        {forward}
        return net.head(x if torch.is_tensor(x) else x["x"])
    def run(model, inputs, targets, optimizer):
        {run}
    net = Applied(forward, head=nn.Linear(3, 6))
    return Step(model=net, inputs={inputs}, targets=torch.tensor([1, 2, 3, 5]), {use})
"""


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ("targets", {"loss": "targets -= 1"}),
        ("inputs", {"forward": "x.sub_(0.5).div_(0.3)"}),
        ("inputs", {"run": "inputs.pop('unused')", "inputs": "{'x': torch.ones(4, 3), 'unused': torch.ones(4)}"}),
        ("inputs and targets", {"run": "inputs.zero_(); targets.zero_()"}),
        ("", {"forward": "x = x - 1", "loss": "targets = targets - 1"}),
        ("", {"forward": "x.clamp_(0, 1)", "loss": "targets = targets - 1"}),
    ],
)
def test_a_step_that_changes_its_batch_in_place_is_one_line(changed: str, parts: dict[str, str], build: Build) -> None:
    body = {"loss": "pass", "forward": "pass", "run": "pass", "inputs": "torch.ones(4, 3)", **parts}
    use = "run=run" if "run" in parts else "loss=loss"
    text = "from torch.nn import functional" + dedent(CHANGING.format(use=use, **body))
    task = build(text)
    task.step()
    if changed:
        line = error_line(task.check_batch)
        assert f"its step changes its {changed} in place, but each step gets the same batch" in line
    else:
        task.check_batch()
        task.step()


CACHING = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3)), nn.Linear(3, 2)
        self.seen = {{}}
        self.mask = None
    def by_sum(self, x):
        key = float(x.sum())
        if key not in self.seen:
            self.seen[key] = self.net(x)
        return self.seen[key]
    def by_shape(self, x):
        if x.shape not in self.seen:
            self.seen[x.shape] = self.many(x)
        return self.seen[x.shape]
    def many(self, x, layers=20):
        for _ in range(layers):
            x = self.net(x)
        return x
    def at_first(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return self.many(x, 1 if self.calls > 2 else 20)
    def in_part(self, x):
        key = float(x.sum())
        if key not in self.seen:
            self.seen[key] = self.net(x)
        return self.net(self.seen[key])
    def with_mask(self, x):
        if self.mask is None:
            self.mask = torch.stack([torch.ones(3) for _ in range(99)])[0].roll(1)
        return self.net(x * self.mask)
    def forward(self, x):
        return self.head(self.{}(x))
def build(size, batch_size):
    return Encoder(), torch.randn(batch_size, 3)
"""


@pytest.mark.parametrize(
    ("features", "wrong"),
    [("by_sum", True), ("in_part", True), ("with_mask", False), ("net", False)],
)
def test_a_model_that_remembers_its_batch_is_invalid(features: str, wrong: bool, build: Build) -> None:
    task = build(CACHING.format(features), mode="infer")
    task.step()
    if wrong:
        with pytest.raises(
            InvalidError,
            match=r"on a new batch it (runs \d+ operations of torch, on the same batch [234]|takes 816 FLOPs, .* 432);",
        ):
            task.check()
    else:
        assert task.check() is None


@pytest.mark.parametrize("features", ["by_shape", "at_first"])
def test_a_model_whose_later_calls_take_few_flops_is_invalid(features: str, build: Build) -> None:
    """A call of `net` takes 2 * 4 * (3 * 8 + 8 * 3) FLOPs, of the head 2 * 4 * 3 * 2."""
    task = build(CACHING.format(features), mode="infer")
    for _ in range(3):
        task.step()
    with pytest.raises(InvalidError, match=r"its first call takes 7\.73e\+03 FLOPs, a call after many (48|432);"):
        task.check()


def test_a_precision_that_a_model_sets_is_not_restored(build: Build) -> None:
    before = set_switches("fp32", torch.get_num_threads())
    text = LINEAR.format("").replace("return", 'torch.backends.cudnn.conv.fp32_precision = "tf32"; return')
    try:
        build(text, mode="infer")
        assert "cudnn.conv.fp32_precision changed from ieee to tf32" in str(changes(before, read_switches()))
    finally:
        set_switches("fp32", torch.get_num_threads())


RUNS = {
    "closure": """
        def run(model, inputs, targets, optimizer):
            update(model, inputs, teacher)
    """,
    "partial": """
        def step(second, model, inputs, targets, optimizer):
            update(model, inputs, second)
        run = partial(step, teacher)
    """,
    "method": """
        class Trainer:
            def __init__(self):
                self.second = teacher
            def run(self, model, inputs, targets, optimizer):
                update(model, inputs, self.second)
        run = Trainer().run
    """,
}
SECOND = """
from functools import partial
def update(model, inputs, second):
    (model(inputs) - second(inputs)).square().mean().backward()
    with torch.no_grad():
        second.weight.lerp_(model.weight, 0.5)
def build():
    model, teacher = nn.Linear(3, 1), nn.Linear(3, 1).requires_grad_(False)
    model.teacher = [teacher]
    {}
    return Step(model=model, inputs=torch.ones(4, 3), run=run)
"""


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_a_second_network_of_a_steps_own_run_is_converted(run: str, build: Build) -> None:
    task = build(SECOND.format(dedent(run).strip().replace("\n", "\n    ")), precision="bf16")
    (teacher,) = task.model.teacher
    expected = (teacher.weight + task.model.weight) / 2
    task.step()
    assert teacher.weight.dtype is task.model.weight.dtype is task.arithmetic.dtype
    assert torch.allclose(teacher.weight, expected, rtol=1e-2)


def test_a_tensor_that_is_not_moved_is_named_as_the_users_mistake(build: Build) -> None:
    text = """
        def build():
            model = nn.Linear(3, 1)
            shadow = {"weight": model.weight.detach().clone()}
            def run(model, inputs, targets, optimizer):
                shadow["weight"].lerp_(model.weight.detach(), 0.5)
            return Step(model=model, inputs=torch.ones(4, 3), run=run)
        """
    build(text).step()
    with pytest.raises(UserError, match="perhaps since the tensor shadow, used besides its arguments") as raised:
        build(text, precision="fp64").step()
    assert is_mistake(raised.value)  # and not a lack of the device or precision


def test_each_batch_has_its_own_lists_and_numbers(build: Build) -> None:
    """Lists, numbers and zero-dimensional tensors come from the current batch, not from the first."""
    task = build(
        """
        from torch.utils.data import DataLoader
        def forward(net, rows, names, count, scale):
            return net.weight * scale * count * len(names[0])
        def collate(items):
            first = items[0]
            scale = torch.tensor(float(first))
            return {"rows": torch.ones(4, 2), "names": ["x" * first] * 4, "count": first, "scale": scale}
        def build(size, batch_size):
            net = Applied(forward, weight=nn.Parameter(torch.ones(())))
            return net, DataLoader(range(1, 9), batch_size=4, collate_fn=collate)
        """,
        "loaded",
    )
    losses = [task.forward(task.model, *task.next_inputs())[0].item() for _ in range(3)]
    assert losses == [1, 5**3, 1]


class TestHost:
    TEXT = """
    from torch.nn.utils.rnn import pack_padded_sequence
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.GRU(3, 2, batch_first=True)
        def forward(self, words, lengths):
            if lengths.device.type != "cpu":
                raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor")
            return self.cells(pack_padded_sequence(words, lengths, batch_first=True))[1]
    def build():
        return Step(model=Net(), inputs=(torch.ones(4, 5, 3), torch.tensor([5, 3, 2, 1])), {})
    """

    def test_names_the_inputs_that_stay(self, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
        task = build(self.TEXT.format("host='lengths'"))
        task.step()
        assert len(task.resident) == 1
        monkeypatch.setattr(Arithmetic, "place", lambda _self, tensor: tensor.to("meta"))
        (words, lengths), _ = task.place(task.first)
        assert (words.device.type, lengths.device.type) == ("meta", "cpu")

    def test_is_advised_for_lengths_on_the_device(self, build: Build) -> None:
        task = build(self.TEXT.format(""))
        (words, lengths), _ = task.next_inputs()
        with pytest.raises(UserError, match=r"lengths must stay in host memory: name their argument in Step\(host="):
            task.run((words, lengths.to("meta")), None)


def test_lazy_modules_infer_their_shapes_first(build: Build) -> None:
    task = build(
        """
        def build():
            model = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d(), nn.LazyLinear(1))
            return Step(model=model, inputs=torch.ones(4, 3), optimizer=torch.optim.Adam)
        """
    )
    assert sum(parameter.numel() for parameter in task.model.parameters()) == 3 * 5 + 5 + 2 * 5 + 5 + 1
    assert (task.model.training, task.model[1].num_batches_tracked.item()) == (True, 0)
    task.step()


def test_layers_that_the_first_forward_pass_makes_are_trained_and_checked(build: Build) -> None:
    task = build(
        """
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = None
            def forward(self, x):
                if self.layer is None:
                    self.layer = nn.Linear(3, 1)
                return self.layer(x)
        def build():
            return Late(), torch.ones(4, 3)
        """
    )
    fresh = task.build_fresh()
    assert [parameter.shape for parameter in task.model.parameters()] == [(1, 3), (1,)]
    before = task.model.layer.weight.clone()
    assert torch.equal(fresh.model.layer.weight, before)
    task.step()
    assert not torch.equal(task.model.layer.weight, before)


class TestDerivatives:
    FIELD = """
    def forward(net, points):
        points = points if points.requires_grad else points.requires_grad_(True)
        return torch.autograd.grad(net.layer(points).square().sum(), points, create_graph=True)[0]
    def build():
        return Applied(forward, layer=nn.Linear(2, 1)), torch.rand(4, 2, requires_grad={})
    """

    @pytest.mark.parametrize("leaf", [True, False])
    def test_inputs_that_require_gradients_do_not_accumulate_them(self, build: Build, leaf: bool) -> None:
        task = build(self.FIELD.format(leaf))
        task.step()
        (points,) = task.resident
        assert points.is_leaf
        task.optimizer.param_groups[0]["lr"] = 0.0
        task.step()
        second = points.grad.clone()
        task.step()
        assert torch.equal(second, points.grad)

    def test_inference_runs_with_gradients_if_the_forward_pass_takes_derivatives(self, build: Build) -> None:
        task = build(self.FIELD.format(False), mode="infer")
        assert not task.takes_gradients
        task.step()
        task.step()
        assert task.takes_gradients
        assert task.notes == ("its forward pass takes derivatives, so it ran with gradients",)


def test_an_optimizer_that_needs_a_closure_needs_a_whole_step(build: Build) -> None:
    with pytest.raises(UserError, match=r"the step of LBFGS needs a closure; give the whole step, Step\(run=...\)"):
        build(LINEAR.format("optimizer=torch.optim.LBFGS"))
    task = build(
        """
        def run(model, inputs, targets, optimizer):
            def closure():
                optimizer.zero_grad()
                loss = (model(inputs) - targets).square().mean()
                loss.backward()
                return loss
            optimizer.step(closure)
        def build():
            return Step(model=nn.Linear(3, 1), inputs=torch.eye(3).repeat(2, 1)[:4], targets=torch.ones(4, 1), run=run,
                        optimizer=torch.optim.LBFGS)
        """
    )
    task.step()
    values, targets = task.next_inputs()
    assert (task.model(values) - targets).abs().max().item() < 1e-3


class TestAmp:
    TEXT = """
    seen = []
    class Net(nn.Linear):
        def forward(self, rows):
            seen.append(("forward", torch.is_autocast_enabled("cpu")))
            return super().forward(rows)
    def run(model, inputs, targets, optimizer{argument}):
        optimizer.zero_grad()
        {step}
        seen.append(("run", torch.is_autocast_enabled("cpu"), output.dtype, next(model.parameters()).grad.tolist()))
    def build():
        model = Net(2, 1, bias=False)
        nn.init.ones_(model.weight)
        model.seen = seen
        sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.5)
        return Step(model=model, inputs=torch.ones(4, 2), run=run, optimizer=sgd)
    """
    PLAIN = "output = model(inputs); (output.mean() / 2).backward(); optimizer.step()"
    WITH_AMP = """with amp.autocast(): output = model(inputs)
        amp.backward(output.float().mean() / 2); amp.step(optimizer)"""

    @pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
    def test_a_run_without_amp_has_autocast_only_in_the_forward_pass(self, build: Build, precision: str) -> None:
        task = build(self.TEXT.format(argument="", step=self.PLAIN), precision=precision)
        task.step()
        amp = precision != "fp32"
        assert task.model.seen == [("forward", amp), ("run", False, torch.float32, [[0.5, 0.5]])]
        assert task.model.weight.tolist() == [[0.75, 0.75]]
        note = "its run takes no amp: in amp-bf16 only the model's forward pass is under autocast"
        assert task.notes == ((note,) if amp else ())
        assert task.not_comparable == "its step is the user's own function"

    def test_a_run_without_amp_is_unsupported_if_the_precision_needs_a_scaler(self, build: Build) -> None:
        with pytest.raises(
            UnsupportedError, match="amp-fp16 needs a loss scaler, which its run does not take; define run"
        ):
            build(self.TEXT.format(argument="", step=self.PLAIN), precision="amp-fp16")

    @pytest.mark.parametrize(
        ("precision", "dtype"), [("fp32", torch.float32), ("amp-bf16", torch.bfloat16), ("amp-fp16", torch.float16)]
    )
    def test_a_run_with_amp_follows_the_precision(self, build: Build, precision: str, dtype: torch.dtype) -> None:
        """The gradient is 1/2; scaled by the first scale of 2^16, it is 32,768."""
        task = build(self.TEXT.format(argument=", amp", step=self.WITH_AMP), precision=precision)
        task.step()
        amp = precision != "fp32"
        assert task.model.seen == [("forward", amp), ("run", False, dtype, [[0.5, 0.5]])]
        assert task.model.weight.tolist() == [[0.75, 0.75]]
        assert task.notes == ()
        if task.arithmetic.scaler is not None:
            assert task.arithmetic.scaler.state_dict()["_growth_tracker"] == 1  # one update without an overflow

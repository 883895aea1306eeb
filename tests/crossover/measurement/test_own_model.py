"""Models of a user's own: what their functions may return, and the steps made of it."""

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
from crossover.errors import UnsupportedError, UserError
from crossover.measurement.own_model import Batch, OwnModel, default_loss, explained, explaining
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task

CPU = Arithmetic(torch.device("cpu"))
HEAD = """
import torch
from torch import nn
from crossover import Step
"""

Build = Callable[..., Task]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds the task of a file's function `build`, in a file of its own."""

    def make(text: str, protocol: str = "resident", **changes: Any) -> Task:
        file = tmp_path / f"net{len(list(tmp_path.iterdir()))}.py"
        file.write_text(HEAD + dedent(text))
        model = read_model(f"{file}:build", tmp_path, "here")
        cell = Cell("s", "model", protocol, 4, "fp32", "eager", 8, "cpu", model=replace(model, **changes))
        return OwnModel(cell).build(cell, {}, CPU)

    return make


CLASSES = """
def build(size, batch_size):
    return nn.Linear(3, size), torch.randn(batch_size, 3), torch.randint(size, (batch_size,))
"""


def test_a_tuple_trains_by_cross_entropy(build: Build) -> None:
    task = build(CLASSES)
    features, labels = task.next_inputs()
    (loss,) = task.forward(task.model, features, labels)
    assert torch.equal(loss, functional.cross_entropy(task.model(features), labels))
    before = task.model.weight.clone()
    task.step()
    assert not torch.equal(before, task.model.weight)
    assert (task.batched, task.resident[0].shape) == (True, (4, 3))


def test_inference_gives_the_outputs_alone(build: Build) -> None:
    task = build(CLASSES, mode="infer")
    (found,) = task.forward(task.model, *task.next_inputs())
    assert found.shape == (4, 8)
    assert not task.model.training


def test_dicts_and_nested_inputs_reach_the_model_as_they_are(build: Build) -> None:
    task = build(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(()))
            def forward(self, pair, scale, flag=None):
                assert flag == "yes"
                return self.weight * scale * (pair[0] + pair[1])
        def build():
            return Net(), {"pair": (torch.ones(4, 2), torch.ones(4, 2)), "scale": torch.tensor(3.0), "flag": "yes"}
        """
    )
    (loss,) = task.forward(task.model, *task.next_inputs())
    assert loss.item() == 36  # without targets the mean square of the output


def test_a_step_brings_its_loss_and_optimizer(build: Build) -> None:
    task = build(
        """
        def build(size):
            model = nn.Linear(3, 1)
            adam = lambda parameters: torch.optim.Adam(parameters, lr=0.5)
            return Step(model=model, inputs=torch.ones(4, 3), loss=lambda out: out.sum(), optimizer=adam)
        """
    )
    assert isinstance(task.optimizer, torch.optim.Adam)
    (loss,) = task.forward(task.model, *task.next_inputs())
    assert torch.equal(loss, task.model(torch.ones(4, 3)).sum())


def test_an_optimizer_may_be_there_already(build: Build) -> None:
    task = build(
        """
        def build():
            model = nn.Linear(3, 1)
            adam = torch.optim.Adam(model.parameters(), lr=0.5)
            return Step(model=model, inputs=torch.ones(4, 3), optimizer=adam)
        """
    )
    before = task.model.weight.detach().clone()
    task.step()
    assert (task.model.weight - before).abs().mean().item() == pytest.approx(0.5, rel=0.01)


def test_rows_may_be_many_to_a_sample_and_lie_second(build: Build) -> None:
    graph = "def build(size, batch_size):\n    return nn.Linear(3, 1), torch.ones(10 * batch_size, 3)"
    assert not build(graph).batched
    steps_first = "def build():\n    return nn.LSTM(3, 2), torch.ones(7, 4, 3)"
    assert build(steps_first).batch.tensors[0].shape == (7, 4, 3)


def test_a_step_of_ones_own_runs_whole_and_is_not_checked(build: Build) -> None:
    task = build(
        """
        def run(model, inputs, targets, optimizer):
            with torch.no_grad():
                model.weight += 1
        def build(size):
            return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), run=run)
        """
    )
    before = task.model.weight.detach().clone()
    task.step()
    assert torch.equal(task.model.weight, before + 1)
    assert task.not_comparable == "its step is the user's own function"


LOADED = """
from torch.utils.data import TensorDataset
def build(size, batch_size):
    return nn.Linear(3, 10), TensorDataset(torch.randn(9, 3), torch.arange(9))
"""


def test_a_dataset_is_loaded_batch_by_batch_or_its_first_one_stays(build: Build) -> None:
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

    def test_a_model_with_inputs_of_its_own_or_too_few_rows_is_one_line(self, build: Build, table: Table) -> None:
        with pytest.raises(UserError, match="returns a tuple of 3; allowed with a table: the model alone"):
            build(CLASSES, table=table)
        Path(table.file).write_text("a,b,label\n1,2,3\n")
        with pytest.raises(UserError, match="batch size 4 is larger than the data; allowed: at most its 1 rows"):
            build(self.NET, table=table)


def test_a_size_that_nobody_asked_for_may_be_refused(build: Build) -> None:
    text = "def build(size):\n    assert size < 8\n    return nn.Linear(3, size), torch.ones(4, 3)"
    with pytest.raises(UnsupportedError, match=r"line 6: build\(8, 4\) fails: AssertionError"):
        build(text, may_refuse=True)
    with pytest.raises(UserError, match="ZeroDivisionError"):
        build("def build(size):\n    return 1 / 0", may_refuse=True)
    task = build("def build(size):\n    return nn.Linear(3, size), torch.ones(4, 5)", may_refuse=True)
    with pytest.raises(UnsupportedError, match="its step fails"):
        task.step()


def test_what_is_no_batch_of_rows_is_compared_whole(build: Build) -> None:
    """As the edges of a graph, whose two rows are no samples."""
    task = build(
        """
        class Net(nn.Linear):
            def forward(self, nodes, edges):
                return super().forward(nodes).index_add(0, edges[0], nodes[edges[1]])
        def build(size, batch_size):
            return Net(3, 3), (torch.randn(4, 3), torch.randint(4, (2, 7)))
        """
    )
    assert not task.batched
    assert task.checked_rows > 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build(size):\n    raise KeyError('no')", "line 6: build(8, 4) fails: KeyError: 'no'"),
        ("def build(size):\n    return nn.Linear(1, 1)", "returns a Linear; allowed: (model, inputs)"),
        ("def build(size):\n    return 1, torch.ones(1)", "returns a int as the model; allowed: a torch.nn.Module"),
        ("def build(size):\n    return nn.Linear(1, 1), [1]", "returns a list as the inputs"),
        ("def build(size):\n    return nn.Linear(1, 1), torch.ones(1), 3", "returns a int as the targets"),
        ("def build(size):\n    return nn.ReLU(), torch.ones(4)", "has no parameters to train; take mode: infer"),
        ("def build():\n    raise SystemExit('bye')", "line 6: build(8, 4) fails: SystemExit: bye"),
        (
            "class Data(list, torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        return 1 / 0\n"
            "def build(): return nn.Linear(1, 1), Data(range(9))",
            "line 7: its data fail: ZeroDivisionError",
        ),
        (
            "def build():\n    return nn.Linear(3, 1), torch.ones(5, 3)",
            "its batch has 5 rows, not the 4 of the batch size; take batch size 5",
        ),
        (
            "def build(size, batch_size):\n    return nn.Linear(3, 1), torch.ones(3, 3)",
            "its batch has 3 rows, not the 4 of the batch size; build it of batch_size rows",
        ),
        (
            "from torch.utils.data import DataLoader, TensorDataset\ndef build(size, batch_size):\n"
            "    return nn.Linear(3, 1), DataLoader(TensorDataset(torch.ones(9, 3), torch.ones(9, 1)), batch_size=3)",
            "its batch has 3 rows, not the 4 of the batch size",
        ),
        (
            "def build():\n    return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), loss='mse')",
            "returns a str as the loss; allowed: a function of the model's output",
        ),
        (
            "def build():\n    return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), optimizer=lambda: 1)",
            "its optimizer fails: TypeError",
        ),
        ("import nothing_there\ndef build(size): pass", "line 5: the import fails: ModuleNotFoundError"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(build: Build, text: str, message: str) -> None:
    with pytest.raises(UserError) as found:
        build(text)
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_a_model_that_does_not_fit_its_inputs_is_one_line(build: Build) -> None:
    task = build("def build(size):\n    return nn.Linear(3, 1), torch.ones(4, 5)")
    with pytest.raises(UserError, match="its step fails: RuntimeError: mat1 and mat2"):
        task.step()


def test_a_loss_without_a_gradient_is_one_line(build: Build) -> None:
    """As where stochastic depth leaves out every layer."""
    task = build(
        """
        def build():
            return Step(model=nn.Linear(3, 1), inputs=torch.ones(4, 3), loss=lambda output: output.detach().sum())
        """
    )
    with pytest.raises(UserError, match="its step fails: RuntimeError: element 0 of tensors does not require grad"):
        task.step()


def test_what_a_device_lacks_is_a_result(tmp_path: Path) -> None:
    model = read_model("a:b", tmp_path, "here")
    lacking = RuntimeError("\"conv\" not implemented for 'Half'")
    assert isinstance(explained(lacking, model, "it fails"), UnsupportedError)
    memory = MemoryError()
    assert explained(memory, model, "it fails") is memory
    assert isinstance(explained(RuntimeError("shapes"), model, "it fails"), UserError)


def test_a_failing_step_is_the_users_until_it_runs_on_the_cpu(tmp_path: Path) -> None:
    """Whatever its words are; only a result of its own stays as it is."""
    model = read_model("a:b", tmp_path, "here")
    for error in (RuntimeError("\"conv\" not implemented for 'Half'"), KeyError("weights")):
        with pytest.raises(UserError, match="its step fails") as raised, explaining(model):
            raise error
        assert raised.value.__cause__ is error
    for result in (MemoryError(), UnsupportedError("no graph"), UserError("own words")):
        with pytest.raises(type(result)) as raised, explaining(model):
            raise result
        assert raised.value is result


OUTPUTS = """
class Output:
    def __init__(self, scores):
        self.scores, self.name = scores, "a"
class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(3, size)
    def forward(self, inputs):
        scores = self.layer(inputs)
        return FORM
def build(size, batch_size):
    return Net(size), torch.randn(batch_size, 3)
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
def test_an_inference_gives_all_its_outputs_whatever_they_lie_in(
    build: Build, form: str, shapes: list[tuple[int, ...]]
) -> None:
    task = build(OUTPUTS.replace("FORM", form), mode="infer")
    task.step()
    assert [tuple(output.shape) for output in task.forward(task.model, *task.next_inputs())] == shapes


DERIVATIVE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
    def forward(self, points):
        points = points.requires_grad_()
        return torch.autograd.grad(self.layer(points).square().sum(), points)[0]
def build(size, batch_size):
    return Net(), torch.randn(batch_size, 3)
"""


def test_an_inference_that_takes_derivatives_has_gradients_switched_on(build: Build) -> None:
    task: Any = build(DERIVATIVE, mode="infer")
    task.step()
    assert task.takes_gradients
    plain: Any = build(CLASSES, mode="infer")
    plain.step()
    assert not plain.takes_gradients


def test_an_inference_that_fails_with_gradients_too_says_what_it_said_first(build: Build) -> None:
    task: Any = build(DERIVATIVE.replace("self.layer(points)", "self.layer(points[:, :2])"), mode="infer")
    with pytest.raises(UserError, match=r"net0\.py: line 12: its step fails: RuntimeError: mat1 and mat2"):
        task.step()
    assert not task.takes_gradients


@pytest.mark.parametrize(
    ("scores", "targets", "loss"),
    [
        (torch.ones(4, 1), torch.zeros(4), 1.0),
        (torch.zeros(2, 3, 4), torch.ones(2, 3).long(), torch.tensor(4.0).log()),
        (torch.zeros(2, 4, 3), torch.ones(2, 3).long(), torch.tensor(4.0).log()),
        (torch.full((2, 2), 3.0), None, 9.0),
    ],
)
def test_the_default_loss_follows_the_targets(scores: torch.Tensor, targets: torch.Tensor | None, loss: Any) -> None:
    assert default_loss(scores, targets).item() == pytest.approx(float(loss))


def test_a_loss_of_the_models_own_counts() -> None:
    assert default_loss({"loss": torch.tensor(5.0), "logits": torch.ones(2)}, None).item() == 5


def test_shapes_that_no_default_compares_are_named() -> None:
    with pytest.raises(ValueError, match=r"returns \[4, 8\] for targets of \[4, 7\] in float32"):
        default_loss(torch.ones(4, 8), torch.ones(4, 7))


def test_a_batch_is_put_together_as_it_was() -> None:
    batch = Batch({"a": torch.ones(2), "b": [torch.zeros(2), "x"]}, torch.ones(2))
    inputs, targets = batch.unpack([tensor + 1 for tensor in batch.tensors])
    assert inputs["b"][1] == "x"
    assert [inputs["a"].sum(), inputs["b"][0].sum(), targets.sum()] == [4, 2, 4]

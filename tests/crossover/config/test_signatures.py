"""The arguments of a user's builder, read without running its file, and what they receive when it is called."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crossover.config.signatures import Arguments, find_definition
from user_errors import error_line

AXES = {"size": 7, "batch_size": 32, "device": "cpu"}
HEAD = "import functools\nfrom functools import cache, partial\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "net.py"


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("net", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(file: Path) -> Any:
    """What `build` of a file returns when it is called with the arguments that it takes."""
    module = load(file)
    signature = inspect.signature(module.build)
    given, by_name = Arguments.of_signature(signature).bound(signature, AXES)
    return module.build(*given, **by_name)


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("def build(batch_size): return batch_size", 32),
        ("def build(batch): return batch", 32),
        ("def build(width): return width", 7),
        ("def build(width, batch_size): return width, batch_size", (7, 32)),
        ("def build(width, bs): return width, bs", (7, 32)),
        ("def build(batch_size, width): return batch_size, width", (32, 7)),
        ("def build(width=64, batch_size=1): return width, batch_size", (7, 32)),
        ("def build(width, depth=3): return width, depth", (7, 3)),
        ("def build(width, depth=3, batch_size=1): return width, depth, batch_size", (7, 3, 32)),
        ("def build(batch_size, depth=3): return batch_size, depth", (32, 3)),
        ("def build(*, width, batch_size): return width, batch_size", (7, 32)),
        ("def build(width, /, *, batch_size=1, lr=0.1): return width, batch_size, lr", (7, 32, 0.1)),
        ("def build(pretrained=False): return pretrained", False),
        ("def build(*, lr=0.1): return lr", 0.1),
        ("def build(): return 'nothing'", "nothing"),
        ("def build(*args): return args", (7, 32)),
        ("def build(width, *args, **more): return width, args, more", (7, (32,), {})),
        ("def build(**more): return more", {}),
        ("def build(device): return device", "cpu"),
        ("def build(n, device): return n, device", (7, "cpu")),
        ("def build(device, n): return device, n", ("cpu", 7)),
        ("def build(batch_size, device): return batch_size, device", (32, "cpu")),
        ("def build(batch, device, seed=3): return batch, device, seed", (32, "cpu", 3)),
        ("build = lambda bs: bs", 32),
        (
            "def make(width, depth, batch_size): return width, depth, batch_size\nbuild = partial(make, depth=3)",
            (7, 3, 32),
        ),
        ("def make(width, batch_size): return width, batch_size\nbuild = functools.partial(make, 64)", (64, 32)),
        ("@cache\ndef build(batch_size): return batch_size", 32),
        ("def make(): return 3\nbuild = make", 3),
        ("class build:\n    def __new__(cls, batch_size): return batch_size", 32),
        ("class Base:\n    def __new__(cls, n): return n\nclass Net(Base): ...\nbuild = Net", 7),
        ("build = functools.lru_cache(lambda n: n)", 7),
    ],
)
def test_the_arguments_read_from_the_file_are_those_of_the_function(file: Path, text: str, received: Any) -> None:
    file.write_text(HEAD + text)
    definition = find_definition(file, "build")
    assert definition is not None
    assert definition.is_exact
    assert called(file) == received
    arguments = Arguments.of_signature(definition.signature)
    values = {"size": "7", "batch_size": "32"}
    in_order = sorted(
        (name for name in values if values[name] in str(received)), key=lambda name: str(received).index(values[name])
    )
    assert (arguments.passed(definition.signature), arguments.missing) == (tuple(in_order), ())


@pytest.mark.parametrize(
    "text",
    [
        "if True:\n    def build(): ...",
        "if True:\n    class build: ...",
        "build = elsewhere.make",
        "build = elsewhere.make(3)",
        "class Make(dict): ...\nbuild = Make().items",
        "from collections import OrderedDict as build",
        "def make(): ...\nbuild = partial(make, *[1, 2])",
        "build = partial(max, 1)",
        "def build(): ...\nbuild = partial(build, 1)",
        "build = again\nagain = build",
        "class Make:\n    def __call__(self, n, bs): return n, bs\nbuild = Make()",
        "class Make:\n    def net(self, n): return n\nbuild = Make().net",
        "def make():\n    return lambda bs: bs\nbuild = make()",
        "build = 3",
    ],
)
def test_what_cannot_be_known_is_not_assumed(file: Path, text: str) -> None:
    file.write_text(HEAD + text)
    assert find_definition(file, "build") is None


MODELS = """
import torch
import torch.nn as layers
from torch import nn
from torch.nn import Linear
from torch.nn import *

class Net(nn.Module):
    def __init__(self, size, depth=2): ...
class Sub(layers.Module, dict):
    def __init__(self, device, size): ...
class Deep(Net): ...
class Empty(torch.nn.Module): ...
class Own(nn.Sequential):
    def __init__(self, rows): ...
Cls = torch.nn.Linear
Other = Cls
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Net", "(size, depth=2)"),
        ("Sub", "(device, size)"),
        ("Deep", "(size, depth=2)"),
        ("Empty", "()"),
        ("Own", "(rows)"),
        *[(name, "(in_features, out_features, bias=True, device=None, dtype=None)") for name in ("Cls", "Other")],
        ("Linear", "(in_features, out_features, bias=True, device=None, dtype=None)"),
        ("Identity", "(*args, **kwargs)"),
    ],
)
def test_a_class_of_models_is_read_through_its_base_classes(file: Path, name: str, shown: str) -> None:
    file.write_text(MODELS)
    definition = find_definition(file, name)
    assert definition is not None
    assert (str(definition.signature), definition.makes_models, definition.is_exact) == (shown, True, True)
    module = load(file)
    if name != "Empty":  # torch's own __init__ has *args, but takes none
        names = list(inspect.signature(getattr(module, name)).parameters)
        assert names == list(definition.signature.parameters)


@pytest.mark.parametrize(
    ("text", "makes_models", "is_exact"),
    [
        ("class build(dict): ...", False, False),
        ("@elsewhere.decorated\nclass build:\n    def __init__(self, n): ...", False, False),
        ("from torch import nn\nclass build(dict, nn.Module): ...", True, False),
        ("class Base:\n    def __init__(self, n): ...\nclass build(Base, dict): ...", False, False),
        ("class build:\n    def __init__(self, n, device): ...\n    def __call__(self): ...", False, True),
        ("class build(other): ...\nclass other(build): ...", False, False),
    ],
)
def test_what_a_class_makes(file: Path, text: str, makes_models: bool, is_exact: bool) -> None:
    file.write_text(text)
    definition = find_definition(file, "build")
    assert definition is not None
    assert (definition.makes_models, definition.is_exact) == (makes_models, is_exact)


def test_an_unknown_decorator_may_change_the_signature(file: Path) -> None:
    file.write_text("@elsewhere.decorated\ndef build(): ...")
    definition = find_definition(file, "build")
    assert definition is not None
    assert not definition.is_exact


def test_imports_from_files_of_the_user_are_followed(file: Path) -> None:
    (file.parent / "pkg").mkdir()
    (file.parent / "pkg" / "__init__.py").write_text("from .net import make\n")
    (file.parent / "pkg" / "net.py").write_text("def make(batch_size=4, *, layers=[2, 3]): ...\n")
    file.write_text("from pkg import make as build\n")
    definition = find_definition(file, "build")
    assert definition is not None
    assert (definition.file.name, str(definition.signature)) == ("net.py", "(batch_size=4, *, layers=[2, 3])")
    file.write_text("import pkg.net as other\nfrom pkg import net\nbuild = net.make\nagain = other.make\n")
    for name in ("build", "again"):
        definition = find_definition(file, name)
        assert definition is not None
        assert definition.file.name == "net.py"


def test_arguments_that_a_body_never_reads_are_known(file: Path) -> None:
    file.write_text("def build(n, device):\n    return lambda: device\n\ndef other(n):\n    return locals()\n")
    assert [getattr(find_definition(file, name), "unused", None) for name in ("build", "other")] == [{"n"}, set()]
    for text in ("build = lambda n: 3", "def make(n):\n    del n\nbuild = partial(make)", "def build(n):\n    n = 3"):
        file.write_text(HEAD + text)
        definition = find_definition(file, "build")
        assert definition is not None
        assert definition.unused == {"n"}, text


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("def build(size, foo): return size, foo", ("foo",)),
        ("def build(size, foo, batch): return size, foo, batch", ("foo",)),
        ("def build(batch, size, rows): return batch, size, rows", ("rows",)),
        ("build = lambda size, depth: size * depth", ("depth",)),
    ],
)
def test_only_a_name_of_batches_receives_the_batch_size(file: Path, text: str, missing: tuple[str, ...]) -> None:
    file.write_text(text)
    definition = find_definition(file, "build")
    assert definition is not None
    assert Arguments.of_signature(definition.signature).missing == missing


def test_a_missing_name_is_one_line(file: Path) -> None:
    file.write_text("x = 1\n")
    assert error_line(find_definition, file, "build") == (
        "net.py: there is no function build; add one: build(size, batch_size), or fewer of these arguments"
    )


def batch_of(file: Path, text: str) -> int | None:
    file.write_text(text)
    definition = find_definition(file, "build")
    assert definition is not None
    return definition.own_batch


def returning(values: str, *lines: str, head: str = "") -> str:
    return "\n    ".join([f"{head}\ndef build(size):", *lines, f"return {values}"])


@pytest.mark.parametrize(
    "text",
    [
        returning("nn.Linear(8, size), torch.randn(20, 8)"),
        returning("nn.Linear(8, size), torch.randn((20, 8), dtype=torch.float64)"),
        returning("nn.Linear(8, size), torch.randn(20, size), torch.randint(10, (20,))"),
        returning("nn.Linear(8, size), x, y", "x = torch.rand(20, 8)", "y = torch.zeros(20, dtype=torch.long)"),
        returning("nn.Tanh(), torch.rand(20)", "if size > 64:", "    return nn.Linear(8, size), torch.rand(20, 8)"),
    ],
)
def test_rows_that_are_given_in_the_file_are_known(file: Path, text: str) -> None:
    assert batch_of(file, text) == 20


@pytest.mark.parametrize(
    "text",
    [
        returning("nn.Linear(8, size), torch.randn(size, 8)"),
        returning("nn.Linear(8, size), torch.randn(20, 8), torch.randn(10, 8)"),
        returning("nn.Linear(8, size), TensorDataset(torch.randn(20, 8))"),
        returning("nn.Linear(8, size), DataLoader(rows)", "rows = torch.randn(20, 8)"),
        returning("nn.LSTM(8, size), torch.randn(20, 32, 8)"),
        returning("nn.Linear(8, size), torch.randn(*shape)", "shape = (20, 8)"),
        returning("nn.Linear(8, size), torch.randn(20, 8).repeat(size, 1)"),
        returning("nn.Linear(8, size), x", "x = torch.randn(20, 8)", "x = x.repeat(size, 1)"),
        returning("nn.Linear(8, size), x", "x = torch.randn(20, 8)", "if size > 64:", "    x = torch.randn(10, 8)"),
        returning("nn.Linear(8, size), torch.randn(rows, 8)", "for rows in [20]:", "    pass", head="rows = 10"),
        returning("nn.Linear(8, size), torch.randn(size, 8)", head="size = 20"),
        returning("nn.Linear(8, size), torch.rand(20)", "if size > 64:", "    return nn.Tanh(), torch.rand(10)"),
        returning("nn.Linear(8, size), (torch.rand(20, 3), torch.rand(40, 4))"),
        returning("nn.Linear(8, size), torch.randint(20, size)"),
        returning("Step(model=nn.Linear(8, size), inputs=torch.rand(20, 8))"),
        returning("make(size)"),
        returning("nn.Linear(8, size)"),
        returning("[nn.Linear(8, size), torch.rand(20, 8)]"),
    ],
)
def test_rows_that_may_differ_are_not_assumed(file: Path, text: str) -> None:
    assert batch_of(file, text) is None

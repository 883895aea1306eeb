"""The user's models, as named on the command line and in studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config import models
from crossover.config.models import DEFAULT_SIZES, Model, declared_sizes, read_model
from crossover.errors import UserError
from user_errors import error_line

FILE = """
from elsewhere import given

SIZES = [8, 16]

def build(size, batch_size):
    return size, batch_size

def fixed():
    return None

def greedy(size, batch_size, more):
    return None

def late(size, *, batch):
    return None
"""


@pytest.fixture
def net(folder: Any) -> Path:
    path = folder.path / "net.py"
    path.write_text(FILE)
    return Path(path)


def test_a_file_is_searched_for_beside_the_study_and_in_the_working_directory(net: Path, tmp_path: Path) -> None:
    beside = read_model("net.py:build", net.parent, "here")
    assert beside == read_model("net.py:build", tmp_path / "elsewhere", "here")
    assert (beside.file, beside.name, beside.title) == (net, "build", "net")


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    from fast import build\nexcept ImportError:\n    def build(size): pass\n",
        "if True:\n    build = lambda size: None\n",
        "from collections.abc import Callable\nbuild: Callable = max\n",
        "class build(dict):\n    pass\n",
    ],
)
def test_a_name_bound_without_def_is_accepted(net: Path, text: str) -> None:
    net.write_text(text)
    assert read_model("net.py:build", net.parent, "here").size_name == "units of size"


@pytest.mark.parametrize(
    ("text", "title"),
    [("transformers:ViTConfig", "ViTConfig"), ("transformers:BertConfig", "BertConfig"), ("a.b:c", "b")],
)
def test_models_of_modules_and_libraries_need_no_file(text: str, title: str) -> None:
    model = read_model(text, Path(), "here")
    assert (model.source, model.title, model.file) == (text, title, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("net.py", "here: 'net.py' names no model; allowed: FILE.py:FUNCTION"),
        ("no/net:build", "here: 'no/net:build': 'no/net' is neither a .py file nor a module"),
        ("none.py:build", "here: there is no file none.py; give the model's file"),
        (
            "net.py:biuld",
            "net.py: there is no function biuld; allowed: build, fixed, greedy, late (did you mean 'build'?)",
        ),
        (
            "net.py:greedy",
            "net.py: line 12: greedy(size, batch_size, more) needs more, which Crossover does not pass; allowed: "
            "build(size, batch_size), or fewer of these arguments; give more a default, or call it batch_size if",
        ),
        ("torn.py:build", "torn.py: line 1: not valid Python"),
        (
            "classes.py:Cls",
            "classes.py: Cls(in_features, out_features, bias=True, device=None, dtype=None) needs out_features, which "
            "Crossover does not pass; allowed: build(size, batch_size), or fewer of these arguments; write a function",
        ),
        (
            "classes.py:Net",
            "classes.py: line 4: Net(size, device) needs device, which Crossover does not pass; allowed: build(size, "
            "batch_size), or fewer of these arguments; write a function that calls Net",
        ),
    ],
)
def test_an_invalid_model_is_one_line(net: Path, text: str, message: str) -> None:
    (net.parent / "torn.py").write_text("def build(:\n")
    (net.parent / "classes.py").write_text(
        "import torch\n\nCls = torch.nn.Linear\nclass Net(torch.nn.Module):\n"
        "    def __init__(self, size, device): ...\n"
    )
    assert error_line(lambda: read_model(text, Path(), "here")).startswith(message)


def test_a_module_may_declare_sizes_like_a_file(net: Path) -> None:
    (net.parent / "pkg").mkdir()
    net.rename(net.parent / "pkg" / "net.py")
    model = read_model("pkg.net:build", Path(), "here")
    assert (declared_sizes(model), model.size_name, model.file) == ((8, 16), "units of size", None)
    with pytest.raises(UserError, match=r"net\.py: there is no function biuld"):
        read_model("pkg.net:biuld", Path(), "here")


def test_a_library_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.PathFinder, "find_spec", lambda *_: None)
    with pytest.raises(UserError, match="here: timm is not installed; install the version for your torch with pip"):
        read_model("timm:resnet18", Path(), "here")


def test_a_file_may_declare_sizes(net: Path) -> None:
    assert declared_sizes(read_model("net.py:build", Path(), "here")) == (8, 16)
    assert declared_sizes(read_model("net.py:fixed", Path(), "here")) == ("net",)
    net.write_text(FILE.replace("SIZES", "OTHERS"))
    assert declared_sizes(read_model("net.py:build", Path(), "here")) is None
    assert declared_sizes(read_model("net.py:fixed", Path(), "here")) == ("net",)
    assert declared_sizes(read_model("transformers:ViTConfig", Path(), "here")) == ("ViTConfig",)


@pytest.mark.parametrize("sizes", ["range(3)", "[0]", "'8'"])
def test_invalid_declared_sizes_are_one_line(net: Path, sizes: str) -> None:
    net.write_text(FILE.replace("[8, 16]", sizes))
    with pytest.raises(UserError, match=r"^net\.py: line 4: SIZES"):
        declared_sizes(read_model("net.py:build", Path(), "here"))


@pytest.mark.parametrize(
    ("signature", "counted"),
    [
        ("size, batch_size", "units of size"),
        ("layers", "layers"),
        ("n", "n"),
        ("s", "units of s"),
        ("B", "units of B"),
        ("hidden_units", "hidden units"),
        ("*args", "units of size"),
    ],
)
def test_sizes_are_named_by_the_first_argument_or_size_name(net: Path, signature: str, counted: str) -> None:
    net.write_text(f"def build({signature}): ...\n")
    assert read_model("net.py:build", Path(), "here").size_name == counted
    net.write_text(f"SIZE_NAME = 'cells'\ndef build({signature}): ...\n")
    assert read_model("net.py:build", Path(), "here").size_name == "cells"


class TestStudies:
    def test_a_class_of_models_needs_a_table(self, folder: Any, net: Path) -> None:
        init = "    def __init__(self, size, device=None):\n        self.n = size\n"
        net.write_text(f"from torch import nn\nclass Net(nn.Module):\n{init}")
        (folder.path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
        study = {"workload": ..., "sizes": [8, 16], "batch_sizes": [2], "model": "net.py:Net"}
        line = error_line(lambda: folder.study(**study))
        assert "model: net.py:Net is a class of models, without a batch; give the study `data`, or a function" in line
        model = folder.study(**study, data={"file": "rows.csv", "targets": "b"}).user_model
        assert (model.takes, model.passed, model.signature) == ((), ("size",), "Net(size, device=None)")

    def test_a_study_of_a_model_needs_only_a_question(self, folder: Any, net: Path) -> None:
        study = folder.study(title=..., workload=..., sizes=..., batch_sizes=..., model="net.py:build", mode="infer")
        assert (study.workload, study.sizes, study.batch_sizes) == ("model", (8, 16), (32,))
        assert study.user_model == Model(str(net), "build", mode="infer")
        assert {cell.model for cell in study.cells(["cpu"])} == {study.user_model}

    def test_only_default_sizes_may_be_refused(self, folder: Any, net: Path) -> None:
        assert not folder.study(workload=..., sizes=..., model="net.py:build").user_model.may_refuse
        net.write_text(FILE.replace("SIZES", "OTHERS"))
        study = folder.study(workload=..., sizes=..., model="net.py:build")
        assert (study.sizes, study.user_model.may_refuse) == (DEFAULT_SIZES, True)
        assert not folder.study(workload=..., sizes=[3], model="net.py:build").user_model.may_refuse

    @pytest.mark.parametrize(
        ("model", "sizes", "batch_sizes", "x_axis"),
        [
            ("transformers:BertConfig", None, [1, 8], "batch_size"),
            ("transformers:BertConfig", None, [8], "parameters"),
            ("net.py:build", None, [1, 8], "size"),
            ("net.py:build", [8], [1, 8], "batch_size"),
        ],
    )
    @pytest.mark.usefixtures("net")
    def test_a_single_size_is_measured_over_batch_sizes(
        self, folder: Any, model: str, sizes: Any, batch_sizes: Any, x_axis: str
    ) -> None:
        config = folder.read({"model": model, "sizes": sizes, "batch_sizes": batch_sizes})
        assert config.studies[0].x_axis == x_axis

    @pytest.mark.parametrize(
        ("head", "axes", "takes", "size_name", "batch_name"),
        [
            ("def build(m, k, device)", "{m: [8, 64], k: [2, 1]}", ("device",), "m", "k"),
            ("def build(k, device, *, m)", "{m: [8, 64], k: [2, 1]}", ("device",), "m", "k"),
            ("def build(k, device, rows, variant)", "{rows: [8, 64], k: [2, 1]}", ("device", "variant"), "rows", "k"),
            ("def build(w, n_experts, device)", "{w: [8, 64], n_experts: [2, 1]}", ("device",), "w", "experts"),
            ("def build(batch, n, device)", "{n: [8, 64], batch: [2, 1]}", ("batch_size", "device"), "n", None),
        ],
    )
    def test_a_function_may_take_two_sizes_of_its_own_names(
        self, folder: Any, net: Path, head: str, axes: str, takes: Any, size_name: str, batch_name: str | None
    ) -> None:
        net.write_text(f"{head}: return lambda: {' + '.join(yaml.safe_load(axes))}\n")
        (of_command_line,) = folder.read(entries=["model=net.py:build", f"axes={axes}"]).studies
        of_file = folder.study(
            workload=..., sizes=..., batch_sizes=..., model="net.py:build", axes=yaml.safe_load(axes)
        )
        names = " and ".join(yaml.safe_load(axes))
        assert of_command_line.question == f"At which {names} does the GPU overtake the CPU for net?"
        for study in (of_command_line, of_file):
            model = study.user_model
            assert (study.sizes, study.batch_sizes, study.x_axis) == ((8, 64), (1, 2), "size")
            assert (model.axes, model.takes) == (tuple(yaml.safe_load(axes)), takes)
            assert (model.size_name, model.batch_name, model.may_refuse) == (size_name, batch_name, False)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"axes": {"m": [1]}},
                "axes: given: m; allowed: two sizes, such as {m",
            ),
            (
                {"axes": {"m": [1], "k": [2], "q": [3]}},
                "axes: given: m, k and q",
            ),
            (
                {"axes": [1, 2]},
                "axes: given: [1, 2]; allowed: two sizes, such as {m: [64, 2",
            ),
            ({"axes": {"m": [1], "k": [0]}}, "axes.k.0: 0 is not allowed; allowed: greater than or"),
            ({"axes": {"m": [1], "k": ["a"]}}, "axes.k.0: 'a' is not allowed; allowed: a valid int"),
            ({"sizes": [1]}, "axes: given together with sizes or batch sizes; allowed: one of them"),
            ({"batch_sizes": [1]}, "axes: given together with sizes or batch sizes; allowed: one of them"),
            (
                {"axes": {"m": [1], "device": [2]}},
                "axes: device cannot be a size; allowed: other arguments",
            ),
            ({"axes": {"m": [1], "default": [2]}}, "axes: default cannot be a size; allowed: other arguments"),
            ({"axes": {"batch_size": [1], "m": [2]}}, "axes: batch_size cannot be a size; allowed: other"),
            (
                {"axes": {"m": [1], "q": [2]}},
                "net.py: line 1: build(m, k, device) has no argument q, which `axes` names; name two that it has",
            ),
            (
                {"axes": {"m": [1], "seed": [2]}, "model": "net.py:seeded"},
                "net.py: line 2: seeded(m, k, seed, device) needs k, which Crossover does not pass; allowed: build(",
            ),
            ({"model": "net.py:idle"}, "axes: m and k, but idle(m, k, device) never reads one of them; use both"),
            (
                {"model": "net.py:net"},
                "axes: m and k, but net.py:net has no argument device; allowed: sizes and batch_sizes",
            ),
            (
                {"model": "transformers:ViTConfig"},
                "axes: m and k, but transformers:ViTConfig has no a",
            ),
            (
                {"model": ..., "workload": "disc_mlp"},
                "axes: given, but only a function as `model` has arguments; allowed: sizes and batch_",
            ),
        ],
    )
    def test_invalid_axes_are_one_line(self, folder: Any, net: Path, changes: Any, message: str) -> None:
        net.write_text(
            "def build(m, k, device): return lambda: m + k\ndef seeded(m, k, seed, device): ...\ndef net(m, k): ...\n"
            "def idle(m, k, device): return lambda: m\n"
        )
        study = {
            "workload": ...,
            "sizes": ...,
            "batch_sizes": ...,
            "model": "net.py:build",
            "axes": {"m": [1], "k": [2]},
        }
        assert message in error_line(lambda: folder.study(**study | changes))

    def test_a_second_size_without_axes_is_one_line_that_names_them(self, net: Path) -> None:
        net.write_text("def build(m, k, device): ...\n")
        line = error_line(lambda: read_model("net.py:build", Path(), "here"))
        assert line.endswith("call it batch_size if it is the batch size, or name two sizes in `axes`")

    def test_with_names_as_sizes_the_x_axis_is_parameters(self, folder: Any) -> None:
        study = folder.study(workload=..., model="transformers:ViTConfig", sizes=["ViTConfig", "BertConfig"])
        assert (study.sizes, study.x_axis, study.user_model.names) == (
            (1, 2),
            "parameters",
            ("ViTConfig", "BertConfig"),
        )
        assert [study.user_model.argument(size) for size in study.sizes] == ["ViTConfig", "BertConfig"]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sizes": ["a"]}, "studies/mine.yaml: sizes: ['a'] are names, which need a study with `model`"),
            ({"workload": ..., "model": "a.b:c", "sizes": [1, "a"]}, "studies/mine.yaml: sizes: [1, 'a'] mixes"),
            ({"protocols": ["loaded"]}, "studies/mine.yaml: protocols: 'loaded' is not offered by workload 'disc_mlp'"),
            ({"workload": ..., "model": "none.py:f"}, "studies/mine.yaml: model: there is no file"),
        ],
    )
    def test_an_invalid_study_of_a_model_is_one_line(self, folder: Any, changes: Any, message: str) -> None:
        assert error_line(lambda: folder.study(**changes)).startswith(message)

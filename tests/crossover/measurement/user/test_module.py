"""The user's modules: the files to which imports resolve, and the messages if an import fails."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from crossover.config.models import Model, find_file
from crossover.config.workloads import OWN
from crossover.machine.code_key import code_of
from crossover.measurement.user import module as user_module
from crossover.measurement.user.module import function_of
from user_errors import error_line

pytestmark = pytest.mark.usefixtures("own_switches")


@pytest.fixture(autouse=True)
def _own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Start in an empty working folder, and undo the changes that an import makes to this process."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(user_module, "FOLDERS", [])
    function_of.cache_clear()
    user_module._module.cache_clear()
    before = dict(sys.modules)
    with warnings.catch_warnings():
        yield
    for name in set(sys.modules) - set(before):
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
    sys.modules.update(before)


def write(**texts: str) -> None:
    """Write files into the working folder, named without their suffix."""
    for name, text in texts.items():
        file = Path(f"{name}.py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(text))


def model(text: str) -> Model:
    source, _, name = text.rpartition(":")
    return Model(str(Path(source).absolute()) if source.endswith(".py") else source, name)


def complaint(text: str) -> str:
    return error_line(function_of, model(text))


BUILD = "def build(size):\n    return {}\n"


@pytest.mark.parametrize("name", ["statistics", "torch"])
def test_a_users_file_does_not_shadow_an_imported_module(name: str) -> None:
    write(net=f"import {name}\n{BUILD.format(f'{name}.__file__')}", **{name: "raise RuntimeError('imported')"})
    file = getattr(__import__(name), "__file__", None)
    assert function_of(model("net.py:build"))(1, 1) == file
    assert function_of(model("net:build"))(1, 1) == file


def test_a_file_beside_the_model_is_preferred_to_an_installed_package_and_a_script() -> None:
    """The file may be a modified copy of a package. The measuring process has `scripts/` on its path too."""
    sys.path.insert(0, str(user_module.PACKAGE.parent))
    write(jsonschema="VALUE = 1", make_dataset="VALUE = 2")
    for name in ("jsonschema", "make_dataset"):
        sys.modules.pop(name, None)
    write(net=f"import jsonschema, make_dataset\n{BUILD.format('jsonschema.VALUE + make_dataset.VALUE')}")
    assert function_of(model("net.py:build"))(1, 1) == 3


IMPORT = "the import fails: "
ENDS = f"; no command-line options are available, and the file must not end the program: {user_module.GUARD}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--data', required=True)\n"
            "parser.parse_args()",
            f"net.py: line 4: {IMPORT}SystemExit: argparse: the following arguments are required: --data{ENDS}",
        ),
        ("input('size? ')", f"net.py: line 1: {IMPORT}EOFError: EOF when reading a line; there is no terminal: "),
        ("import no_such_package.part", f"; install no_such_package for {sys.executable}"),
        ("def build(:", "net.py: line 1: the import fails: SyntaxError: invalid syntax"),
    ],
)
def test_an_import_that_fails_is_one_line(
    text: str, line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(net=text)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert line in complaint("net.py:build")
    assert "usage" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "def make(size): pass\ndef biuld(size): pass",
            "net:build: the module has no function build; allowed: biuld, make (did you mean 'biuld'?)",
        ),
        ("async def build(size): pass", "net:build is an async function; allowed: a plain one, build(size, batch"),
        ("from torch import nn\nbuild = nn.Linear(1, 1)", "net:build is a Linear; allowed: a function, build(size"),
        (
            "from torch import nn\nbuild = type('Net', (nn.Module,), {})",
            "net:build is a class of models, without a batch; give the study `data`, or a function that returns (model",
        ),
    ],
)
def test_a_name_that_is_no_plain_function_is_one_line(text: str, line: str) -> None:
    write(net=text)
    assert complaint("net:build").startswith(line)


@pytest.mark.parametrize(
    "text",
    [
        "build = lambda size, batch_size: (size, batch_size)",
        "from functools import partial\ndef make(size, batch_size, more): return (size, batch_size)\n"
        "build = partial(make, more=1)",
    ],
)
def test_the_function_may_be_any_callable(text: str) -> None:
    write(net=text)
    assert function_of(model("net.py:build"))(3, 4) == (3, 4)


@pytest.mark.parametrize(
    ("setter", "name", "key"),
    [
        ("torch.set_default_device('meta')", "default_device", "devices"),
        ("torch.backends.cudnn.allow_tf32 = True", "cudnn.conv.fp32_precision", "precisions: [tf32]"),
        ("torch.backends.cudnn.benchmark = True", "cudnn.benchmark", None),
    ],
)
def test_a_setting_changed_by_the_import_is_named_with_its_key(setter: str, name: str, key: str | None) -> None:
    write(net=f"import torch\n\n{setter}\n{BUILD.format('size')}")
    try:
        line = complaint("net.py:build")
    finally:
        torch.set_default_device(None)
    assert line.startswith(f"net.py:build: the import changes a setting: {name} changed from ")
    assert line.endswith("it imports, must not set it" + (f"; set {key} in the config instead" if key else ""))


def test_a_file_reached_through_a_link_imports_and_reads_what_is_beside_it_as_python_does(tmp_path: Path) -> None:
    """A script's imports are those beside the real file, a module's those beside the link; `__file__` is the link."""
    real, link = tmp_path / "real", tmp_path / "project" / "links"
    for folder in (real, link):
        folder.mkdir()
    (real / "net.py").write_text(
        "from of_real import A\nfrom of_link import B\nhere = __file__\ndef build(): return A, B"
    )
    (real / "of_real.py").write_text("A = 1")
    (link / "of_link.py").write_text("B = 2")
    (link / "net.py").symlink_to(real / "net.py")
    found = find_file("links/net.py", [Path()], "", "")
    linked = Model(str(found), "build")
    assert function_of(linked)(1, 1) == (1, 2)
    assert user_module._module(linked).here == str(link / "net.py")
    before = code_of("trial", OWN, model=linked).model_key
    (real / "of_real.py").write_text("A = 10")
    changed = code_of("trial", OWN, model=linked).model_key
    (link / "of_link.py").write_text("B = 20")
    assert len({before, changed, code_of("trial", OWN, model=linked).model_key}) == 3


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("from __future__ import annotations\nfrom typing import Any\nimport torch\nN, NAMES = 3, ('a', 'b')", False),
        ("class A:\n    N = 3\n    @staticmethod\n    def f(n=1):\n        return n", False),
        ("table = {}", True),
        ("def f(n, seen=[]):\n    return n", True),
        ("def f(n, *, seen={}):\n    return n", True),
        ("def f(n):\n    def g():\n        global N\n        N = n\n    return g", True),
        ("def f(n):\n    return n\nf.calls = 0", True),
        ("class A:\n    seen = []", True),
        ("class A:\n    pass\na = A()", True),
    ],
)
def test_state_of_modules_is_found(text: str, keeps: bool) -> None:
    write(stated=f"{text}\ndef build(size):\n    return size\n")
    function_of(model("stated.py:build"))
    assert user_module.keeps_state() is keeps

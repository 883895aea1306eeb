"""A mistake in a workload's module is one line: file, what is wrong, what to do."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from crossover.config import studies
from crossover.config.workloads import ALLOWED, Traits, read_traits, workload_traits
from crossover.errors import UserError

WHOLE = 'SIZE_NAME = "features"\nSIZE_RANGE = (1, 8)\nDATASET = None\nPROTOCOLS = ("resident",)\n'
FUNCTIONS = "def build_model(features): ...\ndef build(cell, _data, arithmetic): ...\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


def complaint(module: Path, text: str) -> str:
    module.write_text(text)
    with pytest.raises(UserError) as error:
        read_traits(module)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_constants_are_read_whether_annotated_or_not(module: Path) -> None:
    module.write_text(
        "import no_such_package\n"
        + WHOLE.replace("DATASET =", "DATASET: str | None =")
        + "SIZES = (2, 4)\nCLASSES = 3\n"
        + FUNCTIONS
    )
    assert read_traits(module) == Traits("features", (1, 8), None, ("resident",), sizes=(2, 4), classes=3)


def test_every_constant_has_words_for_what_it_may_be() -> None:
    assert list(ALLOWED) == [field.name.upper() for field in fields(Traits)]


def test_all_that_is_missing_is_named(module: Path) -> None:
    message = complaint(module, "import torch\n")
    assert message.startswith("mine.py: lacks SIZE_NAME, SIZE_RANGE, DATASET, PROTOCOLS; add ")
    message = complaint(module, WHOLE.replace("DATASET", "DATA"))
    assert message == (
        "mine.py: lacks DATASET; add what is missing at the top level (DATASET: None, or a key of `datasets` in the "
        "config, as 'disc'); config/README.md, 'A workload of your own'"
    )


def test_a_syntax_error_has_its_line(module: Path) -> None:
    message = complaint(module, WHOLE + "def build(:\n")
    assert message.startswith("mine.py: line 5: not Python that can be parsed (")
    assert message.endswith("); mend the module")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"x = 1\x00\n"])
def test_what_is_no_text_is_no_traceback(module: Path, text: bytes) -> None:
    module.write_bytes(text)
    with pytest.raises(UserError, match=r"^mine\.py: .*not Python that can be parsed \("):
        read_traits(module)


def test_a_module_that_is_not_there_is_named(module: Path) -> None:
    with pytest.raises(UserError, match=r"^mine\.py: cannot be read: No such file or directory; "):
        read_traits(module)


def test_a_constant_that_is_no_literal_is_named_with_its_line(module: Path) -> None:
    message = complaint(module, WHOLE.replace("(1, 8)", "(1, 2 * LIMIT)"))
    assert message.startswith("mine.py: line 2: SIZE_RANGE is worked out, but it is read without running the module; ")


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ('("resident",)', '("resident")', "line 4: PROTOCOLS: 'resident' is not allowed; allowed: a tuple of resi"),
        (
            "resident",
            "residnt",
            "line 4: PROTOCOLS: ('residnt',) is not allowed; allowed: a tuple of resident and as_p",
        ),
        ("(1, 8)", "(8, 1)", "line 2: SIZE_RANGE: (8, 1) is not allowed; allowed: the smallest and the largest size"),
        ("(1, 8)", "(0, 8)", "line 2: SIZE_RANGE: (0, 8) is not allowed"),
        ("(1, 8)", "(True, 8)", "line 2: SIZE_RANGE: (True, 8) is not allowed"),
        ('"features"', '" "', "line 1: SIZE_NAME: ' ' is not allowed"),
        ("(1, 8)", "8", "line 2: SIZE_RANGE: 8 is not allowed; allowed: the smallest and the largest size"),
        ("(1, 8)", "(1, 2, 8)", "line 2: SIZE_RANGE: (1, 2, 8) is not allowed"),
        ("None", "3", "line 3: DATASET: 3 is not allowed; allowed: None, or a key"),
        ('"features"', "None", "line 1: SIZE_NAME: None is not allowed; allowed: a text"),
    ],
)
def test_a_constant_of_another_kind_is_refused(module: Path, right: str, wrong: str, line: str) -> None:
    assert complaint(module, WHOLE.replace(right, wrong)).startswith(f"mine.py: {line}")


@pytest.mark.parametrize(
    ("constant", "allowed"),
    [
        ("GRANULARITY = 0", "a whole number of at least 1"),
        ("GRANULARITY = 16", "a whole number of at least 1, no more than the largest size"),
        ("SIZES = (2, 16)", "None, or a tuple of sizes within SIZE_RANGE"),
        ("SIZES = ()", "None, or a tuple of sizes"),
        ("BATCH_SIZES = (0,)", "None, or a tuple of whole numbers of at least 1"),
        ("VARIANTS = ('a b',)", "a tuple of names of letters, digits and _"),
        ("CLASSES = 1", "None, or a whole number of at least 2"),
    ],
)
def test_an_optional_constant_fits_the_others(module: Path, constant: str, allowed: str) -> None:
    name, _, value = constant.partition(" = ")
    message = complaint(module, f"{WHOLE}{constant}\n{FUNCTIONS}")
    shown = value.replace('"', "'")
    assert message.startswith(f"mine.py: line 5: {name}: {shown} is not allowed; allowed: {allowed}")


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ("", "mine.py: lacks build_model; add a function build_model(size) at the top level; config/README.md, "),
        ("def build_model(size): ...\n", "mine.py: lacks build; add a function build(cell, data, arithmetic) at"),
        ("class A:\n    def build_model(size): ...\n    def build(a, b, c): ...\n", "mine.py: lacks build_model; "),
        (FUNCTIONS.replace("(features)", "()"), "mine.py: line 5: build_model() is called with other arguments; allo"),
        (FUNCTIONS.replace("(cell, _data,", "(cell,"), "mine.py: line 6: build(cell, arithmetic) is called with other"),
        (
            FUNCTIONS.replace("arithmetic)", "arithmetic, *, more)"),
            "mine.py: line 6: build(cell, _data, arithmetic, *,",
        ),
        (FUNCTIONS + "return 3\n", "mine.py: line 7: not Python that can be parsed ('return' outside function)"),
        (FUNCTIONS + "def x(:\n", "mine.py: line 7: not Python that can be parsed (invalid syntax)"),
        (FUNCTIONS + "x = " + "(" * 5000 + ")" * 5000, "mine.py: "),
    ],
)
def test_what_a_module_must_define_is_looked_for_without_running_it(module: Path, functions: str, message: str) -> None:
    assert complaint(module, WHOLE + functions).startswith(message)


@pytest.mark.parametrize(
    "functions",
    [
        FUNCTIONS,
        "from no_such_package import build, make as build_model\n",
        "from no_such_package import *\n",
        "if True:\n    build_model = build = max\n",
        "def build_model(*sizes): ...\ndef build(cell, data, arithmetic, more=1, *, other=2): ...\n",
        "import no_such_package\n@no_such_package.cached\ndef build_model(a, b): ...\nbuild = build_model\n",
    ],
)
def test_functions_may_be_defined_in_any_way(module: Path, functions: str) -> None:
    module.write_text(WHOLE + functions)
    assert read_traits(module).size_range == (1, 8)


def test_a_workload_is_read_from_its_module(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "WORKLOADS_FOLDER", module.parent)
    module.write_text("")
    with pytest.raises(UserError, match=r"^mine\.py: lacks SIZE_NAME"):
        workload_traits("mine")

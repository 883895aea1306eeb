"""Reading and checking a config: files and command line are parsed alike, and no value is dropped or misread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossover.config.config_keys import ConfigKeys, Digits
from crossover.config.layers import Locator, check, joined, module_layers, read_layers, read_mapping, without_effect
from user_errors import error_line

COMMAND_LINE = Locator([("--config", {})])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.yaml"


TEXTS = ("2:30", "1:30.5", "010", "-007", "0b11", "1_000", "2020-01-01", "2020-01-01 10:00:00", "yes", "No", "OFF", "=")


@pytest.mark.parametrize("text", TEXTS)
def test_values_that_only_yaml_1_1_converts_are_strings(file: Path, text: str) -> None:
    file.write_text(f"a: {text}\nb: '{text}'\n")
    assert read_mapping(file) == {"a": text, "b": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("null", None),
        ("None", None),
        ("[cpu, 'null']", ["cpu", "null"]),
        ("{'cpu': 0.8, 'cuda': None}", {"cpu": 0.8, "cuda": None}),
    ],
)
def test_values_are_read_alike_from_a_file_and_the_command_line(file: Path, text: str, value: object) -> None:
    file.write_text(f"key: {text}\n")
    (of_file,), (of_line,) = read_layers([file], ())[:1], read_layers([], [f"key={text}"])
    assert (of_file, of_line) == (("mine.yaml", {"key": value}), ("--config", {"key": value}))


def test_entries_of_a_module_are_read_as_those_of_a_workflow() -> None:
    """Snakemake's config has texts for what is within lists and mappings; a module may have a config of its own."""
    entries = ["sizes=[2,3]", "trials=3", "effort={blocks_min: 20}"]
    given = {"sizes": ["2", "3"], "trials": 3, "effort": {"blocks_min": "20"}}
    name, values = module_layers(given, entries)[1]
    assert (name, values) == ("--config", {"sizes": [2, 3], "effort": {"blocks_min": 20}})
    own = module_layers({"sizes": [7]}, entries)
    assert own[1][1] == {}
    assert without_effect(module_layers(given, entries), entries, ["sizes", "trials"]) is None
    note = without_effect(own, [*entries, "mine=3"], ["sizes", "trials"])
    assert str(note).startswith("--config: sizes, trials: no effect, since the Snakefile gives this module a config of")


@pytest.mark.parametrize("entry", ["sizes=", "sizes= "])
def test_an_empty_entry_is_not_the_default(entry: str) -> None:
    """As of a variable of the shell without a value."""
    text = error_line(read_layers, [], ["trials=3", entry])
    assert text == "--config: sizes is empty; give a value, or remove sizes for its default"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !mine 3", "line 1, column 4: not valid YAML: could not determine a constructor for the tag '!mine'"),
        (
            "a: {m:[1]}",
            "line 1, column 6: not valid YAML: found unexpected ':'; write a space after each colon: {m: [1",
        ),
        ("1: a", "line 1, column 1: not valid YAML: key '1' is not a string; put it in quotes"),
        ("a: {b: 1, b: 2}", "line 1, column 11: not valid YAML: key 'b' is repeated; allowed: each key once"),
        ("a: " + "9" * 5000, "not valid YAML: Exceeds the limit (4300 digits)"),
        ("a: " + "[" * 3000 + "]" * 3000, "not valid YAML: maximum recursion depth exceeded"),
        ("a: 1\n---\na: 2", "line 2, column 1: not valid YAML: but found another document"),
    ],
)
def test_invalid_yaml_is_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    assert error_line(read_mapping, file).startswith(f"mine.yaml: {message}")


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to(path.name)])
def test_a_file_that_cannot_be_read_is_one_line(file: Path, make: Callable[[Path], object]) -> None:
    make(file)
    assert error_line(read_mapping, file).startswith("mine.yaml: cannot be read: ")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding_is_one_line(file: Path, encoding: str) -> None:
    file.write_bytes("title: größer".encode(encoding))
    assert error_line(read_mapping, file) == "mine.yaml: not a text file in UTF-8"


def test_a_key_given_twice_on_the_command_line_is_one_line() -> None:
    text = error_line(read_layers, [], ["trials=3", "results=a", "trials=5"])
    assert text == "--config: trials is given twice; allowed: each key once"
    assert "key 'a' is repeated" in error_line(read_layers, [], ["prices={a: x, a: y}"])


def test_model_and_studies_on_one_command_line_are_one_line() -> None:
    text = error_line(read_layers, [], ["model=net.py:build", "studies=disc_depth"])
    assert text.startswith("--config: model and studies are both given; allowed: one of them")
    assert read_layers([], ["model=null", "studies=disc_depth"])


@pytest.mark.parametrize(("key", "value"), [("studies", "hsf_width,disc_depth"), ("devices", "cpu,cuda")])
def test_the_message_for_several_values_without_brackets_shows_the_list(key: str, value: str) -> None:
    assert error_line(check, {key: value}, ConfigKeys, COMMAND_LINE).endswith(
        f"; allowed: one value, or a list, [{value}]"
    )
    assert error_line(check, {"sizes": "16,64"}, ConfigKeys, COMMAND_LINE).endswith("or a list, [16,64]")


def test_later_layers_replace_single_keys_and_are_named() -> None:
    layers = [
        ("config.yaml", {"trials": 3, "prices": {"cpu": 5, "cuda": 2}, "cluster": {"a": "x"}, "effort": "quick"}),
        ("quick.yaml", {"trials": 1, "prices": {"cpu": 3}, "cluster": None}),
        ("--config", {"prices": {"cuda": 1}}),
    ]
    values = joined(joined(layers[0][1], layers[1][1]), layers[2][1])
    assert values == {"trials": 1, "prices": {"cpu": 3, "cuda": 1}, "cluster": None, "effort": "quick"}
    keys = {
        ("trials",): "quick.yaml",
        ("prices", "cpu"): "quick.yaml",
        ("prices", "cuda"): "--config",
        ("prices", "mps"): "--config",
        ("effort", "timed_max_s"): "config.yaml",
        ("nowhere",): "config.yaml",
    }
    assert {key: Locator(layers)(key) for key in keys} == keys


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": 10**400}, "seed: 1000000000000"),
        ({"seed": "x" * 10_000}, "seed: 'xxxxxxxxx"),
        ({"x" * 10_000: 1}, "xxxxxxxxx"),
    ],
)
def test_a_long_value_is_truncated(values: dict[str, Any], message: str) -> None:
    text = error_line(check, values, Digits, COMMAND_LINE)
    assert text.startswith(f"--config: {message}")
    assert "..." in text


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31m", "a\x7f", "\ud800", "\ufffe", "x" * 2001])
def test_characters_that_a_page_cannot_have_are_refused(text: str) -> None:
    words = "allowed: a string of 1 to 2000 characters, without control characters"
    assert error_line(check, {"prices": {"currency": text}}, ConfigKeys, COMMAND_LINE).endswith(words)
    check({"prices": {"currency": "größer $ <b> {x}\n\tλ 😀"}}, ConfigKeys, COMMAND_LINE)


@pytest.mark.parametrize("results", ["results/quick/", "/a/b_c.d", "../runs", "my runs/ré+@,=1", ".hidden"])
def test_paths_that_every_tool_accepts_are_allowed_for_results(results: str) -> None:
    assert check({"results": results}, ConfigKeys, COMMAND_LINE).results == results


@pytest.mark.parametrize(
    "results", ["", "~/runs", "-x", "a\n", *(f"a{sign}" for sign in ":{}<>*?|\\$`;%'()#~😀"), "x" * 201]
)
def test_other_paths_are_refused_for_results(results: str) -> None:
    text = error_line(check, {"results": results}, ConfigKeys, COMMAND_LINE)
    assert " is not allowed; allowed: a path of letters, digits, spaces and . _ - + , = @ / (~ is not expanded)" in text

"""Reading a config: one reading of files and command line, and nothing that is dropped or taken for something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config.validation import Locator, check, joined, read_layers, read_mapping, read_text, read_yaml
from crossover.config.words import DEVICES, EXECUTIONS, PRECISIONS, PROTOCOLS
from crossover.errors import UserError

ROOT = Path(__file__).parents[3]
SCHEMA = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text())
COMMAND_LINE = Locator([("--config", {})])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.yaml"


def complaint(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


UNCLEAR = [
    *("2:30", "1:30.5", "010", "-007", "08", "0o10", "0b11", "1_000", "1_0.5", "1e3", "2.5e3", "-.5", "2020-01-01"),
    *("2020-13-45", "2020-01-01 10:00:00", "yes", "No", "on", "OFF", "="),
]


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_yaml_1_1_and_1_2_read_differently_is_refused(file: Path, text: str) -> None:
    file.write_text(f"trials: 3\nother: {text}\n")
    where = "mine.yaml: line 2, column 8: not valid YAML: "
    assert complaint(lambda: read_yaml(file)).startswith(f"{where}'{text}' is read in two ways, by YAML 1.1 and 1.2; ")
    in_list = complaint(lambda: read_layers([], [f"effort=[{text}]"]))
    assert in_list.startswith(f"--config: effort: line 1, column 2: not valid YAML: '{text}' is read in two ways")


@pytest.mark.parametrize("text", UNCLEAR)
def test_in_quotes_it_is_a_text(file: Path, text: str) -> None:
    file.write_text(f"a: '{text}'\nb: \"{text}\"\n")
    assert read_yaml(file) == {"a": text, "b": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0x1F", 31),
        (".5", 0.5),
        ("1.0e-3", 0.001),
        ("00.5", 0.5),
        ("", None),
        ("null", None),
        ("None", None),
        ("exp:1", "exp:1"),
        ("[cpu, 'null']", ["cpu", "null"]),
        ("{'cpu': 0.8, 'cuda': None}", {"cpu": 0.8, "cuda": None}),
    ],
)
def test_what_is_clear_is_read_alike_from_a_file_and_from_the_command_line(
    file: Path, text: str, value: object
) -> None:
    file.write_text(f"key: {text}\n")
    (of_file,), (of_line,) = read_layers([file], ())[:1], read_layers([], [f"key={text}"])
    assert (of_file, of_line) == (("mine.yaml", {"key": value}), ("--config", {"key": value}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!int '010'", "line 1, column 4: not valid YAML: tag 'tag:yaml.org,2002:int' is not allowed"),
        ("a: !mine 3", "line 1, column 4: not valid YAML: tag '!mine' is not allowed; write the value without it"),
        ("1: a", "line 1, column 1: not valid YAML: key '1' is not a text; put it in quotes"),
        ("? [a, b]\n: 3", "line 1, column 3: not valid YAML: key "),
        ("a: {b: 1, b: 2}", "line 1, column 11: not valid YAML: key 'b' is repeated; allowed: each key once"),
        ("a: " + "9" * 5000, "not valid YAML: a number of thousands of digits"),
        ("a: " + "[" * 3000 + "]" * 3000, "not valid YAML: nested too deeply"),
        ("a: 1\n---\na: 2", "line 2, column 1: not valid YAML: but found another document"),
        ("a: *b", "line 1, column 4: not valid YAML: found undefined alias 'b'"),
        ("a: \x00", "not valid YAML: unacceptable character"),
    ],
)
def test_what_a_reader_would_drop_or_cannot_hold_is_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    assert complaint(lambda: read_yaml(file)).startswith(f"mine.yaml: {message}")


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to(path.name)])
def test_a_file_that_cannot_be_read_is_one_line(file: Path, make: Callable[[Path], object]) -> None:
    make(file)
    assert complaint(lambda: read_yaml(file)).startswith("mine.yaml: cannot be read: ")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding_is_one_line(file: Path, encoding: str) -> None:
    file.write_bytes("title: größer".encode(encoding))
    assert complaint(lambda: read_yaml(file)) == "mine.yaml: not a text file in UTF-8"


def test_a_byte_order_mark_is_no_part_of_the_text(file: Path) -> None:
    file.write_bytes("title: größer".encode("utf-8-sig"))
    assert read_text(file) == "title: größer"
    assert read_mapping(file) == {"title": "größer"}


def test_a_key_given_twice_on_the_command_line_is_one_line() -> None:
    text = complaint(lambda: read_layers([], ["trials=3", "results=a", "trials=5"]))
    assert text == "--config: trials is given twice; allowed: each key once"
    assert "key 'a' is repeated" in complaint(lambda: read_layers([], ["prices={a: x, a: y}"]))


def test_the_last_layer_wins_key_by_key_and_is_named() -> None:
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
        ({"trials": 10**400}, "trials: 1000000000000"),
        ({"trials": "x" * 10_000}, "trials: 'xxxxxxxxx"),
        ({"x" * 10_000: 1}, "xxxxxxxxx"),
    ],
)
def test_a_long_value_is_cut(values: dict[str, Any], message: str) -> None:
    text = complaint(lambda: check(values, {**SCHEMA, "properties": _without_lists(SCHEMA)}, COMMAND_LINE))
    assert text.startswith(f"--config: {message}")
    assert "..." in text


def _without_lists(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties whose known names do not fill a line."""
    return {key: schema["properties"][key] for key in ("trials", "time_limit_s", "studies", "results")}


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31m", "a\x7f", "\ud800", "\ufffe", "x" * 2001])
def test_a_text_that_no_page_can_hold_is_refused(text: str) -> None:
    words = "allowed: null or a text, not empty of at most 2000 characters, none of them a control character"
    assert complaint(lambda: check({"prices": {"currency": text}}, SCHEMA, COMMAND_LINE)).endswith(words)
    check({"prices": {"currency": "größer $ <b> {x}\n\tλ 😀"}}, SCHEMA, COMMAND_LINE)


@pytest.mark.parametrize(
    ("results", "right"),
    [
        *((name, True) for name in ("results", "results/quick/", "/a/b_c.d", "../runs", "my runs/ré+@,=1", ".hidden")),
        *(
            (name, False)
            for name in ("~/runs", "a/~", "exp:1", "{x}", "<x>", "a*", "a?", "a|b", "a\\b", "$HOME", "`id`")
        ),
        *((name, False) for name in ("", "-x", "a;b", "a\n", "a%b", "s3://b", "'a'", "x" * 201, "(a)", "a#b", "😀")),
    ],
)
def test_the_results_are_a_path_that_every_tool_takes(results: str, right: bool) -> None:
    if right:
        check({"results": results}, SCHEMA, COMMAND_LINE)
    else:
        text = complaint(lambda: check({"results": results}, SCHEMA, COMMAND_LINE))
        assert " is not allowed; allowed: a path of letters, digits, spaces and . _ - + , = @ / (~ for" in text


def rules_of(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every rule of the schema with its path."""
    yield path, schema
    for key, part in schema.items():
        if key in ("properties", "$defs"):
            for name, rule in part.items():
                yield from rules_of(rule, f"{path}.{name}")
        elif key in ("items", "additionalProperties", "propertyNames") and isinstance(part, Mapping):
            yield from rules_of(part, f"{path}.{key}")
        elif key == "anyOf":
            for number, rule in enumerate(part):
                yield from rules_of(rule, f"{path}.{number}")


RULES = list(rules_of(SCHEMA))


def test_every_number_has_a_least_and_a_most_which_fits_where_it_goes() -> None:
    """Parquet's integers have 64 bits, seeds of NumPy and scikit-learn 32; a trial adds its number to the seed."""
    in_words = {".largest_batch.memory_limit"}  # a size with a unit, which the code checks
    bounds = {
        path: (rule.get("minimum", rule.get("exclusiveMinimum")), rule.get("maximum", rule.get("exclusiveMaximum")))
        for path, rule in RULES
        if {"integer", "number"}
        & set([rule.get("type")] if isinstance(rule.get("type"), str) else rule.get("type", []))
    }
    assert len(bounds) > 50
    assert {path for path, (least, most) in bounds.items() if least is None or most is None} == in_words
    assert all(0 <= least < most < 2**53 for path, (least, most) in bounds.items() if path not in in_words)
    seeds = [most for path, (_, most) in bounds.items() if path.endswith(".seed")]
    assert len(seeds) == 5
    trials = bounds[".trials"][1] + bounds[".effort.1.refinement.extra_trials"][1] + bounds[".study.quality.seeds"][1]
    assert all(seed + trials < 2**32 for seed in seeds)


@pytest.mark.parametrize("words", [PROTOCOLS, PRECISIONS, EXECUTIONS, DEVICES])
def test_every_key_with_words_of_an_axis_allows_all_of_them(words: tuple[str, ...]) -> None:
    lists = [rule["enum"] for _, rule in rules_of(SCHEMA) if isinstance(rule.get("enum"), list)]
    of_axis = [allowed for allowed in lists if set(allowed) <= set(words)]
    assert len(of_axis) > 1
    assert [sorted(allowed) for allowed in of_axis] == [sorted(words)] * len(of_axis)

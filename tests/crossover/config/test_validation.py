"""Reading a config: one reading of files and command line, and a mistake is one line that names its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config.validation import Locator, check, joined, read_layers, read_mapping, read_yaml

SCHEMA = yaml.safe_load((Path(__file__).parents[3] / "config" / "schema.yaml").read_text())
COMMAND_LINE = Locator([("--config", {})])
Complaint = Callable[[Callable[[], object]], str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.0e-3", 0.001), ("", None), ("None", None), ("exp:1", "exp:1"), ("{'cpu': 0.8, 'cuda': None}", None)],
)
def test_a_value_is_read_alike_from_a_file_and_from_the_command_line(file: Path, text: str, value: object) -> None:
    expected = {"key": {"cpu": 0.8, "cuda": None} if text.startswith("{") else value}
    file.write_text(f"key: {text}\n")
    assert read_layers([file], [f"key={text}"]) == [("mine.yaml", expected), ("--config", expected)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {b: 1, b: 2}", "line 1, column 11: not valid YAML: key 'b' is repeated; allowed: each key once"),
        ("a: !mine 3", "line 1, column 4: not valid YAML: could not determine a constructor for the tag '!mine'"),
        ("a: 1\n---\na: 2", "line 2, column 1: not valid YAML: but found another document"),
        ("a: " + "[" * 3000 + "]" * 3000, "not valid YAML: maximum recursion depth"),
        ("a: 2020-13-45", "not valid YAML: month must be in 1..12"),
        ("a: \x00", "not valid YAML: unacceptable character"),
    ],
)
def test_what_is_no_yaml_is_one_line(file: Path, complaint: Complaint, text: str, message: str) -> None:
    file.write_text(text)
    assert complaint(lambda: read_yaml(file)).startswith(f"mine.yaml: {message}")


def test_a_file_that_cannot_be_read_is_one_line(file: Path, complaint: Complaint) -> None:
    assert complaint(lambda: read_yaml(file)) == "mine.yaml: cannot be read: No such file or directory"
    file.write_bytes("title: größer".encode("latin-1"))
    assert complaint(lambda: read_yaml(file)) == "mine.yaml: not a text file in UTF-8"
    file.write_bytes("title: größer".encode("utf-8-sig"))
    assert read_mapping(file) == {"title": "größer"}


def test_a_key_given_twice_on_the_command_line_is_one_line(complaint: Complaint) -> None:
    text = complaint(lambda: read_layers([], ["trials=3", "results=a", "trials=5"]))
    assert text == "--config: trials is given twice; allowed: each key once"


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


@pytest.mark.parametrize("values", [{"trials": 10**400}, {"trials": "x" * 10_000}, {"studies": ["a"] * 5000}])
def test_a_long_value_is_cut(complaint: Complaint, values: dict[str, Any]) -> None:
    assert "..." in complaint(lambda: check(values, SCHEMA, COMMAND_LINE))


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31m", "\ud800", "\ufffe", "x" * 2001])
def test_a_text_that_no_page_can_hold_is_refused(complaint: Complaint, text: str) -> None:
    message = complaint(lambda: check({"prices": {"currency": text}}, SCHEMA, COMMAND_LINE))
    assert message.endswith("at most 2000 characters, none of them a control character")
    check({"prices": {"currency": "größer $ <b> {x}\n\tλ 😀"}}, SCHEMA, COMMAND_LINE)


@pytest.mark.parametrize(
    "results", ["", "~/runs", "{x}", "a*", "$HOME", "-x", "a;b", "a\n", "a%b", "s3://b", "x" * 201]
)
def test_the_results_are_a_path_that_every_tool_takes(complaint: Complaint, results: str) -> None:
    assert complaint(lambda: check({"results": results}, SCHEMA, COMMAND_LINE)).startswith("--config: results: ")


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
    bounds = {
        path: (rule.get("minimum", rule.get("exclusiveMinimum")), rule.get("maximum", rule.get("exclusiveMaximum")))
        for path, rule in RULES
        if {"integer", "number"}
        & set([rule.get("type")] if isinstance(rule.get("type"), str) else rule.get("type", []))
    }
    assert len(bounds) > 50
    assert {path for path, (least, most) in bounds.items() if least is None or most is None} == set()
    assert all(0 <= least < most < 2**62 for least, most in bounds.values())
    seeds = [most for path, (_, most) in bounds.items() if path.endswith(".seed")]
    assert len(seeds) == 4
    trials = bounds[".trials"][1] + bounds[".effort.1.refinement.extra_trials"][1] + bounds[".study.quality.seeds"][1]
    assert all(seed + trials < 2**32 for seed in seeds)

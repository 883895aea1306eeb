"""The layers of a config, files and the command line: read YAML, and check the keys. Each error is one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs lack it
from yaml.resolver import BaseResolver

from crossover.config.key_types import PROBLEM, checker, json_schema
from crossover.errors import UserError, allowed_names, shown_path, shown_text, shown_value

T = TypeVar("T")


class _Loader(Composer, CParser, SafeConstructor, BaseResolver):
    """A safe loader that refuses repeated keys and keys that are not strings.

    Unlike in YAML 1.1, unquoted 2:30, 010, yes and 2020-01-01 are strings, and 1e3 is a number.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)  # ten times as fast as the pure Python loader
        for part in (Composer, SafeConstructor, BaseResolver):
            part.__init__(self)

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            problem = None
            if key.tag not in (self.DEFAULT_SCALAR_TAG, MERGE):
                problem = f"key {shown_value(key.value)} is not a string; put it in quotes"
            elif key.value in keys:
                problem = f"key {shown_value(key.value)} is repeated; allowed: each key once"
            if problem:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            keys.add(key.value)
        return node


MERGE = "tag:yaml.org,2002:merge"
# Snakemake passes a profile's null as None.
for tag, pattern in {
    "tag:yaml.org,2002:null": r"(~|null|Null|NULL|None|)$",
    "tag:yaml.org,2002:bool": r"(true|True|TRUE|false|False|FALSE)$",
    "tag:yaml.org,2002:int": r"([-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$",
    "tag:yaml.org,2002:float": r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+|[0-9]+\.[0-9]*)"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$",
    MERGE: r"<<$",
}.items():
    _Loader.add_implicit_resolver(tag, re.compile(pattern), None)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark; raises UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{shown_path(path)}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown_path(path)}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def _load(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # type: ignore[arg-type]  # the stubs allow only PyYAML's loaders
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = "; write a space after each colon: {m: [1, 2]}" if error.problem == "found unexpected ':'" else ""
        raise UserError(f"{where}: {line}not valid YAML: {error.problem or error.context}{hint}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level must be a mapping; raises UserError, usually with the line."""
    values = _load(read_text(path), shown_path(path))
    if not isinstance(values, dict):
        kind = "nothing" if values is None else type(values).__name__
        raise UserError(f"{shown_path(path)}: {kind} at the top level; allowed: keys with values, such as `trials: 3`")
    return values


Layer = tuple[str, Mapping[str, Any]]
"""The name of a source of config values, for messages, and its values."""


def read_layers(files: Sequence[Path], entries: Sequence[str]) -> list[Layer]:
    """The layers of a config: each file, then the `key=value` entries of the command line. Raises UserError.

    Snakemake reads them too, but parses values on the command line differently from values in a file.
    """
    given: dict[str, Any] = {}
    for entry in entries:
        key, _, text = entry.partition("=")
        if key in given:
            raise UserError(f"--config: {key} is given twice; allowed: each key once")
        if not text.strip():
            raise UserError(f"--config: {key} is empty; give a value, or remove {key} for its default")
        given[key] = _load(text, f"--config: {key}")
    if given.get("model") is not None and given.get("studies") is not None:
        raise UserError(
            "--config: model and studies are both given; allowed: one of them, or the path of a study file that names "
            "the model in `studies`"
        )
    return [*((shown_path(file), read_mapping(file)) for file in files), ("--config", given)]


def module_layers(config: Mapping[str, Any], entries: Sequence[str]) -> list[Layer]:
    """The layers of a module's config, in which Snakemake has left numbers within `key=value` entries as texts.

    An entry that is not in the config, which the module may give itself, has no effect.
    """
    [(name, given)] = read_layers((), entries)
    parts = (entry.partition("=") for entry in entries)
    texts = {key: yaml.load(text, yaml.BaseLoader) for key, _, text in parts}
    return [
        ("the module's config", config),
        (name, {key: given[key] for key in given if config.get(key) == texts[key]}),
    ]


def without_effect(layers: Sequence[Layer], entries: Sequence[str], keys: Collection[str]) -> str | None:
    """A note on the `key=value` entries with one of these `keys` that a module's config does not have; None without."""
    [(_, given)], (_, config), (_, taken) = read_layers((), entries), layers[0], layers[-1]
    ignored = [key for key in given if key in keys and key not in taken and config.get(key) != given[key]]
    own = "the Snakefile gives this module a config of its own; change it there"
    return f"--config: {', '.join(ignored)}: no effect, since {own}" if ignored else None


def joined(values: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; where both have a value, use that of `new`."""
    both = {key for key in new if isinstance(new[key], Mapping) and isinstance(values.get(key), Mapping)}
    return {**values, **new, **{key: joined(values[key], new[key]) for key in both}}


class Locator:
    """Names the layer that sets a key: the last one with the key or the key's longest prefix, else the first layer."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers

    def __call__(self, key: Sequence[str | int]) -> str:
        for length in range(len(key), 0, -1):
            names = [name for name, values in self.layers if _has(values, key[:length])]
            if names:
                return names[-1]
        return self.layers[0][0]


def _has(node: Any, key: Sequence[str | int]) -> bool:
    for part in key:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def check(values: Mapping[str, Any], kind: Callable[..., T], locate: Locator) -> T:
    """The values, completed with defaults; raises UserError if a value is not allowed."""
    try:
        checked: T = checker(kind).validate_python(values)
        return checked
    except ValidationError as error:
        details = error.errors(include_url=False)
    # Pydantic reports an error for each alternative. Show those deepest in the data, or the one of a validator of ours.
    paths = [_data_path(detail, values) for detail in details]
    path = max(paths, key=len)
    found = [detail for detail, other in zip(details, paths, strict=True) if other == path]
    found = [detail for detail in found if detail["type"] == PROBLEM][:1] or found
    # A list of one wrong value is too short as well.
    found = [detail for detail in found if detail["type"] != "too_short" or not detail["input"]] or found
    raise UserError(f"{locate(path)}: {_problem(found, path, kind)}")


def _data_path(detail: ErrorDetails, values: Any) -> list[str | int]:
    """The keys and indices of an error's value, without pydantic's names for the alternatives that it tried."""
    path: list[str | int] = []
    part: Any
    for part in detail["loc"]:
        if (isinstance(values, Mapping) and part in values) or (isinstance(values, list) and isinstance(part, int)):
            path.append(part)
            values = values[part]
    return [*path, detail["loc"][-1]] if detail["type"] == "missing" else path


WORDS = {
    "bool_type": "true or false",
    "tuple_type": "a list",
    **dict.fromkeys(("dataclass_type", "dict_type", "mapping_type", "model_type"), "a mapping of keys to values"),
    "too_short": "a list of {min_length} or more values",
    "too_long": "a list of up to {max_length} values",
}
"""What is allowed, by the type of an error whose message by pydantic names a type of Python."""


def _problem(found: Sequence[ErrorDetails], path: Sequence[str | int], kind: Any) -> str:
    """The key and what is wrong with its value, from the errors of its alternatives."""
    detail = found[0]
    where = "".join(f"{shown_text(str(part))}." for part in path)[:-1]
    start = f"{where}: " if where else ""
    if detail["type"] == "missing":
        return f"{start}missing; add this key"
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{start}unknown key; {allowed_names(str(path[-1]), _keys_at(json_schema(kind), path[:-1]))}"
    if detail["type"] == PROBLEM:
        return f"{start}{detail['msg']}"
    texts = [WORDS[d["type"]].format(**d.get("ctx", {})) if d["type"] in WORDS else d["msg"] for d in found]
    allowed = ", or ".join(dict.fromkeys(text.removeprefix("Input should be ") for text in texts))
    value = detail["input"]
    shown = json.dumps(value) if value is None or isinstance(value, bool) else shown_value(value)
    return f"{start}{shown} is not allowed; allowed: {allowed}"


def _keys_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> list[str]:
    """The keys that the mapping at a path may have."""
    options = schema.get("anyOf", [schema])
    if not path:
        return [key for option in options for key in option.get("properties", ())]
    part, *further = path
    inner = [
        option.get("items")
        if isinstance(part, int)
        else option.get("properties", {}).get(part) or option.get("additionalProperties")
        for option in options
    ]
    return [key for option in inner if isinstance(option, Mapping) for key in _keys_at(option, further)]

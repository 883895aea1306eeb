"""The configuration: read, completed with defaults, and checked before any job starts."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from jsonschema.exceptions import ValidationError, best_match

from crossover.discovery import Machine
from crossover.errors import UserError
from crossover.studies import Effort, Study, check_sizes, known_workloads

TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}


@dataclass(frozen=True)
class Configuration:
    """The checked config."""

    studies: tuple[Study, ...]
    devices: tuple[str, ...] | None
    """None: the devices of this machine."""
    check_devices: bool
    trials: int
    seed: int
    cpu_threads: int | str
    time_limit_s: float
    results: str
    effort: Effort
    datasets: Mapping[str, Mapping[str, Any]]


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raise UserError naming the line where it is missing or malformed."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{_shown(path)}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{_shown(path)}: not a text file in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{_shown(path)}: {where}not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{_shown(path)}: not valid YAML: {' '.join(str(error).split())}") from None


def read_configuration(config: Mapping[str, Any], folder: Path, sources: Sequence[Path]) -> Configuration:
    """Check a config and the studies that it names.

    `config` is the merged mapping, `folder` the config folder with schema.yaml and studies/,
    `sources` the files that the mapping was merged from, the last one winning. Raises UserError.
    """
    schema = read_yaml(folder / "schema.yaml")
    locate = _Locator(sources, config)
    complete = _checked(_as_typed(config, schema), schema, locate)
    _check_csv(complete["datasets"]["higgs"]["csv"], locate)
    studies = tuple(_read_study(name, folder, schema["$defs"]["study"], locate) for name in complete["studies"])
    devices = complete["devices"]
    return Configuration(
        studies=studies,
        devices=None if devices == "auto" else tuple(devices),
        check_devices=complete["check_devices"],
        trials=int(complete["trials"]),
        seed=int(complete["seed"]),
        cpu_threads=complete["cpu_threads"],
        time_limit_s=float(complete["time_limit_s"]),
        results=complete["results"].rstrip("/"),
        effort=Effort(**complete["effort"]),
        datasets=complete["datasets"],
    )


def check_device_list(wanted: Sequence[str], machine: Machine) -> None:
    """Raise UserError where a wanted device cannot be used on this machine."""
    for device in wanted:
        if device not in machine.devices:
            raise UserError(
                f"devices: '{device}' cannot be used on this machine; allowed here: auto, {', '.join(machine.devices)} "
                f"({machine.note or 'no other device was found'}); "
                "for a cluster set check_devices to false, as profiles/slurm does"
            )


def _read_study(name: str, folder: Path, schema: Mapping[str, Any], locate: _Locator) -> Study:
    known = sorted(path.stem for path in (folder / "studies").glob("*.yaml"))
    if name not in known:
        raise UserError(f"{locate(('studies',))}: studies: '{name}' is unknown; {_allowed_names(name, known)}")
    file = folder / "studies" / f"{name}.yaml"
    shown = _shown(file)
    values = read_yaml(file)
    complete = _checked(values, schema, _Locator([file], values))
    workloads = known_workloads()
    if complete["workload"] not in workloads:
        raise UserError(
            f"{shown}: workload: '{complete['workload']}' is unknown; {_allowed_names(complete['workload'], workloads)}"
        )
    published = complete["published"]
    if published and published["run_times"]:
        table = folder / "published" / published["run_times"]["file"]
        if not table.is_file():
            raise UserError(f"{shown}: published.run_times.file: {_shown(table)} does not exist")
        if complete["steps_per_run"] is None:
            raise UserError(f"{shown}: steps_per_run: needed to compare with published.run_times")
    lists = ("sizes", "batch_sizes", "protocols", "precisions", "executions")
    fields: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in complete.items()}
    fields["sizes"] = tuple(sorted(int(size) for size in complete["sizes"]))
    study = Study(name=name, **fields)
    check_sizes(study, shown)
    return study


def _check_csv(csv: Mapping[str, Any] | None, locate: _Locator) -> None:
    for role in ("signal", "background") if csv else ():
        path = Path(csv[role])  # type: ignore[index]
        if not path.is_file():
            key = ("datasets", "higgs", "csv", role)
            raise UserError(f"{locate(key)}: {'.'.join(key)}: {path} does not exist; give the path of a CSV file")


def _checked(values: Any, schema: Mapping[str, Any], locate: _Locator) -> dict[str, Any]:
    error = best_match(jsonschema.Draft202012Validator(schema).iter_errors(values))
    if error is not None:
        raise UserError(_one_line(error, locate))
    return _with_defaults(values, schema)


def _as_typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """Read texts as YAML where the schema wants no text: `--config` hands over numbers and booleans as texts."""
    if isinstance(value, Mapping):
        rules = schema.get("properties", {})
        return {key: _as_typed(part, rules.get(key, {})) for key, part in value.items()}
    if isinstance(value, str) and {"anyOf", "type"} & schema.keys() and "string" not in schema.get("type", ()):
        with suppress(yaml.YAMLError):
            return yaml.safe_load(value)
    return value


def _with_defaults(values: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    complete = dict(values)
    for key, rule in schema.get("properties", {}).items():
        if key not in complete and "default" in rule:
            complete[key] = rule["default"]
        if isinstance(complete.get(key), Mapping):
            complete[key] = _with_defaults(complete[key], rule)
    return complete


class _Locator:
    """Finds the file that a value of the merged config comes from: the last one that holds it."""

    def __init__(self, files: Sequence[Path], merged: Any) -> None:
        self.files = files
        self.merged = merged

    def __call__(self, key: Sequence[str | int]) -> str:
        value = _value_at(self.merged, key)
        for file in reversed(self.files):
            if _value_at(read_yaml(file), key) == value:
                return _shown(file)
        return "--config" if len(self.files) > 1 or key else _shown(self.files[0])


def _value_at(node: Any, key: Sequence[str | int]) -> Any:
    for part in key:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return node


_NOTHING = object()


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _one_line(error: ValidationError, locate: _Locator) -> str:
    parent = error.parent
    if isinstance(parent, ValidationError) and error.validator in ("type", "const", "minimum"):
        error = parent  # every alternative of an anyOf failed: name them all
    path = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        key = ".".join(map(str, [*path, unknown]))
        return f"{locate([*path, unknown])}: {key}: unknown key; {_allowed_names(str(unknown), known)}"
    key = ".".join(map(str, path))
    where = f"{locate(path)}: {key}" if key else locate(path)
    if error.validator == "required":
        missing = next(name for name in schema["required"] if name not in value)
        return f"{where}: key '{missing}' is missing; {schema['properties'][missing]['description']}"
    if error.validator == "uniqueItems":
        return f"{where}: {value!r} names something twice; allowed: each value once"
    if error.validator == "minItems" and not value:
        return f"{where}: the list is empty; allowed: {_allowed(schema)}"
    return f"{where}: {value!r} is not allowed; allowed: {_allowed(schema)}"


def _allowed(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words."""
    if "anyOf" in schema:
        return ", or ".join(_allowed(option) for option in schema["anyOf"])
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    names = schema.get("type", "object")
    words = " or ".join(TYPE_WORDS[name] for name in ([names] if isinstance(names, str) else names))
    bounds = [
        f"{sign} {schema[bound]}"
        for bound, sign in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if bound in schema
    ]
    text = " ".join([words, " and ".join(bounds)]).strip()
    if "pattern" in schema:
        text += f" that matches {schema['pattern']}"
    if schema.get("minLength"):
        text += ", not empty"
    if "items" in schema:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        count = f"{low}" if low == high else f"{low} or more"
        text += f" of {count} values, each {_allowed(schema['items'])}"
    return text


def _allowed_names(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"allowed: {', '.join(known)}{hint}"

"""The keys of a config and of a study: their limits, and the JSON schema made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config.config_keys import ConfigKeys
from crossover.config.key_types import json_schema
from crossover.config.study import StudyFile

CONFIG = Path(__file__).parents[3] / "config"


def numbers(rule: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema of every number within a schema, with its path."""
    if rule.get("type") in ("integer", "number"):
        yield path, rule
    for key, part in rule.get("properties", {}).items():
        yield from numbers(part, f"{path}.{key}")
    for part in (rule.get("items"), rule.get("additionalProperties"), *rule.get("anyOf", ())):
        if isinstance(part, Mapping):
            yield from numbers(part, path)


def test_every_number_has_bounds_that_its_users_accept() -> None:
    """Integers in Parquet have 64 bits, seeds of NumPy and scikit-learn 32. A trial adds its number to the seed."""
    rules = {**dict(numbers(json_schema(ConfigKeys), "")), **dict(numbers(json_schema(StudyFile), "study"))}
    bounds = {
        path: (rule.get("minimum", rule.get("exclusiveMinimum")), rule.get("maximum", rule.get("exclusiveMaximum")))
        for path, rule in rules.items()
    }
    assert len(bounds) > 50
    assert all(None not in ends and 0 <= ends[0] < ends[1] < 2**53 for ends in bounds.values())
    seeds = [most for path, (_, most) in bounds.items() if path.endswith(".seed")]
    assert len(seeds) == 5
    trials = bounds[".trials"][1] + bounds[".effort.refinement.extra_trials"][1] + bounds["study.quality.seeds"][1]
    assert all(seed + trials < 2**32 for seed in seeds)


def schema_file() -> str:
    """The text of config.schema.yaml, which editors use to check and complete configs and studies."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Crossover configuration",
        **json_schema(ConfigKeys),
        "$defs": {"study": json_schema(StudyFile)},
    }
    text = yaml.safe_dump(schema, sort_keys=False, width=120, default_flow_style=None)
    origin = "# Generated from config_keys.py and study.py; to regenerate, delete this file and run"
    return f"{origin} tests/crossover/config/test_keys.py.\n{text}"


def test_the_schema_for_editors_is_current() -> None:
    """If the file is missing, it is written."""
    path = CONFIG.parent / "workflow" / "schemas" / "config.schema.yaml"
    if not path.exists():
        path.write_text(schema_file(), encoding="utf-8")
        pytest.fail(f"{path} was missing and is written anew: read it, and run this test again")
    assert path.read_text(encoding="utf-8") == schema_file()


def test_config_yaml_has_every_key_in_the_order_of_the_schema() -> None:
    assert list(yaml.safe_load((CONFIG / "config.yaml").read_text())) == [*json_schema(ConfigKeys)["properties"]]

"""The profiles and environments, checked without a cluster or conda."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.cli import get_argument_parser
from snakemake.resources import Resources
from snakemake_executor_plugin_slurm import ExecutorSettings

from workflow_copy import ROOT

PROFILES = ["default", "slurm"]
FIRST_LOOK = ROOT / "docs" / "tutorials" / "first-look.md"
ON_NODES = {"make_dataset", "measure_cell", "find_largest_batch", "train_model", "probe_roofs"}
"""The rules whose jobs run on a cluster; the others compute from rows in seconds."""


def profile(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "profiles" / name / "profile.yaml").read_text())
    return read


@pytest.mark.parametrize("name", PROFILES)
def test_every_entry_of_a_profile_is_an_option_of_snakemake_or_of_its_executor(name: str) -> None:
    of_snakemake = {option[2:] for action in get_argument_parser()._actions for option in action.option_strings}
    of_slurm = {f"slurm-{field.name.replace('_', '-')}" for field in fields(ExecutorSettings)}
    assert profile(name)
    assert profile(name).keys() <= of_snakemake | (of_slurm if name == "slurm" else set())


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_contain_no_config_that_a_users_file_could_not_override(name: str) -> None:
    """`config` would override every --configfile, and any --config on the command line drops it."""
    assert not {"config", "configfile"} & profile(name).keys()


def rules() -> dict[str, str]:
    pattern = re.compile(r"^(?:rule|checkpoint) (\w+):\n(.*?)(?=^\w|\Z)", flags=re.MULTILINE | re.DOTALL)
    return {name: text for path in (ROOT / "rules").glob("*.smk") for name, text in pattern.findall(path.read_text())}


def test_only_rules_that_compute_from_rows_are_local() -> None:
    assert {name for name, text in rules().items() if "localrule: True" not in text} == ON_NODES
    assert set(profile("slurm")["set-resources"]) == ON_NODES - {"make_dataset"}


def test_no_default_resource_on_slurm_depends_on_the_sizes_of_inputs() -> None:
    """Snakemake (9.27) evaluates such a default while it builds the graph, with a warning about a coroutine."""
    by_inputs = {name for name, value in Resources.DEFAULTS["full"].items() if "input." in value}
    given = {entry.partition("=")[0].removesuffix("_mb") for entry in profile("slurm")["default-resources"]}
    assert by_inputs
    assert by_inputs <= given
    assert not any("input." in entry for entry in profile("slurm")["default-resources"])


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^\s*(?:- )?([\w-]+)==(\S+)$", path.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("name", ["benchmark.yaml", "analysis.yaml"])
def test_conda_environments_have_the_pins_of_requirements(name: str) -> None:
    path = ROOT / "envs" / name
    environment = yaml.safe_load(path.read_text())
    assert environment["channels"] == ["conda-forge"]
    *packages, with_pip = environment["dependencies"]
    assert any(re.fullmatch(r"python=3\.\d+", package) for package in packages)
    assert "pip" in packages
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", pin) for pin in with_pip["pip"])
    assert pins(path)
    assert pins(path).items() <= pins(ROOT / "requirements.txt").items()


def test_the_lock_has_the_pins_of_requirements_with_hashes_and_without_torch() -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = dict(re.findall(r"^([\w-]+)==(.*(?:\n    .+)+)", text, flags=re.MULTILINE))
    wanted = {name: version for name, version in pins(ROOT / "requirements.txt").items() if name != "torch"}
    assert {name: entries[name].split()[0] for name in wanted} == wanted
    assert "torch" not in entries
    assert all("--hash=sha256:" in entry for entry in entries.values())
    first = f"pip install torch=={pins(ROOT / 'requirements.txt')['torch']} && "
    assert f"\n{first}pip install --require-hashes -r requirements.lock\n" in FIRST_LOOK.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.match(r"[\w-]+==[\w.]+ |    --hash=sha256:[0-9a-f]{64}( |$)", line) for line in lines)  # no URL


def test_the_image_follows_the_readme() -> None:
    text = (ROOT / "Dockerfile").read_text()
    (installation,) = re.findall(r"^RUN (.*)$", text, flags=re.MULTILINE)
    (command,) = re.findall(r"^CMD (.*)$", text, flags=re.MULTILINE)
    assert f"\n{installation} && {' '.join(json.loads(command))}\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", ["Dockerfile", "envs/benchmark.yaml", "envs/analysis.yaml"])
def test_images_and_environments_use_a_supported_python(path: str) -> None:
    (minor,) = re.findall(r"python[=:]3\.(\d+)", (ROOT / path).read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert int(minor) >= int(project["project"]["requires-python"].removeprefix(">=3."))
    assert project["tool"]["ruff"]["target-version"] == project["project"]["requires-python"].replace(">=3.", "py3")
    assert f">={project['tool']['mypy']['python_version']}" == project["project"]["requires-python"]


def test_the_github_workflow_has_the_steps_of_ci_run() -> None:
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())["jobs"]["ci"]
    commands = [step["run"] for step in ci["steps"] if step.get("run", "").startswith(".ci/")]
    assert commands == re.findall(r"^\.ci/.*$", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f">={ci['strategy']['matrix']['python'][0]}" == project["requires-python"]


def test_every_import_is_pinned_in_requirements() -> None:
    packages = {"sklearn": "scikit-learn", "pynvml": "nvidia-ml-py", "yaml": "pyyaml"}
    packages |= {"markupsafe": "jinja2", "pydantic_core": "pydantic"}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "scripts").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    scripts = {path.stem for path in (ROOT / "scripts").glob("*.py")} | {"crossover"}
    third_party = {name.split(".")[0] for name in names} - scripts - sys.stdlib_module_names
    assert {packages.get(name, name) for name in third_party} <= set(pins(ROOT / "requirements.txt"))

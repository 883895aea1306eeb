"""The profiles and the environments, as far as they can be checked where neither cluster nor conda is."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.cli import get_argument_parser
from snakemake_executor_plugin_slurm import ExecutorSettings

from house import ROOT, House

KUBERNETES = {
    "namespace",
    "cpu-scalar",
    "service-account-name",
    "privileged",
    "persistent-volumes",
    "omit-job-cleanup",
}
"""Settings of snakemake-executor-plugin-kubernetes 0.5.1, which needs not be installed here."""

PROFILES = sorted(path.parent.name for path in (ROOT / "profiles").glob("*/profile.yaml"))


def profile(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "profiles" / name / "profile.yaml").read_text())
    return read


def settings(plugin: Any) -> set[str]:
    return {field.name.replace("_", "-") for field in fields(plugin)}


def own_settings(executor: str) -> set[str]:
    """Command-line options of an executor plugin."""
    names = {"slurm": settings(ExecutorSettings), "kubernetes": KUBERNETES}.get(executor, set())
    return {f"{executor}-{name}" for name in names}


def test_there_is_a_profile_for_each_place() -> None:
    assert PROFILES == ["default", "kubernetes", "slurm"]


@pytest.mark.parametrize("name", PROFILES)
def test_every_entry_of_a_profile_is_an_option_of_snakemake_or_of_its_executor(name: str) -> None:
    of_snakemake = {option[2:] for action in get_argument_parser()._actions for option in action.option_strings}
    entries = profile(name)
    assert entries
    assert entries.keys() - of_snakemake - own_settings(entries.get("executor", "")) == set()


@pytest.mark.parametrize("name", PROFILES)
def test_every_entry_of_a_profile_has_a_comment(name: str) -> None:
    lines = (ROOT / "profiles" / name / "profile.yaml").read_text().splitlines()
    groups = "\n".join(lines).split("\n\n")
    for entry in profile(name):
        (group,) = [text for text in groups if re.search(rf"^{entry}:", text, flags=re.MULTILINE)]
        assert group.startswith("#"), entry


def test_a_run_is_planned_where_only_a_bucket_is_shared(tmp_path: Path) -> None:
    """A folder stands in for the bucket, and the executor, which has no part in a plan, is left out."""
    house = House(tmp_path / "house")
    house.config(studies=["disc_depth", "hsf_width", "quality"], devices=["cpu", "cuda"], cpu_threads=8)
    path = house.path / "profiles" / "kubernetes" / "profile.yaml"
    kept = {key: value for key, value in profile("kubernetes").items() if "kubernetes" not in f"{key} {value}"}
    path.write_text(yaml.safe_dump(kept | {"default-storage-provider": "fs", "default-storage-prefix": "bucket"}))
    for part in ("scripts", "config", "report"):
        shutil.copytree(house.path / part, house.path / "bucket" / part)
    asked = ["all", "quality", "largest_batches"]
    planned = house.would_run("--profile", "profiles/kubernetes", *asked)
    assert planned["measure_cell"] > 0
    assert planned == house.would_run(*asked, "--config", "check_devices=false")


@pytest.mark.parametrize("name", PROFILES)
def test_what_to_measure_is_said_where_a_users_file_can_say_otherwise(name: str) -> None:
    """A profile's `config` beats every --configfile, and any --config on the command line drops it."""
    assert not {"config", "configfile"} & profile(name).keys()


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_a_clusters_profile_counts_jobs(name: str) -> None:
    """By which the workflow knows, before it knows its executor, that they run elsewhere."""
    assert profile(name)["jobs"] > 1
    assert "cores" not in profile(name)


def rules() -> dict[str, str]:
    """Text of every rule, by its name."""
    pattern = re.compile(r"^(?:rule|checkpoint) (\w+):\n(.*?)(?=^\w|\Z)", flags=re.MULTILINE | re.DOTALL)
    return {name: text for path in (ROOT / "rules").glob("*.smk") for name, text in pattern.findall(path.read_text())}


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_resources_are_set_for_the_rules_that_measure(name: str) -> None:
    measuring = {rule for rule, text in rules().items() if "gpu=" in text}
    assert "measure_cell" in measuring
    assert set(profile(name)["set-resources"]) == measuring


@pytest.mark.parametrize(
    ("device", "partition", "extra"),
    [("cpu", "cpu", "--exclusive"), ("cpu-half", "cpu", "--exclusive"), ("cuda", "gpu", ""), ("xpu", "gpu", "")],
)
def test_cpu_cells_have_a_node_and_others_go_where_gpus_are(device: str, partition: str, extra: str) -> None:
    class Wildcards:
        pass

    wildcards = Wildcards()
    wildcards.device = device  # type: ignore[attr-defined]
    of_a_cell = profile("slurm")["set-resources"]["measure_cell"]
    assert eval(of_a_cell["slurm_partition"], {"wildcards": wildcards}) == partition
    assert eval(of_a_cell["slurm_extra"], {"wildcards": wildcards}) == extra
    assert of_a_cell["tasks_per_gpu"] == 1


def test_only_what_computes_from_rows_stays_where_snakemake_runs() -> None:
    texts = rules()
    listed = set(re.findall(r"^    (\w+),$", (ROOT / "rules" / "local.smk").read_text(), flags=re.MULTILINE))
    local = listed | {name for name, text in texts.items() if "localrule: True" in text}
    on_nodes = {"make_dataset", "measure_cell", "find_largest_batch", "train_model", "check_timer", "check_isolation"}
    assert listed <= texts.keys()
    assert texts.keys() - local == on_nodes


def test_the_kubernetes_plugin_has_the_settings_that_the_tests_know() -> None:
    plugin = importlib.util.find_spec("snakemake_executor_plugin_kubernetes")
    if plugin is None or plugin.origin is None:
        pytest.skip("snakemake-executor-plugin-kubernetes is not installed")
    tree = ast.parse(Path(plugin.origin).read_text(encoding="utf-8"))
    (declared,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ExecutorSettings"]
    names = {node.target.id for node in declared.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert {name.replace("_", "-") for name in names} == KUBERNETES


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_environment_is_one_that_conda_reads(path: Path) -> None:
    environment = yaml.safe_load(path.read_text())
    assert set(environment) == {"channels", "dependencies"}
    assert environment["channels"] == ["conda-forge"]
    *packages, with_pip = environment["dependencies"]
    assert any(re.fullmatch(r"python=3\.\d+", package) for package in packages)
    assert "pip" in packages
    assert list(with_pip) == ["pip"]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", pin) for pin in with_pip["pip"])

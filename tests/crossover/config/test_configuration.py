"""The config as a whole: keys, presets, and the file or option that sets a value."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from crossover.config.claim_forms import RatioWithin, SameQuality, selects
from crossover.config.configuration import DOUBLINGS, read_configuration, real_files
from crossover.config.layers import read_layers
from crossover.config.studies import PRESETS, Effort
from crossover.config.words import DEVICES, ranks_of_side
from crossover.config.workloads import workload_traits
from crossover.datasets import is_generated
from user_errors import error_line

CONFIG = Path(__file__).parents[3] / "config"
STUDIES = sorted(file.stem for file in (CONFIG / "studies").glob("*.yaml"))


def shipped(*names: str, **changes: Any) -> Any:
    layers = read_layers([CONFIG / f"{name}.yaml" for name in names], ())
    return read_configuration([*layers, ("changes", changes)], CONFIG)


def test_config_yaml_has_the_defaults() -> None:
    default = shipped("config")
    assert default == read_configuration([(default.devices_from, {})], CONFIG)


def test_the_pairs_to_refine_of_a_run_are_those_of_its_studies_without_their_own() -> None:
    effort = {"refinement": {"pairs": ["plane"]}}
    first, second = shipped("config", studies=["batch_mlp", "int8_batch"], effort=effort).studies
    assert [[*study.refinement["pairs"]] for study in (first, second)] == [["plane"], ["variant"]]
    (as_usual,) = shipped("config", studies=["batch_mlp"]).studies
    assert "pairs" not in as_usual.refinement


def test_full_yaml_has_all_studies_except_rules_of_thumb_and_those_on_generated_rows_or_several_gpus() -> None:
    config = shipped("config", studies=STUDIES)
    without_verdict = {
        study.name
        for study in config.studies
        if study.quality
        and (dataset := workload_traits(study.workload).dataset)
        and is_generated(dataset, config.datasets[dataset])
    }
    assert without_verdict == {"hsf_quality"}
    on_several = {study.name for study in config.studies if max(map(ranks_of_side, study.devices or ("cpu",))) > 1}
    rules = {study.name for study in shipped("config", "rules_of_thumb").studies}
    full = {study.name for study in shipped("config", "full").studies}
    assert full == {*STUDIES} - without_verdict - on_several - rules


def test_the_shipped_claims_select_cells_that_their_studies_measure() -> None:
    for study in shipped("config", studies=STUDIES).studies:
        cells = [cell.values for cell in study.cells(DEVICES)]
        for claim in study.claims:
            form = claim.form
            assert claim.source
            if isinstance(form, SameQuality):
                continue
            for axes in [form.of.axes, form.over.axes] if isinstance(form, RatioWithin) else [form.where]:
                assert any(selects(axes, cell) for cell in cells), (study.name, claim.statement, axes)


def test_a_single_value_is_read_as_a_list(folder: Any) -> None:
    config = folder.read(devices="cpu", studies="mine")
    assert (config.devices, [study.name for study in config.studies]) == (("cpu",), ["mine"])


@pytest.mark.parametrize(
    ("before", "after", "trials", "effort", "bisections"),
    [
        ("thorough", None, 15, Effort(), 2),
        ({"blocks_min": 7}, "quick", 3, PRESETS["quick"].effort, 0),
        ({"blocks_min": 7}, {"preset": "thorough", "timed_max_s": 9}, 15, Effort(timed_max_s=9.0), 2),
        ("thorough", {"blocks_min": 7}, 15, Effort(blocks_min=7), 2),
    ],
)
def test_an_effort_with_a_preset_replaces_an_earlier_one_and_without_it_changes_numbers(
    folder: Any, before: Any, after: Any, trials: int, effort: Effort, bisections: int
) -> None:
    config = folder.read({"effort": after} if after else None, effort=before)
    assert (config.trials, config.effort, config.refinement.bisections) == (trials, effort, bisections)
    again = folder.read(**config.complete)
    assert again.complete == config.complete
    assert (again.trials, again.effort, again.refinement) == (config.trials, config.effort, config.refinement)
    assert folder.read(trials=4, effort=before).trials == 4


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"studies": ["mime"]}, "studies: 'mime' is unknown; allowed: mine (did you mean 'mine'?)"),
        ({"studies": []}, "studies: [] is not allowed; allowed: a list of 1 or more values"),
        ({"devices": []}, "devices: [] is not allowed; allowed: 'auto', or a list of 1 or more values"),
        ({"reference": []}, "reference: [] is not allowed; allowed: a string of 1 to 2000 characters, "),
        ({"devices": "gpu"}, "devices: 'gpu' is not allowed; allowed: 'auto', or 'cpu', 'cuda', 'mps' or 'xpu', or se"),
        ({"sizes": "16 64"}, "sizes: '16 64' is read as a single name; allowed: one name, or a list such as [16,64]"),
        ({"devices": ["cpu", "gpu"]}, "devices.1: 'gpu' is not allowed; allowed: 'cpu', 'cuda', 'mps' or 'xpu'"),
        ({"devices": ["cpu", "cpu"]}, "devices: ['cpu', 'cpu'] has a repeated value"),
        ({"overrides": {"mime": {}}}, "overrides: 'mime' is unknown; allowed: mine (did you mean 'mine'?)"),
        ({"overrides": {"mine": {"size": [4]}}}, "overrides.mine: size: unknown key; allowed: "),
        ({"effort": "fast"}, "effort: 'fast' is not allowed; allowed: 'quick', 'default' or 'thorough', or a mapping"),
        ({"effort": {"warmup_min_s": 40}}, "effort.warmup_min_s: 40 is more than effort.warmup_max_s, 30"),
        ({"trials": 0}, "trials: 0 is not allowed; allowed: greater than or equal to 1"),
        ({"trial": 3}, "trial: unknown key; allowed: studies, "),
        ({"datasets": {"higgs": {"csv": {}}}}, "datasets.higgs.csv.signal: missing; add this key"),
        ({"datasets": {"mnist": {"folder": "nowhere"}}}, "datasets.mnist.folder: nowhere is not a folder"),
        (
            {"datasets": {"higgs": {"csv": {"signal": "a.csv", "background": "b.csv"}}}},
            "datasets.higgs.csv.signal: a.csv does not exist",
        ),
        ({"largest_batch": {"memory_limit_gb": "8G"}}, "largest_batch.memory_limit_gb: '8G' is not allowed"),
        ({"prices": {}}, "prices: none is given; allowed: null, or prices such as {here: 0.8, h200: 4}"),
        ({"prices": {"cpu": 1}, "cluster": {"classes": {"a": {}, "b": {}}}}, "prices: for one machine, but"),
        ({"prices": {"here": 1}, "cluster": {"classes": {"a": {}}}}, "prices.here: not possible with cluster.classes"),
        ({"cluster": {"classes": {"a": {"qos": "x; y"}}}}, "cluster.classes.a.qos: 'x; y' is not allowed"),
    ],
)
def test_an_invalid_config_is_one_line(folder: Any, config: dict[str, Any], message: str) -> None:
    text = error_line(lambda: folder.read(**config))
    assert text.startswith(f"config.yaml: {message}")
    assert "xpu'?" not in text


def test_a_key_of_a_study_is_told_where_to_give_it(folder: Any) -> None:
    told = "--config: precisions: a key of a study; give it to one: overrides={"
    assert error_line(lambda: folder.read(entries=["precisions=[bf16]"])) == f"{told}mine: {{precisions: ...}}}}"
    (folder.path / "my-net.py").write_text("def build(width): return width")
    entries = ["model=my-net.py:build", "precisions=[bf16]"]
    assert error_line(lambda: folder.read(entries=entries)) == f"{told}my_net: {{precisions: ...}}}}"
    given = folder.read(entries=[entries[0], "overrides={my_net: {precisions: [bf16]}}"])
    assert given.studies[0].precisions == ("bf16",)


def test_the_message_names_the_layer_that_set_the_value(folder: Any) -> None:
    assert error_line(lambda: folder.read({"trials": -1})).startswith("override.yaml: trials: -1")
    assert error_line(lambda: folder.read({"seed": 1}, trials=-1)).startswith("config.yaml: trials: -1")
    assert error_line(lambda: folder.read(entries=["trials=many"])).startswith("--config: trials: 'many'")
    assert error_line(lambda: folder.read({"effort": {"warmup_max_s": 0.1}})).startswith("override.yaml: effort.")


@pytest.mark.parametrize("minutes", [0, -1, "five", 10_001, [5]])
def test_minutes_that_are_no_time_are_reported_in_one_line(folder: Any, minutes: Any) -> None:
    text = error_line(lambda: folder.read({"minutes": minutes}))
    assert text.startswith(f"override.yaml: minutes: {minutes!r} is not allowed; allowed: ")


@pytest.mark.parametrize(
    ("keys", "doublings"),
    [
        ({}, 0),
        ({"minutes": 0.5}, DOUBLINGS),
        ({"minutes": 5, "effort": "quick"}, DOUBLINGS),
        ({"minutes": 5, "effort": {"refinement": {"doublings": 1}}}, 1),
    ],
)
def test_with_minutes_refinement_has_further_stages(folder: Any, keys: dict[str, Any], doublings: int) -> None:
    config = folder.read(keys)
    assert config.refinement.doublings == doublings
    assert folder.read(**config.complete).complete == config.complete


def test_overrides_replace_keys_of_a_study(folder: Any) -> None:
    by_layers = folder.read({"overrides": {"mine": {"sizes": [4]}}}, overrides={"mine": {"batch_sizes": [7, 3]}})
    (study,) = by_layers.studies
    assert (study.sizes, study.batch_sizes) == ((4,), (3, 7))
    assert folder.read(**by_layers.complete).complete == by_layers.complete
    text = error_line(lambda: folder.read({"overrides": {"mine": {"sizes": [0]}}}))
    assert text.startswith("override.yaml: overrides.mine: sizes.0: 0 is not allowed")


def test_the_command_line_is_read_like_a_file(folder: Any) -> None:
    entries = ["trials=5", "cluster={check_devices: false, classes: {a: {devices: [cpu], cores: 4}}}", "devices=[cpu]"]
    entries += ["effort={blocks_min: 7}", "time_limit_s=1.5", "cpu_threads=auto", "results='10'"]
    entries += ["prices={cpu: 0.8, currency: null}"]
    config = folder.read(entries=entries, effort={"warmup_min_steps": 3}, prices={"cuda": 4, "currency": "EUR"})
    keys, cluster = config.keys, config.keys.cluster
    assert (config.trials, cluster.check_devices, cluster.several_hosts) == (5, False, False)
    assert config.effort == Effort(blocks_min=7, warmup_min_steps=3)
    assert (keys.time_limit_s, keys.cpu_threads, config.results, config.devices) == (1.5, "auto", "10", ("cpu",))
    assert keys.prices == {"cpu": 0.8, "cuda": 4, "currency": None}
    assert cluster.classes == {"a": {"devices": ("cpu",), "cores": 4}}


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ("/", "contains the working directory"),
        ("workflow/scripts", "belongs to the workflow itself"),
        (".", "contains the working directory"),
        ("none/..", "contains the working directory"),
        ("notes.txt", "cannot be made, since notes.txt is not a folder"),
        ("loop/new", "cannot be made, since loop is not a folder"),
    ],
)
def test_results_must_be_a_folder_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str, problem: str
) -> None:
    """The workflow is in folder `workflow`; the run starts in its parent folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow" / "config").symlink_to(CONFIG)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "loop").symlink_to("loop")

    def read(name: str) -> Any:
        return read_configuration([("mine.yaml", {"results": name})], tmp_path / "workflow" / "config")

    assert error_line(lambda: read(results)).startswith(f"mine.yaml: results: {results} {problem}; allowed: ")
    assert [read(name).results for name in ("a/", "./a//b", "../a")] == ["a", "a/b", "../a"]
    assert {path.name for path in tmp_path.iterdir()} == {"workflow", "notes.txt", "loop"}
    monkeypatch.setattr("tempfile.TemporaryFile", Mock(side_effect=OSError(errno.EROFS, "Read-only file system")))
    message = "results: a/b cannot be written: no file can be made in . (Read-only file system); allowed: "
    assert message in error_line(lambda: read("a/b"))


def test_the_real_files_of_a_dataset_are_listed(folder: Any) -> None:
    assert real_files({"csv": "rows.csv"}) == real_files({"csv": None}) == real_files({}) == []
    assert real_files({"csv": {"signal": "a.csv", "background": "b.csv", "test_share": 0.3}}) == ["a.csv", "b.csv"]
    (folder.path / "train-images-idx3-ubyte.gz").touch()
    assert real_files({"folder": str(folder.path)}) == [str(folder.path / "train-images-idx3-ubyte.gz")]

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config.claim_forms import RatioWithin, SameQuality, claims_of, read_claim, selects
from crossover.config.configuration import Configuration, check_compared, check_merge, read_configuration, real_files
from crossover.config.studies import BatchSearch, Effort, Quality, Refinement, effort_of, quality_of
from crossover.config.validation import read_layers, read_mapping, read_yaml
from crossover.config.words import DEVICES
from crossover.config.workloads import workload_traits
from crossover.errors import UserError
from crossover.machine.discovery import Machine, sent_elsewhere
from crossover.machine.nodes import Nodes
from crossover.plan.checks import check_device_list, check_executor

ROOT = Path(__file__).parents[3]

STUDY = {
    "title": "A title",
    "question": "A question?",
    "workload": "disc_mlp",
    "sizes": [3, 2],
    "batch_sizes": [100],
}

SAID = {"statement": "x", "source": "Somebody (2019)"}
"""A claim but for its form."""


class Folder:
    """A config folder with one study, written anew for each test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "studies").mkdir()
        (path / "published").mkdir()
        (path / "schema.yaml").write_text((ROOT / "config" / "schema.yaml").read_text())
        self.study()

    def study(self, **changes: Any) -> None:
        text = yaml.safe_dump({key: value for key, value in {**STUDY, **changes}.items() if value is not ...})
        (self.path / "studies" / "mine.yaml").write_text(text)

    def read(self, override: dict[str, Any] | None = None, entries: Sequence[str] = (), **config: Any) -> Configuration:
        (self.path / "config.yaml").write_text(yaml.safe_dump({"studies": ["mine"], **config}))
        sources = [self.path / "config.yaml"]
        if override:
            (self.path / "override.yaml").write_text(yaml.safe_dump(override))
            sources.append(self.path / "override.yaml")
        return read_configuration(read_layers(sources, entries), self.path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def one_line(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_shipped_config_and_studies_are_valid() -> None:
    path = ROOT / "config" / "config.yaml"
    configuration = read_configuration(read_layers([path], ()), path.parent)
    disc, hsf, latency = configuration.studies
    assert disc.sizes == tuple(range(2, 13))
    assert hsf.sizes == (5, 10, 32, 100, 320, 1000, 2000)
    assert set(hsf.protocols) == {"as_published", "resident"}
    assert (disc.batch_sizes, hsf.batch_sizes) == ((100,), (32,))
    assert (disc.steps_per_run, hsf.steps_per_run) == (1000, 10 * 14664)
    assert (latency.latency_steps, latency.latency_mistakes) == (300, True)


def test_the_full_config_names_every_study() -> None:
    folder = ROOT / "config"
    configuration = read_configuration(read_layers([folder / "config.yaml", folder / "full.yaml"], ()), folder)
    assert {study.name for study in configuration.studies} == {
        path.stem for path in (folder / "studies").glob("*.yaml")
    }


def test_a_study_says_only_what_differs_from_the_runs_effort(folder: Folder) -> None:
    folder.study(effort={"blocks_min": 3})
    (study,) = folder.read().studies
    assert study.effort == {"blocks_min": 3}


def test_the_shipped_study_of_quality_is_valid_and_compares_with_fp32() -> None:
    folder = ROOT / "config"
    (study,) = read_configuration([("config.yaml", {"studies": ["quality"]})], folder).studies
    assert study.cells(["cpu"]) == []
    assert study.precisions[0] == "fp32"
    assert quality_of(study) == Quality(classes=["background", "signal"])


def test_a_study_may_train_what_it_times(folder: Folder) -> None:
    folder.study(quality={"seeds": 7})
    (study,) = folder.read().studies
    assert len(study.cells(["cpu"])) == 2
    assert quality_of(study) == Quality(seeds=7)
    folder.study()
    assert quality_of(folder.read().studies[0]) is None


def test_the_quick_config_is_valid_and_quicker() -> None:
    folder = ROOT / "config"
    configuration = read_configuration(read_layers([folder / "config.yaml", folder / "quick.yaml"], ()), folder)
    assert configuration.trials == 1
    assert configuration.effort.timed_max_s < Effort().timed_max_s
    assert configuration.results != "results"


def test_missing_keys_take_the_schemas_defaults(folder: Folder) -> None:
    configuration = folder.read()
    assert configuration.devices is None
    assert configuration.trials == 3
    assert configuration.effort == Effort()
    assert configuration.datasets["higgs"]["rows"] == 469000
    assert configuration.studies[0].sizes == (2, 3)
    assert configuration.studies[0].protocols == ("resident",)


def test_an_override_may_set_part_of_the_effort(folder: Folder) -> None:
    assert folder.read(effort={"blocks_min": 5}).effort == Effort(blocks_min=5)


def test_a_study_says_only_what_differs_from_the_runs_refinement(folder: Folder) -> None:
    assert folder.read().refinement == Refinement()
    assert folder.read(refinement={"bisections": 1}).refinement == Refinement(bisections=1)
    assert folder.read(refinement={"pairs": ["precision"]}).refinement == Refinement(pairs=("precision",))
    for own in ({}, {"bisections": 0}, {"pairs": ["execution"]}, None):
        folder.study(refinement=own)
        assert folder.read().studies[0].refinement == own
    folder.study(refinement={"bisection": 1})
    assert "mine.yaml: refinement.bisection: unknown key; allowed: bisections," in one_line(folder.read)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"refinement": {"bisections": -1}}, "refinement.bisections: -1 is not allowed; allowed: a whole number at"),
        ({"refinement": {"target_width": 0}}, "refinement.target_width: 0 is not allowed; allowed: a number above 0"),
        (
            {"refinement": {"pairs": ["devices"]}},
            "refinement.pairs.0: 'devices' is not allowed; allowed: device, precision",
        ),
        ({"refinement": {"pairs": []}}, "refinement.pairs: the list is empty"),
        ({"studies": ["mime"]}, "studies: 'mime' is unknown; allowed: mine (did you mean 'mine'?)"),
        ({"studies": []}, "studies: the list is empty; allowed: a list of 1 or more values, each a name"),
        ({"studies": "mine"}, "studies: 'mine' is not allowed; allowed: a list"),
        ({"devices": ["cpu", "gpu"]}, "devices.1: 'gpu' is not allowed; allowed: cpu, cuda, mps, xpu"),
        ({"devices": []}, "devices: the list is empty"),
        ({"devices": "gpu"}, "devices: 'gpu' is not allowed; allowed: auto, or a list"),
        ({"devices": ["cpu", "cpu"]}, "names something twice"),
        ({"trials": 0}, "trials: 0 is not allowed; allowed: a whole number at least 1"),
        ({"trials": 1.5}, "trials: 1.5 is not allowed"),
        ({"trials": 3.0}, "trials: 3.0 is not allowed; allowed: a whole number"),
        ({"time_limit_s": float("inf")}, "time_limit_s: inf is not allowed; allowed: a number above 0"),
        ({"time_limit_s": float("nan")}, "time_limit_s: nan is not allowed"),
        ({"studies": ["c++"]}, "studies.0: 'c++' is not allowed; allowed: a name of letters, digits, _ and -"),
        ({"trials": True}, "trials: True is not allowed"),
        ({"trial": 3}, "trial: unknown key; allowed: studies, "),
        ({"cpu_threads": 0}, "cpu_threads: 0 is not allowed; allowed: auto, or a whole number at least 1"),
        ({"compare": "results"}, "compare: 'results' is not allowed; allowed: null or a list of 2 values, each a text"),
        ({"compare": ["results"]}, "compare: ['results'] is not allowed; allowed: null or a list of 2 values"),
        ({"compare": ["a", "b", "c"]}, "compare: ['a', 'b', 'c'] is not allowed; allowed: null or a list of 2 values"),
        ({"compare": ["a", "a"]}, "compare: ['a', 'a'] names something twice"),
        ({"compare": ["a", ""]}, "compare.1: '' is not allowed; allowed: a text, not empty"),
        ({"price_per_hour": 4}, "price_per_hour: 4 is not allowed; allowed: null or a mapping of keys to values"),
        ({"price_per_hour": {"cpu": 0}}, "price_per_hour.cpu: 0 is not allowed; allowed: a number at least 1e-06"),
        ({"price_per_hour": {}}, "price_per_hour: the mapping is empty; allowed: null or a mapping"),
        (
            {"seed": 2**64},
            "seed: 18446744073709551616 is not allowed; allowed: a whole number at least 0 and at most 2",
        ),
        ({"datasets": {"higgs": {"seed": 2**32}}}, "datasets.higgs.seed: 4294967296 is not allowed; allowed: a whole"),
        ({"cpu_threads": 5000}, "cpu_threads: 5000 is not allowed; allowed: auto, or a whole number at least 1 and at"),
        ({"trials": "5"}, "trials: '5' is not allowed; allowed: a whole number"),
        ({"merge": {"a ": "b"}}, "merge: 'a ' is not allowed; allowed: a name without blanks around it"),
        ({"merge": ["x" * 300]}, "merge.0: 'xxxxxxxx"),
        ({"compare": ["a", "x" * 300]}, "compare.1: 'xxxxxxxx"),
        ({"datasets": {"mnist": {"folder": "x" * 300}}}, "datasets.mnist.folder: 'xxxxxxxx"),
        ({"currency": " "}, "currency: ' ' is not allowed; allowed: null or a text, not empty"),
        ({"hardware": {"a b": {}}}, "hardware: 'a b' is not allowed; allowed: a name of letters, digits, . _ and -"),
        ({"hardware": {"a": {"qos": "x; y"}}}, "hardware.a.qos: 'x; y' is not allowed; allowed: a name of letters"),
        (
            {"largest_batch": {"memory_limit": 0}},
            "largest_batch.memory_limit: '0' is not allowed; allowed: bytes, from",
        ),
        ({"price_per_hour": {"gpu": 4}}, "price_per_hour.gpu: unknown key; allowed: cpu, cuda, mps, xpu"),
        ({"currency": 1}, "currency: 1 is not allowed; allowed: null or a text, not empty"),
        ({"effort": {"blocks_mn": 3}}, "effort.blocks_mn: unknown key; allowed: warmup_min_steps"),
        ({"effort": {"timed_max_s": 0}}, "effort.timed_max_s: 0 is not allowed; allowed: a number above 0"),
        (
            {"effort": {"warmup_min_s": 40}},
            "effort.warmup_min_s: 40 is more than effort.warmup_max_s, 30; allowed: at most 30, or a larger",
        ),
        (
            {"effort": {"timed_min_s": 1, "timed_max_s": 0.5}},
            "effort.timed_min_s: 1 is more than effort.timed_max_s, 0.5; allowed: at most 0.5",
        ),
        ({"merge": []}, "merge: the list is empty; allowed: "),
        ({"merge": {" ": "first"}}, "merge: ' ' is not allowed; allowed: "),
        ({"merge": ["a", "b"], "price_per_hour": {"cpu": 1}}, "price_per_hour: the prices are of one machine"),
        ({"hardware": {"a100": {"partition": "x"}}}, "hardware.a100.partition: unknown key; allowed: "),
        ({"hardware": {"a 100": {}}}, "hardware: 'a 100' is not allowed; allowed: "),
        ({"datasets": {"higs": {}}}, "datasets.higs: unknown key; allowed: disc, higgs"),
        ({"datasets": {"higgs": {"csv": {"signal": "a.csv"}}}}, "datasets.higgs.csv: key 'background' is missing"),
    ],
)
def test_a_bad_config_is_one_line(folder: Folder, config: dict[str, Any], message: str) -> None:
    text = one_line(lambda: folder.read(**config))
    assert text.startswith("config.yaml: ")
    assert message in text
    assert "xpu'?" not in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": [0]}, "sizes.0: 0 is not allowed; allowed: a whole number at least 1"),
        ({"sizes": [-3]}, "sizes.0: -3 is not allowed"),
        ({"sizes": [4, 1.5]}, "sizes.1: 1.5 is not allowed"),
        ({"sizes": ["big"]}, "sizes.0: 'big' is not allowed"),
        ({"sizes": []}, "sizes: the list is empty"),
        ({"batch_sizes": [32.0]}, "batch_sizes.0: 32.0 is not allowed; allowed: a whole number at least 1"),
        ({"batch_sizes": [1001]}, "batch_sizes: 1001 is more than dataset 'disc' has; allowed: at most its 1000 rows"),
        (
            {"published": {**SAID, "source": "y", "crossover": [5, 2]}},
            "published.crossover: [5, 2] is reversed",
        ),
        ({"sizes": [99]}, "sizes: 99 is not offered by workload 'disc_mlp'; allowed: linear layers from 2 to 16"),
        ({"precisions": ["fp8"]}, "precisions.0: 'fp8' is not allowed; allowed: fp32, tf32"),
        ({"precisions": []}, "precisions: the list is empty"),
        ({"protocols": ["as_published"]}, "protocols: 'as_published' is not offered by workload 'disc_mlp'"),
        ({"workload": "disc"}, "(did you mean 'disc_mlp'?)"),
        ({"workload": ...}, "key 'workload' is missing"),
        (
            {"workload": None},
            "workload: nothing, as YAML reads it; allowed: the name of a workload, in quotes if",
        ),
        ({"workload": "null", "largest_batch": True}, "largest_batch: true, but every batch of workload 'null' fits"),
        ({"batch_size": [32]}, "batch_size: unknown key; allowed: title"),
        ({"published": {"statement": "x"}}, "published: key 'source' is missing"),
        ({"variants": ["other"]}, "variants: 'other' is not offered by workload 'disc_mlp'; allowed: plain"),
        ({"figures": ["pie"]}, "figures.0: 'pie' is not allowed; allowed: times, speedups"),
        ({"figures": []}, "figures: the list is empty; allowed: a list of 1 or more values, each times, speedups, "),
        (
            {"workload": "matmul", "sizes": [64], "batch_sizes": [1, 2]},
            "batch_sizes: 2 is not offered by workload 'matmul'; allowed: 1",
        ),
        (
            {"workload": "higgs_mlp", "quality": {}, "protocols": ["as_published"]},
            "protocols: ['as_published'] lacks resident, the only one that quality trains by; add it",
        ),
        ({"effort": {"blocks_min": 1}}, "effort.blocks_min: 1 is not allowed; allowed: a whole number at least 2"),
        ({"effort": {"block_min": 1}}, "effort.block_min: unknown key; allowed: warmup_min_steps"),
        ({"latency_mistakes": True}, "latency_steps: latency needs steps to time; allowed: at least 300"),
        ({"figures": ["latency"]}, "latency_steps: latency needs steps to time; allowed: at least 300"),
        (
            {"timed": False, "quality": {}, "largest_batch": True},
            "largest_batch: true, but the study times nothing; allowed: false, or timed: true",
        ),
        (
            {"published": {"statement": "x", "source": "y", "results": "../results/runs.csv"}},
            "published.results: '../results/runs.csv' is not allowed; allowed: null or the name of a CSV file in conf",
        ),
        (
            {"published": {"statement": "x", "source": "y", "results": "more\\runs.csv"}},
            "published.results: 'more\\\\runs.csv' is not allowed; allowed: null or the name of a CSV file in con",
        ),
        ({"steps_per_run": {"epochs": 2}}, "steps_per_run: key 'samples' is missing"),
        ({"timed": False}, "timed: false, and quality is null: nothing is left to do; set one of them"),
        ({"quality": {}, "precisions": ["tf32"]}, "precisions: ['tf32'] lacks fp32, which quality compares with; add"),
        ({"quality": {"test_share": 1}}, "quality.test_share: 1 is not allowed; allowed: a number above 0 and below 1"),
        ({"quality": {"seed": 1}}, "quality.seed: unknown key; allowed: epochs, seeds, test_share, classes"),
    ],
)
def test_a_bad_study_is_one_line(folder: Folder, changes: dict[str, Any], message: str) -> None:
    folder.study(**changes)
    text = one_line(folder.read)
    assert text.startswith("studies/mine.yaml: ")
    assert message in text


def test_an_unknown_metric_is_told_where_all_are_described_not_all_of_them(folder: Folder) -> None:
    folder.study(claims=[{**SAID, "ratio_between": {**RATIO, "metric": "speed"}}])
    text = one_line(folder.read)
    assert text == (
        "studies/mine.yaml: claims.0.ratio_between: metric 'speed' is unknown; allowed: samples_per_s, run_time_s, "
        "and the numbers of measurements.parquet, which results/README.md describes"
    )
    assert "## Columns of measurements.parquet" in (ROOT / "results" / "README.md").read_text()


def test_a_claim_may_rest_on_another_study_that_is_not_run(folder: Folder) -> None:
    trains = {**STUDY, "precisions": ["fp32", "bf16"], "quality": {}}
    (folder.path / "studies" / "other.yaml").write_text(yaml.safe_dump(trains))
    same = {"metric": "accuracy", "within": 0.1, "study": "other"}
    folder.study(claims=[{**SAID, "same_quality": {**same, "where": {"precision": "bf16"}}}])
    assert len(folder.read().studies[0].claims) == 1
    folder.study(claims=[{**SAID, "same_quality": {**same, "where": {"precision": "tf32"}}}])
    assert one_line(folder.read) == (
        "studies/mine.yaml: claims.0.same_quality.where.precision: 'tf32' is not measured by study 'other'; "
        "allowed: fp32, bf16"
    )
    (folder.path / "studies" / "other.yaml").write_text(yaml.safe_dump(STUDY))
    assert one_line(folder.read) == (
        "studies/mine.yaml: claims.0.same_quality.study: 'other' trains no models; allowed: a study with quality"
    )


SAME = {"metric": "accuracy", "within": 0.1}


@pytest.mark.parametrize(
    ("changes", "same", "message"),
    [
        ({"quality": None}, SAME, "study: 'mine' trains no models; allowed: a study with quality"),
        (
            {"precisions": ["fp32", "bf16"]},
            {**SAME, "where": {"precision": "tf32"}},
            "where.precision: 'tf32' is not measured by study 'mine'; allowed: fp32, bf16",
        ),
        (
            {"precisions": ["fp32", "bf16"]},
            {**SAME, "where": {"device": "cpu", "precision": "fp32"}},
            "where: it leaves the CPU in fp32 alone, which is what the others are compared with; allowed: another "
            "device, or another precision of fp32, bf16",
        ),
        ({}, {**SAME, "where": {"device": "cpu"}}, "where: it leaves the CPU in fp32 alone"),
    ],
)
def test_a_claim_of_quality_rests_on_trainings(
    folder: Folder, changes: dict[str, Any], same: dict[str, Any], message: str
) -> None:
    folder.study(**{"quality": {}, "claims": [{**SAID, "same_quality": same}], **changes})
    assert one_line(folder.read).startswith(f"studies/mine.yaml: claims.0.same_quality.{message}")
    folder.study(**{"quality": {}, "claims": [{**SAID, "same_quality": SAME}]})
    folder.read()


def test_models_may_be_trained_beside_a_protocol_that_is_only_timed(folder: Folder) -> None:
    folder.study(workload="higgs_mlp", quality={}, protocols=["as_published", "resident"])
    assert quality_of(folder.read().studies[0]) == Quality()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {"warmup_max_s": 0.5},
            "effort.warmup_max_s: 0.5 is less than effort.warmup_min_s of the run, 1; allowed: at least 1, or another "
            "warmup_min_s",
        ),
        (
            {"timed_min_s": 10, "timed_max_s": 20},
            "effort.timed_min_s: 10 is more than effort.timed_max_s of the run, 3; allowed: at most 3, or another "
            "timed_max_s",
        ),
        (
            {"timed_min_s": 3, "timed_max_s": 2.5},
            "effort.timed_min_s: 3 is more than effort.timed_max_s, 2.5; allowed: at most 2.5, or another timed_max_s",
        ),
    ],
)
def test_a_studys_effort_must_fit_the_runs(folder: Folder, own: dict[str, Any], message: str) -> None:
    folder.study(effort=own)
    assert one_line(folder.read) == f"studies/mine.yaml: {message}"
    fitting = {"warmup_min_s": 0.5, "timed_max_s": 20}
    if own != {"timed_min_s": 3, "timed_max_s": 2.5}:
        assert folder.read(effort=fitting).studies[0].effort == own


def test_a_warm_up_that_is_cut_short_needs_no_shorter_long_one(folder: Folder) -> None:
    """So that one key cuts a study short: a `warmup_long_s` above `warmup_max_s` never comes to count."""
    folder.study(effort={"warmup_max_s": 2})
    assert effort_of(folder.read().studies[0], Effort()) == Effort(warmup_max_s=2.0, warmup_long_s=5.0)


def test_the_message_names_the_file_that_set_the_value(folder: Folder) -> None:
    assert one_line(lambda: folder.read(override={"trials": -1})).startswith("override.yaml: trials: -1")
    assert one_line(lambda: folder.read(override={"seed": 1}, trials=-1)).startswith("config.yaml: trials: -1")


def test_a_value_of_the_command_line_is_said_to_come_from_there(folder: Folder) -> None:
    assert one_line(lambda: folder.read(entries=["trials=many"])).startswith("--config: trials: 'many'")


def test_the_command_line_is_read_as_a_file_is(folder: Folder) -> None:
    entries = ["trials=5", "check_devices=false", "effort={blocks_min: 7}", "time_limit_s=1.5", "devices=[cpu]"]
    entries += ["cpu_threads=auto", "results='10'", "compare=[none:x, there]", "price_per_hour={cpu: 0.8, cuda: 4}"]
    entries += ["hardware={a: {devices: [cpu], cores: 4}}", "currency=null"]
    configuration = folder.read(entries=entries, effort={"warmup_min_steps": 3}, currency="EUR")
    assert (configuration.trials, configuration.check_devices) == (5, False)
    assert configuration.effort == Effort(blocks_min=7, warmup_min_steps=3)
    assert (configuration.time_limit_s, configuration.cpu_threads, configuration.results) == (1.5, "auto", "10")
    assert (configuration.devices, [run.name for run in configuration.compare]) == (("cpu",), ["none:x", "there"])
    assert (configuration.price_per_hour, configuration.currency) == ({"cpu": 0.8, "cuda": 4}, None)
    assert configuration.hardware == {"a": {"devices": ["cpu"], "cores": 4}}


def test_results_are_a_folder_for_the_run_alone(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "loop").symlink_to("loop")
    ends = "; allowed: a folder for this run alone"
    for results, problem in (
        ("/", "holds the working directory"),
        (str(ROOT / "scripts"), "is the workflow's own"),
        (str(ROOT / "docs" / "mine"), "is the workflow's own"),
        (".", "holds the working directory"),
        ("..", "holds the working directory"),
        ("none/..", "holds the working directory"),
        (str(tmp_path.parent), "holds the working directory"),
        ("notes.txt", "cannot be made, since notes.txt is no folder"),
        ("notes.txt/new", "cannot be made, since notes.txt is no folder"),
        ("loop/new", "cannot be made, since loop is no folder"),
    ):
        text = one_line(lambda results=results: folder.read(results=results))  # type: ignore[misc]
        assert text == f"config.yaml: results: {results} {problem}{ends}"
    assert [folder.read(results=name).results for name in ("a/", "./a//b", "../a")] == ["a", "a/b", "../a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.yaml",
        "loop",
        "notes.txt",
        "published",
        "schema.yaml",
        "studies",
    ]


def test_a_folder_of_somebody_else_is_known_before_any_job(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    text = one_line(lambda: folder.read(results="a/b"))
    assert text.startswith("config.yaml: results: a/b cannot be written, since . is not yours; ")


@pytest.mark.parametrize(
    ("workload", "classes", "problem"),
    [
        ("disc_mlp", ["a", "b", "c"], "3 names, but workload 'disc_mlp' has 2 classes; name each one, or take null"),
        ("mnist_cnn", ["a", "b"], "2 names, but workload 'mnist_cnn' has 10 classes; name each one, or take null"),
        ("silent", ["a", "b"], "workload 'silent' does not say how many classes it has; add CLASSES to its module, or"),
    ],
)
def test_classes_are_named_as_many_as_there_are(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, workload: str, classes: list[str], problem: str
) -> None:
    if workload == "silent":
        monkeypatch.setattr("crossover.config.studies.WORKLOADS_FOLDER", folder.path)
        text = 'SIZE_NAME = "x"\nSIZE_RANGE = (1, 8)\nDATASET = "disc"\nPROTOCOLS = ("resident",)\n'
        functions = "def build_model(size): ...\ndef build(cell, data, arithmetic): ...\n"
        (folder.path / "silent.py").write_text(text + functions)
    folder.study(workload=workload, quality={"classes": classes})
    assert one_line(folder.read).startswith(f"studies/mine.yaml: quality.classes: {problem}")
    folder.study(workload=workload, quality={})
    folder.read()


def test_a_dataset_of_ones_own_has_options_of_any_name(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = yaml.safe_load((folder.path / "schema.yaml").read_text())
    own = {"type": "object", "properties": {"rows": {"type": "string"}}, "default": {"rows": "many"}}
    schema["properties"]["datasets"]["properties"]["own"] = own
    (folder.path / "schema.yaml").write_text(yaml.safe_dump(schema))
    traits = replace(workload_traits("disc_mlp"), dataset="own")
    monkeypatch.setattr("crossover.config.study_files.workload_traits", lambda _workload: traits)
    assert folder.read().datasets["own"] == {"rows": "many"}
    assert real_files({"csv": "rows.csv"}) == real_files({"csv": None}) == real_files({}) == []
    assert real_files({"csv": {"signal": "a.csv", "background": "b.csv", "test_share": 0.3}}) == ["a.csv", "b.csv"]
    (folder.path / "train-images-idx3-ubyte.gz").touch()
    assert real_files({"folder": str(folder.path)}) == [str(folder.path / "train-images-idx3-ubyte.gz")]


def test_a_study_that_is_no_mapping_is_one_line(folder: Folder) -> None:
    (folder.path / "studies" / "mine.yaml").write_text("just words")
    assert one_line(folder.read).startswith("studies/mine.yaml: str at the top level; allowed: keys")


def test_a_yaml_mistake_names_file_line_and_column(folder: Folder) -> None:
    (folder.path / "studies" / "mine.yaml").write_text("title: x\nsizes: [1, 2\nworkload: y\n")
    assert one_line(folder.read).startswith("studies/mine.yaml: line 3, column ")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sizes: [2]\nquestion: x\nsizes: [3]\n", "sizes"),
        ("published:\n  source: x\n  source: y\n", "source"),
        ('question: x\ntitle: y\n"title": z\n', "title"),
    ],
)
def test_a_key_that_stands_twice_is_one_line(folder: Folder, text: str, key: str) -> None:
    (folder.path / "studies" / "mine.yaml").write_text(text)
    column = 3 if key == "source" else 1
    assert one_line(folder.read) == (
        f"studies/mine.yaml: line 3, column {column}: not valid YAML: key '{key}' stands twice; allowed: each key once"
    )


def test_keys_of_a_merge_may_be_overridden(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("one: &x {a: 1, b: 2}\ntwo: &y {<<: *x, b: 3}\nthree: {<<: *y, a: 4, c: [a, a]}\n")
    assert read_yaml(tmp_path / "a.yaml")["three"] == {"a": 4, "b": 3, "c": ["a", "a"]}


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    assert "no such file" in one_line(lambda: read_yaml(tmp_path / "none.yaml"))


def test_a_missing_csv_is_found_before_any_job(folder: Folder) -> None:
    csv = {"signal": "signal.csv", "background": "background.csv"}
    text = one_line(lambda: folder.read(datasets={"higgs": {"csv": csv}}))
    assert text == ("config.yaml: datasets.higgs.csv.signal: signal.csv does not exist; give the path of a CSV file")


def test_a_missing_folder_is_found_before_any_job(folder: Folder) -> None:
    text = one_line(lambda: folder.read(datasets={"mnist": {"folder": "nowhere"}}))
    assert text == "config.yaml: datasets.mnist.folder: nowhere is no folder; give the one with MNIST's files"


def test_a_workload_that_reads_an_unknown_dataset_is_found_before_any_job(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    traits = replace(workload_traits("disc_mlp"), dataset="disk")
    monkeypatch.setattr("crossover.config.study_files.workload_traits", lambda _workload: traits)
    text = one_line(folder.read)
    assert "workload: DATASET of 'disc_mlp' is 'disk', which `datasets` of the config lacks; " in text
    assert "disc" in text.partition("lacks; ")[2]


def test_how_many_rows_a_folder_holds_is_not_known_before_it_is_read(folder: Folder) -> None:
    folder.study(workload="mnist_cnn", batch_sizes=[100])
    assert "batch_sizes: 100 is more than dataset 'mnist' has" in one_line(
        lambda: folder.read(datasets={"mnist": {"rows": 99}})
    )
    assert folder.read(datasets={"mnist": {"rows": 99, "folder": "studies"}}).studies[0].batch_sizes == (100,)


def test_published_results_are_read_before_any_job(folder: Folder) -> None:
    published = {**SAID, "source": "y", "results": "runs.csv"}
    folder.study(published=published)
    assert one_line(folder.read).startswith("studies/mine.yaml: published.results: published/runs.csv: no such file")
    (folder.path / "published" / "runs.csv").write_text("# source\nsize,run_time_s\n1,2\n")
    assert "steps_per_run: needed" in one_line(folder.read)
    folder.study(published=published, steps_per_run={"epochs": 2, "samples": 300})
    folder.read()


SPEEDUP = {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "where": {"size": 2}, "range": [4, 5]}
RATIO = {"metric": "step_time_s", "of": {"size": 2}, "over": {"size": 3}, "where": {"device": "cpu"}, "range": [1, 2]}


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({}, "claims.0: none given; allowed: exactly one of crossover_between, speedup_between, ratio_between, "),
        (
            {"speedup_between": SPEEDUP, "ratio_between": RATIO},
            "claims.0: speedup_between, ratio_between given; allowed: exactly one of",
        ),
        ({"statement": ..., "speedup_between": SPEEDUP}, "claims.0: key 'statement' is missing; What the source says"),
        ({"ratio_over": RATIO}, "claims.0.ratio_over: unknown key; allowed: statement, source, "),
        (
            {"speedup_between": {**SPEEDUP, "range": [5, 4]}},
            "claims.0.speedup_between.range: [5, 4] is reversed; allowed: lowest, highest",
        ),
        ({"speedup_between": {**SPEEDUP, "range": 5}}, "claims.0.speedup_between.range: 5 is not allowed; allowed: a"),
        (
            {"speedup_between": {**SPEEDUP, "slow": {"device": "gpu"}}},
            "claims.0.speedup_between.slow.device: 'gpu' is not allowed; allowed: cpu, cuda, mps, xpu",
        ),
        (
            {"speedup_between": {**SPEEDUP, "where": {"batch": 2}}},
            "claims.0.speedup_between.where.batch: unknown key; allowed: protocol, batch_size, ",
        ),
        (
            {"speedup_between": {**SPEEDUP, "where": {"device": "cuda", "size": 2}}},
            "claims.0.speedup_between.slow: device pinned in 'where' as well; allowed: one of both places",
        ),
        (
            {"speedup_between": {**SPEEDUP, "where": {}}},
            "claims.0: the selection (device cpu) leaves cells that differ in size; pin size in 'where'",
        ),
        (
            {"ratio_between": {**RATIO, "where": {}}},
            "claims.0: the selection (size 2) leaves cells that differ in device; pin device in 'where'",
        ),
        (
            {"ratio_between": {**RATIO, "metric": "step_times_s"}},
            "claims.0.ratio_between: metric 'step_times_s' is unknown (did you mean 'step_time_s' or ",
        ),
        ({"ratio_between": {**RATIO, "metric": ...}}, "claims.0.ratio_between: name one metric for 'of', either"),
        (
            {"ratio_between": {**RATIO, "of": {"size": 2, "metric": "timed_s"}}},
            "claims.0.ratio_between: name one metric for 'of', either beside it or inside of it",
        ),
        (
            {"ratio_between": {**RATIO, "metric": "run_time_s"}},
            "claims.0: run_time_s needs the steps of the published run; set steps_per_run",
        ),
        (
            {"crossover_between": {"range": [1, 2], "where": {"size": 2}}},
            "claims.0.crossover_between.where.size: 2 is not allowed; a crossover is read over the sizes",
        ),
        (
            {"crossover_between": {"range": [1, 2], "where": {"device": "cpu"}}},
            "claims.0.crossover_between.where.device: 'cpu' is not allowed",
        ),
        (
            {"same_quality": {"metric": "accuracy", "within": 0.01, "study": "min"}},
            "claims.0.same_quality.study: 'min' is unknown; allowed: mine (did you mean 'mine'?)",
        ),
        (
            {"source": "ours", "published": 3, "ratio_between": RATIO},
            "claims.0.published: 3 is not allowed; allowed: null, as the source is ours",
        ),
        ({"same_quality": {"metric": "recall", "within": 1}}, "claims.0.same_quality.metric: 'recall' is not allowed"),
    ],
)
def test_a_mistake_in_a_claim_is_one_line(folder: Folder, claim: dict[str, Any], message: str) -> None:
    def given(values: dict[str, Any]) -> dict[str, Any]:
        return {
            key: given(value) if isinstance(value, dict) else value for key, value in values.items() if value is not ...
        }

    folder.study(claims=[given({**SAID, **claim})])
    assert one_line(folder.read).startswith(f"studies/mine.yaml: {message}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "missing; allowed: author, title and date, or 'ours'"),
        ("Ours", "'Ours' is not allowed; allowed: author, title and date, or 'ours'"),
        ("ours ", "'ours ' is not allowed; allowed: author, title and date, or 'ours'"),
    ],
)
def test_a_claim_says_whose_it_is(folder: Folder, source: str | None, message: str) -> None:
    claims = [{**SAID, "ratio_between": RATIO}, {**SAID, "source": source, "ratio_between": RATIO}]
    folder.study(claims=claims)
    assert one_line(folder.read) == f"studies/mine.yaml: claims.1.source: {message}"


def test_a_claim_takes_the_studys_source(folder: Folder) -> None:
    claims = [{"statement": "x", "ratio_between": RATIO}]
    folder.study(claims=claims, published={"statement": "x", "source": "Somebody (2019)"})
    (study,) = folder.read().studies
    assert [claim["source"] for claim in claims_of([study])] == ["Somebody (2019)"]
    folder.study(claims=claims, published={"statement": "x", "source": "OURS"})
    assert one_line(folder.read).startswith("studies/mine.yaml: published.source: 'OURS' is not allowed; allowed: ")


@pytest.mark.parametrize(
    ("part", "pinned", "own"),
    [
        ("where", {"precision": "tf32"}, "'tf32' is not measured by study 'mine'; allowed: fp32, bf16"),
        ("where", {"variant": "other"}, "'other' is not measured by study 'mine'; allowed: plain"),
        ("of", {"execution": "compile"}, "'compile' is not measured by study 'mine'; allowed: eager"),
        ("over", {"protocol": "as_published"}, "'as_published' is not measured by study 'mine'; allowed: resident"),
        ("over", {"batch_size": 64}, "64 is not measured by study 'mine'; allowed: 100"),
    ],
)
def test_a_claim_pins_values_that_the_study_measures(
    folder: Folder, part: str, pinned: dict[str, Any], own: str
) -> None:
    sides: dict[str, Any] = {"of": {"size": 2}, "over": {"size": 3}, "where": {"device": "cpu"}}
    sides["where"] |= {} if "precision" in pinned else {"precision": "fp32"}
    sides[part] = {**sides[part], **pinned}
    folder.study(precisions=["fp32", "bf16"], claims=[{**SAID, "ratio_between": {**RATIO, **sides}}])
    (axis,) = pinned
    assert one_line(folder.read) == f"studies/mine.yaml: claims.0.ratio_between.{part}.{axis}: {own}"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"of": {"metric": "latencies_s"}, "over": {"metric": "step_time_s"}}, "latencies_s needs latency_steps, "),
        ({"of": {"metric": "step_time_s"}, "over": {"metric": "latency_p99_s"}}, "latency_p99_s needs latency_steps, "),
    ],
)
def test_a_claim_on_latencies_needs_them_measured(folder: Folder, form: dict[str, Any], message: str) -> None:
    claim = {**SAID, "ratio_between": {"range": [1, 2], "where": {"device": "cpu", "size": 2}, **form}}
    folder.study(claims=[claim])
    assert one_line(folder.read) == f"studies/mine.yaml: claims.0: {message}which is 0; allowed: at least 300"
    folder.study(claims=[claim], latency_steps=300)
    folder.read()


def test_a_claim_on_a_latency_measured_wrongly_needs_it_measured_so(folder: Folder) -> None:
    sides = {"of": {"metric": "latencies_cold_s"}, "over": {"metric": "latencies_s"}}
    claim = {**SAID, "ratio_between": {"range": [1, 2], "where": {"device": "cpu", "size": 2}, **sides}}
    folder.study(claims=[claim], latency_steps=300)
    assert "claims.0: latencies_cold_s needs latency_mistakes, which is false; set it" in one_line(folder.read)
    folder.study(claims=[claim], latency_steps=300, latency_mistakes=True)
    folder.read()


@pytest.mark.parametrize("sides", [({"size": 2}, {"size": 2}), ({"size": 2}, {"size": 2, "precision": "fp32"})])
def test_a_cell_over_itself_is_no_claim(folder: Folder, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    folder.study(claims=[{**SAID, "ratio_between": {**RATIO, "of": sides[0], "over": sides[1]}}])
    assert one_line(folder.read) == (
        "studies/mine.yaml: claims.0.ratio_between: both sides are the same cell (device cpu, size 2); "
        "let them differ in an axis"
    )


def test_a_study_that_times_nothing_claims_no_times(folder: Folder) -> None:
    folder.study(timed=False, quality={}, claims=[{**SAID, "ratio_between": RATIO}])
    assert one_line(folder.read) == (
        "studies/mine.yaml: claims.0.ratio_between: the study times nothing; allowed: same_quality, or timed: true"
    )


def test_a_crossover_needs_one_line_of_the_grid(folder: Folder) -> None:
    claim = {**SAID, "crossover_between": {"range": [1, 2]}}
    folder.study(claims=[claim])
    assert len(folder.read().studies[0].claims) == 1
    folder.study(claims=[claim], precisions=["fp32", "bf16"], batch_sizes=[10, 20])
    assert "leaves cells that differ in batch_size, precision; pin batch_size, precision" in one_line(folder.read)


def test_a_size_that_the_study_no_longer_has_is_no_mistake(folder: Folder) -> None:
    """Whoever cuts the sizes down keeps the claims, which are then not testable."""
    folder.study(claims=[{**SAID, "speedup_between": {**SPEEDUP, "where": {"size": 4}}}])
    assert len(folder.read().studies[0].claims) == 1


def test_the_claims_of_the_shipped_studies_name_cells_that_they_measure() -> None:
    path = ROOT / "config" / "config.yaml"
    names = sorted(file.stem for file in (ROOT / "config" / "studies").glob("*.yaml"))
    for study in read_configuration([("config.yaml", {"studies": names})], path.parent).studies:
        cells = [asdict(cell) for cell in study.cells(DEVICES)]
        for claim in claims_of([study]):
            form = read_claim(claim, study.name, study.name).form
            assert claim["source"]
            if isinstance(form, SameQuality):
                continue
            sides = [form.of.axes, form.over.axes] if isinstance(form, RatioWithin) else [form.where]
            for axes in sides:
                assert any(selects(axes, cell) for cell in cells), (study.name, claim["statement"], axes)


def test_a_device_that_is_not_here_is_one_line(folder: Folder) -> None:
    machine = Machine(("cpu",), "2.13.0", None)
    check_device_list(folder.read(devices=["cpu"]), machine)
    check_device_list(folder.read(devices="auto"), machine)
    text = one_line(lambda: check_device_list(folder.read(devices=["cpu", "cuda"]), machine))
    assert text.startswith("config.yaml: devices: 'cuda' cannot be used on this machine; allowed here: auto, cpu")


HERE = Machine(("cpu",), "2.13.0", None)
UNKNOWN_NODES = sent_elsewhere(HERE, None)
KNOWN_NODES = sent_elsewhere(HERE, Nodes(cpus=8, cpus_per_gpu=None))


def test_what_slurm_does_not_know_of_a_clusters_nodes_must_be_named(folder: Folder) -> None:
    check_executor(folder.read(devices="auto"), HERE, local=True)
    check_executor(folder.read(devices="auto"), KNOWN_NODES, local=False)
    text = one_line(lambda: check_executor(folder.read(devices="auto"), UNKNOWN_NODES, local=False))
    assert text.startswith("config.yaml: devices: 'auto' takes what Slurm says of its nodes, but sinfo says")
    text = one_line(lambda: check_executor(folder.read(devices=["cpu"]), UNKNOWN_NODES, local=False))
    assert text.startswith("cpu_threads: 'auto' takes the cores that Slurm says")
    check_executor(folder.read(devices=["cpu"], cpu_threads=8), UNKNOWN_NODES, local=False)
    classes = {"a": {"cores": 64, "devices": ["cpu"]}}
    check_executor(folder.read(devices=["cpu"], hardware=classes, cpu_threads="auto"), UNKNOWN_NODES, local=False)


def test_jobs_that_are_counted_as_a_clusters_but_run_here_are_one_line(folder: Folder) -> None:
    text = one_line(lambda: check_executor(folder.read(), KNOWN_NODES, local=True))
    assert text.startswith("--jobs: counts the jobs of a cluster, but these run here; give --cores")


@pytest.mark.parametrize(("text", "found"), [("", "nothing"), ("- trials", "list"), ("trials", "str")])
def test_a_config_without_keys_is_one_line(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert f"{found} at the top level; allowed: keys" in one_line(lambda: read_mapping(tmp_path / "config.yaml"))


@pytest.mark.parametrize(
    ("name", "folder_of_run", "study"),
    [
        ("results", "results", None),
        ("results/second/", "results/second", None),
        ("results:disc_depth", "results", "disc_depth"),
        ("/a:b/results:c-1", "/a:b/results", "c-1"),
        ("/a:b/results", "/a:b/results", None),
    ],
)
def test_a_compared_run_is_a_folder_or_one_study_of_it(
    folder: Folder, name: str, folder_of_run: str, study: str | None
) -> None:
    run, _ = folder.read(compare=[name, "other"]).compare
    assert (run.name, run.folder, run.study) == (name, folder_of_run, study)
    assert run.measurements == f"{folder_of_run}/measurements.parquet"


@pytest.mark.parametrize("size", ["8G", "much", "0B"])
def test_a_memory_limit_that_is_no_size_is_one_line(folder: Folder, size: str) -> None:
    text = one_line(lambda: folder.read(largest_batch={"memory_limit": size}))
    assert text.startswith(f"config.yaml: largest_batch.memory_limit: {size!r} is not allowed; allowed: bytes")


def test_a_search_takes_its_defaults_but_for_what_is_given(folder: Folder) -> None:
    assert folder.read().largest_batch == BatchSearch()
    found = folder.read(largest_batch={"memory_limit": "8 GiB", "limit": 100}).largest_batch
    assert found == BatchSearch(limit=100, memory_limit="8 GiB")
    assert folder.read(largest_batch={"memory_limit": 4096}).largest_batch.memory_limit == 4096


def test_merging_needs_runs(folder: Folder) -> None:
    text = one_line(lambda: check_merge(folder.read()))
    assert text.startswith("config.yaml: merge: null, but merge needs results folders of one machine or more; ")
    check_merge(folder.read(merge=["a"]))


def test_a_comparison_needs_two_finished_runs(folder: Folder) -> None:
    text = one_line(lambda: check_compared(folder.read()))
    assert text.startswith("config.yaml: compare: null, but compare_runs needs two results folders; name them")
    (folder.path / "first").mkdir()
    (folder.path / "first" / "measurements.parquet").touch()
    text = one_line(lambda: check_compared(folder.read(override={"compare": ["first:x", "first/second"]})))
    assert text.startswith("override.yaml: compare: first/second/measurements.parquet does not exist; allowed: ")
    assert "`snakemake --cores 1 --config results=first/second`" in text
    check_compared(folder.read(compare=["first:x", "first:y"]))
    text = one_line(lambda: check_compared(folder.read(compare=["first", "./first/"])))
    assert text == "config.yaml: compare: first and ./first/ are one run; allowed: two results folders or studies"


def test_a_comparison_is_checked_only_where_it_is_asked_for(folder: Folder) -> None:
    assert [run.name for run in folder.read(compare=["none:x", "there"]).compare] == ["none:x", "there"]
    assert folder.read(compare=None).compare == folder.read().compare == ()


def test_a_study_may_ask_for_fewer_cores(folder: Folder) -> None:
    assert folder.read().studies[0].cpu_threads == ()
    folder.study(cpu_threads=[1, "half"])
    assert folder.read().studies[0].cpu_threads == (1, "half")


@pytest.mark.parametrize("threads", [[0], ["all"], [1, 1], 1, [1.5]])
def test_a_number_of_cores_that_is_none_is_one_line(folder: Folder, threads: Any) -> None:
    folder.study(cpu_threads=threads)
    assert "studies/mine.yaml: cpu_threads" in one_line(folder.read)


def test_a_claim_means_the_cpu_on_all_cores(folder: Folder) -> None:
    claim = {**SAID, "ratio_below": {"metric": "step_time_s", "limit": 1, "of": {}, "over": {}}}
    pinned = {"of": {"size": 2}, "over": {"size": 3}, "where": {"device": "cpu"}}
    folder.study(
        cpu_threads=[1], devices=["cpu"], claims=[{**claim, "ratio_below": {**claim["ratio_below"], **pinned}}]
    )
    assert folder.read().studies[0].claims

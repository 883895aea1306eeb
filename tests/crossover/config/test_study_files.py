"""A study's file: allowed values of its keys, and allowed combinations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.workloads import workload_traits
from user_errors import error_line

PUBLISHED = {"statement": "x", "source": "y"}


def test_a_study_may_change_numbers_of_the_run(folder: Any) -> None:
    study = folder.study(effort={"blocks_min": 3}, refinement={"bisections": 0}, cpu_threads=[1, "half"])
    assert (study.effort, study.refinement, study.cpu_threads) == ({"blocks_min": 3}, {"bisections": 0}, (1, "half"))
    assert repr(folder.study(effort={"timed_max_s": 1}).effort["timed_max_s"]) == "1.0"  # as command lines write it
    study = folder.study(refinement=None)
    assert (study.effort, study.refinement, study.cpu_threads) == ({}, None, ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": [99]}, "sizes: 99 is not offered by workload 'disc_mlp'; allowed: linear layers from 2 to 16"),
        ({"batch_sizes": [1001]}, "batch_sizes: 1001 is more than dataset 'disc' has; allowed: at most its 1000 rows"),
        (
            {"workload": "digits_mlp", "sizes": [64], "batch_sizes": [1798]},
            "batch_sizes: 1798 is more than dataset 'digits' has; allowed: at most its 1797 rows",
        ),
        (
            {"workload": "matmul", "sizes": [64], "batch_sizes": [2]},
            "batch_sizes: 2 is not offered by workload 'matmul'",
        ),
        ({"workload": "disc"}, "workload: 'disc' is unknown; allowed: "),
        ({"workload": None}, "workload: null is not allowed; allowed: a module's name of letters, digits, _ and -"),
        ({"timed": False, "quality": {}, "largest_batch": True}, "largest_batch: true, but the study times nothing"),
        (
            {"asks": {"of": {"precision": "tf32"}, "over": {"precision": "fp32"}, "metrics": ["step_time_s"]}},
            "asks.of.precision: 'tf32' is not measured by study 'mine'; allowed: fp32",
        ),
        (
            {"asks": {"of": {"precision": "fp32"}, "over": {"variant": "plain"}, "metrics": ["step_time_s"]}},
            "asks: of {'precision': 'fp32'}, over {'variant': 'plain'}; allowed: two sides with the same axes and",
        ),
        (
            {"figures": ["speedup"]},
            "figures.0: 'speedup' is not allowed; allowed: 'comparison', 'energy', ",
        ),
        (
            {"latency_steps": 400, "protocols": ["cold"]},
            "latency_steps: 400, but calls with protocol cold are latencies already; allowed: 0",
        ),
        ({"figures": ["latency"]}, "latency_steps: 0, but the study measures latency; allowed: at least 368"),
        ({"effort": {"warmup_max_s": 0.1}}, "effort.warmup_min_s: 0.2 is more than effort.warmup_max_s, 0.1, with the"),
        (
            {"published": {**PUBLISHED, "results": "a.csv"}},
            "published.results: there is no file studies/a.csv or published/a.csv; give a CSV file",
        ),
        (
            {"x_axis": "batch_size"},
            "x_axis: batch_size, but batch_sizes is [100]; allowed: size, or several batch sizes",
        ),
        (
            {"refinement": {"pairs": ["execution"]}},
            "refinement.pairs: execution, but executions is ['eager']; allowed: several, or pairs without execution",
        ),
        ({"refinement": {"pairs": ["plane"]}}, "refinement.pairs: plane, which needs 3 sizes and 3 batch sizes or"),
        (
            {"refinement": {"pairs": ["plane"]}, "devices": ["cpu"], "sizes": [1, 2, 3], "batch_sizes": [1, 2, 3]},
            "refinement.pairs: plane, but devices is ['cpu']; allowed: the CPU and an accelerator, or pairs",
        ),
        ({"x_axis": "cpu_threads"}, "x_axis: cpu_threads, but cpu_threads is empty; allowed: size, or"),
        (
            {"x_axis": "cpu_threads", "cpu_threads": [1], "candidates": {"executions": ["compile"]}},
            "candidates: not possible with x_axis cpu_threads",
        ),
        ({"candidates": {"sizes": [2, 16]}}, "candidates.sizes: 16 not in the study's sizes; allowed: 2, 3"),
        (
            {"candidates": {"sizes": [2, 3], "executions": ["compile"], "protocols": ["as_published"]}},
            "candidates.protocols: as_published not in the study's protocols; allowed: resident",
        ),
        (
            {"candidates": {"sizes": [2, 3], "executions": ["eager"]}},
            "candidates: adds nothing to what the study measures",
        ),
        (
            {"candidates": {"sizes": [2, 3], "cpu_threads": [1]}, "timed": False, "quality": {}},
            "candidates: given, but the study times nothing; allowed: null, or timed: true",
        ),
        ({"timed": False}, "timed: false, and quality is null, so that nothing is measured; set one of them"),
        ({"quality": {}, "precisions": ["tf32"]}, "precisions: ['tf32'] lacks fp32, which quality compares with"),
        (
            {"workload": "higgs_mlp", "quality": {}, "protocols": ["as_published"]},
            "protocols: ['as_published'] lacks resident, with which quality trains; add it",
        ),
        ({"workload": "linear_stack", "sizes": [64], "quality": {}}, "quality: workload 'linear_stack' does not train"),
        (
            {"quality": {"classes": ["a", "b", "c"]}},
            "quality.classes: 3 names, but CLASSES of workload 'disc_mlp'",
        ),
    ],
)
def test_an_invalid_study_is_one_line(folder: Any, changes: dict[str, Any], message: str) -> None:
    assert error_line(lambda: folder.study(**changes)).startswith(f"studies/mine.yaml: {message}")


def test_a_dataset_missing_from_the_config_is_one_line(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    traits = replace(workload_traits("disc_mlp"), dataset="own")
    monkeypatch.setattr("crossover.config.study_files.workload_traits", lambda _workload: traits)
    assert "workload: DATASET of 'disc_mlp' is 'own', which `datasets` of the config lacks" in error_line(folder.read)


def test_only_generated_datasets_limit_the_batch_size(folder: Any) -> None:
    folder.write(workload="mnist_cnn", batch_sizes=[100])
    assert "batch_sizes: 100 is more than" in error_line(lambda: folder.read(datasets={"mnist": {"rows": 99}}))
    assert folder.read(datasets={"mnist": {"rows": 99, "folder": "studies"}}).studies[0].batch_sizes == (100,)


def test_published_results_are_searched_for_beside_the_study_and_in_published(folder: Any, tmp_path: Path) -> None:
    text = "# source\nsize,step_time_s\n1,2\n"
    (folder.path / "published" / "runs.csv").write_text(text)
    folder.write(published={**PUBLISHED, "results": "runs.csv"})
    (tmp_path / "own").mkdir()
    (folder.path / "studies" / "mine.yaml").rename(tmp_path / "own" / "mine.yaml")

    def results() -> str:
        return str(folder.read(studies=["own/mine.yaml"]).studies[0].published.results)

    assert results() == "published/runs.csv"
    (tmp_path / "own" / "runs.csv").write_text(text)
    assert results() == "own/runs.csv"


def test_published_run_times_need_the_steps_of_a_run(folder: Any) -> None:
    (Path("published") / "runs.csv").write_text("# source\nsize,run_time_s\n1,2\n")
    published = {**PUBLISHED, "results": "runs.csv"}
    assert "steps_per_run: needed" in error_line(lambda: folder.study(published=published))
    folder.study(published=published, steps_per_run={"epochs": 2, "samples": 300})


def test_a_constant_of_a_workload_that_is_of_another_type_is_one_line(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    traits = replace(workload_traits("disc_mlp"), protocols="resident")
    monkeypatch.setattr("crossover.config.study_files.workload_traits", lambda _workload: traits)
    assert "disc_mlp.py: constants: protocols: 'resident' is not allowed; allowed: a list" in error_line(folder.read)

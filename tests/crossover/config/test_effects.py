"""Options that would change nothing are errors that name what would; keys of `model` also work for one study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from user_errors import error_line

BUILDERS = """
def batched(batch_size): return batch_size
def fixed(): return 1
def sized(width): return width
def function(n, device): return n
def rows(batch_size, device): return batch_size
def alone(device): return device
def idle(n, device): return device
def unused(width): return 1
def unused_with_batch(width, batch_size): return batch_size
def own(width): return width, torch.zeros(20, 8)
def ignored(width, batch_size): return width, torch.zeros(20, 8)
"""


@pytest.fixture
def builders(folder: Any) -> Any:
    (folder.path / "net.py").write_text(BUILDERS)
    return folder


@pytest.mark.parametrize(
    ("entries", "grid"),
    [
        (["sizes=[2,5]", "batch_sizes=7"], ((2, 5), (7,), "size")),
        (["sizes=4"], ((4,), (100,), "size")),
        (["batch_sizes=[7,8]", "x_axis=batch_size"], ((2, 3), (7, 8), "batch_size")),
    ],
)
def test_keys_of_a_model_replace_those_of_the_only_study(folder: Any, entries: list[str], grid: Any) -> None:
    study = folder.read(entries=entries).studies[0]
    assert (study.sizes, study.batch_sizes, study.x_axis) == grid


def test_a_changed_grid_keeps_the_candidates_within_it(folder: Any) -> None:
    candidates = {"sizes": [2, 3, 4], "executions": ["compile"]}
    folder.write(sizes=[2, 3, 4], candidates=candidates)
    assert folder.read(entries=["sizes=[2,3]"]).studies[0].candidates.sizes == (2, 3)
    assert folder.read(entries=["sizes=[2,5]"]).studies[0].candidates.sizes is None
    assert folder.read({"overrides": {"mine": {"sizes": [3, 4]}}}).studies[0].candidates.sizes == (3, 4)


def test_later_layers_replace_what_excludes_them(builders: Any) -> None:
    study = builders.read({"model": "net.py:sized", "sizes": [8, 9]}, ["studies=mine"]).studies[0]
    assert (study.name, study.sizes) == ("mine", (2, 3))


@pytest.mark.parametrize(
    ("name", "entries", "grid"),
    [
        ("batched", [], ((1,), (1, 8, 64, 512), "batch_size")),
        ("batched", ["batch_sizes=[2,4]"], ((1,), (2, 4), "batch_size")),
        ("fixed", [], ((1,), (32,), "parameters")),
        ("fixed", ["batch_sizes=64"], ((1,), (64,), "parameters")),
        ("rows", [], ((1,), (1, 8, 64, 512), "batch_size")),
        ("alone", [], ((1,), (1,), "parameters")),
        ("sized", [], ((16, 64, 256, 1024), (32,), "size")),
        ("sized", ["overrides={net: {precisions: [fp32, bf16]}}"], ((16, 64, 256, 1024), (32,), "size")),
        ("idle", ["sizes=4"], ((4,), (1,), "size")),
        ("unused", ["sizes=4"], ((4,), (32,), "size")),
        ("own", [], ((16, 64, 256, 1024), (20,), "size")),
        ("own", ["batch_sizes=20"], ((16, 64, 256, 1024), (20,), "size")),
        ("ignored", [], ((16, 64, 256, 1024), (20,), "size")),
    ],
)
def test_the_axis_of_a_builder_is_what_it_takes(builders: Any, name: str, entries: list[str], grid: Any) -> None:
    study = builders.read(entries=[f"model=net.py:{name}", *entries]).studies[0]
    assert (study.sizes, study.batch_sizes, study.x_axis) == grid
    assert study.name == "net"


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        (
            "batched",
            "sizes=[16,64]",
            "sizes: [16, 64], but batched(batch_size) has no argument for a size; give batch_s",
        ),
        ("fixed", "sizes=[16,64]", "sizes: [16, 64], but fixed() has no argument for a size; add one, or remove sizes"),
        ("fixed", "sizes=16", "sizes: [16], but fixed() has no argument for a size"),
        ("alone", "sizes=[16]", "sizes: [16], but alone(device) has no argument for a size"),
        ("fixed", "x_axis=parameters", "x_axis: parameters, but fixed() has no argument for a size; allowed: cpu_thr"),
        ("batched", "x_axis=size", "x_axis: size, but batched(batch_size) has no argument for a size; allowed: batch_"),
        ("function", "mode=train", "mode: train, but function(n, device) returns the step itself; remove mode"),
        ("function", "batch_sizes=4", "batch_sizes: 4, but net.py:function has no argument batch_size; add it"),
        ("idle", "sizes=[4,8]", "sizes: [4, 8], but idle(n, device) never reads its size; use it, or give one size"),
        ("unused", "batch_sizes=4", "sizes: [16, 64, 256, 1024], but unused(width) never reads its size; use it, or"),
        ("unused_with_batch", "sizes=[4,8]", "sizes: [4, 8], but unused_with_batch(width, batch_size) never reads its"),
        (
            "own",
            "batch_sizes=7",
            "batch_sizes: [7], but own(width) builds batches of 20 rows; allowed: [20]; for others, add an argument",
        ),
        ("own", "batch_sizes=[1,20,64]", "batch_sizes: [1, 64], but own(width) builds batches of 20 rows; allowed: [2"),
        (
            "ignored",
            "batch_sizes=7",
            "batch_sizes: [7], but ignored(width, batch_size) builds batches of 20 rows; allowed: [20]; for others, re",
        ),
        (
            "function",
            "overrides={net: {precisions: [bf16]}}",
            "overrides.net: precisions: bf16, but a function runs as written; allowed: as_written",
        ),
        (
            "sized",
            "overrides={net: {variants: [a]}}",
            "overrides.net: variants: a, but a model of your own has no variants; allowed: plain",
        ),
        ("sized", "overrides={other: {sizes: [3]}}", "overrides: 'other' is unknown; allowed: mine, net"),
        ("sized", "overrides={mine: {sizes: [3]}}", "overrides: 'mine' is not selected; allowed: net, or select it"),
    ],
)
def test_what_a_builder_does_not_take_is_refused(builders: Any, name: str, entry: str, message: str) -> None:
    text = error_line(lambda: builders.read(entries=[f"model=net.py:{name}", entry]))
    assert text.startswith(f"--config: {message}")


def test_a_table_gives_batches_of_any_size(builders: Any) -> None:
    (builders.path / "rows.csv").write_text("a,b\n" + "1,2\n" * 9)
    data = f"data={{file: {builders.path / 'rows.csv'}, targets: b}}"
    assert builders.read(entries=["model=net.py:own", "batch_sizes=7", data]).studies[0].batch_sizes == (7,)


@pytest.mark.parametrize(
    ("study", "entries", "message"),
    [
        ({}, ["mode=infer"], "mode: given, but the study measures workload 'disc_mlp'; only a `model` has a mode"),
        ({}, ["sizes=[99]"], "sizes: 99 is not offered by workload 'disc_mlp'"),
        (
            {"trials": 3},
            ["trials=10"],
            "trials: 10, but mine has 3 of its own; give overrides={mine: {trials: 10}} too",
        ),
        ({}, ["overrides={mine: {trials: 20}}"], "overrides.mine.trials: 20 is more than the run's 8; give trials=20"),
        (
            {"time_limit_s": 60.0},
            ["time_limit_s=900"],
            "time_limit_s: 900, but mine has 60 of its own; give overrides={mine: {time_limit_s: 900}} too",
        ),
        (
            {"effort": {"timed_max_s": 0.4}},
            ["effort={timed_max_s: 9}"],
            "effort.timed_max_s: 9, but mine has 0.4 of its own; give overrides={mine: {effort: {timed_max_s: 9}}} too",
        ),
        (
            {"effort": {"blocks_min": 30}},
            ["effort={blocks_min: 9}"],
            "effort.blocks_min: 9, but mine has 30 of its own; give overrides={mine: {effort: {blocks_min: 9}}} too",
        ),
        (
            {},
            ["overrides={mine: {effort: {timed_max_s: 9}}}"],
            "overrides.mine.effort.timed_max_s: 9 is more than the run's 0.5; give effort={timed_max_s: 9} too",
        ),
        ({}, ["effort={latencies_max_s: 9}"], "effort.latencies_max_s: no selected study has latency_steps; remove it"),
        ({"sizes": [2]}, ["effort={refinement: {bisections: 1}}"], "effort.refinement: no selected study looks for"),
        ({}, ["datasets={higgs: {rows: 10}}"], "datasets.higgs: no selected study reads it (mine); remove it, or"),
    ],
)
def test_an_option_without_effect_names_what_has_one(folder: Any, study: Any, entries: Any, message: str) -> None:
    folder.write(**study)
    assert error_line(lambda: folder.read(entries=entries)).startswith(f"--config: {message}")


def test_the_advice_of_such_an_error_works(folder: Any) -> None:
    folder.write(trials=3, effort={"timed_max_s": 0.4})
    config = folder.read(
        entries=["trials=10", "overrides={mine: {trials: 10, effort: {timed_max_s: 9}}}", "effort={timed_max_s: 9}"]
    )
    assert (config.trials, config.studies[0].trials, config.studies[0].effort) == (10, 10, {"timed_max_s": 9.0})


def test_a_study_given_by_its_path_is_named_by_it(folder: Any) -> None:
    folder.write(trials=3)
    path = "studies=studies/mine.yaml"
    text = error_line(lambda: folder.read(entries=[path, "trials=10"]))
    assert text.endswith("of its own; give overrides={studies/mine.yaml: {trials: 10}} too")
    overrides = "overrides={studies/mine.yaml: {trials: 10}}"
    assert folder.read(entries=[path, "trials=10", overrides]).studies[0].trials == 10
    assert "overrides.studies/mine.yaml.trials: 10 is more" in error_line(
        lambda: folder.read(entries=[path, overrides])
    )


def test_several_studies_have_no_common_sizes(folder: Any) -> None:
    folder.write("other")
    text = error_line(lambda: folder.read(entries=["studies=[mine,other]", "sizes=[2]"]))
    assert text == (
        "--config: sizes: for `model` or one study, but 2 are selected; select one, or give it to a study: "
        "overrides={mine: {sizes: ...}}"
    )


def test_keys_for_other_studies_may_stand_in_files(folder: Any) -> None:
    folder.write("other")
    override = {"overrides": {"other": {"sizes": [4]}}, "datasets": {"higgs": {"rows": 10}}}
    assert folder.read(override, ["trials=5"]).studies[0].name == "mine"


def test_claims_outside_of_a_changed_grid_name_the_way_out(folder: Any) -> None:
    where = {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "where": {"size": 2, "batch_size": 100}}
    folder.write(claims=[{"statement": "x", "source": "y", "speedup_between": {**where, "range": [1, 2]}}])
    text = error_line(lambda: folder.read(entries=["batch_sizes=7"]))
    assert text.endswith("allowed: 7; to measure without the claims, overrides={mine: {claims: []}}")
    assert folder.read(entries=["batch_sizes=7", "overrides={mine: {claims: []}}"]).studies[0].claims == ()


@pytest.mark.parametrize(
    ("entries", "trials", "first"),
    [
        (["effort=quick"], 3, 1),
        (["effort=quick", "trials=3"], 3, 3),
        (["effort={preset: quick, refinement: {first_trials: 2}}", "trials=5"], 5, 2),
        (["trials=12"], 12, 3),
    ],
)
def test_trials_given_with_a_preset_of_single_trials_are_those_of_each_cell(
    folder: Any, entries: list[str], trials: int, first: int
) -> None:
    config = folder.read(entries=entries)
    assert (config.trials, config.refinement.first_trials) == (trials, first)


def test_a_model_of_a_study_file_is_read_likewise(builders: Path) -> None:
    builders_folder: Any = builders
    study = builders_folder.study(workload=..., sizes=..., batch_sizes=..., model="net.py:batched")
    assert (study.batch_sizes, study.x_axis) == ((1, 8, 64, 512), "batch_size")
    text = error_line(lambda: builders_folder.study(workload=..., sizes=[3, 4], model="net.py:fixed"))
    assert text.startswith("studies/mine.yaml: sizes: [3, 4], but fixed() has no argument for a size")
    text = error_line(lambda: builders_folder.study(mode="infer"))
    assert text.startswith("studies/mine.yaml: mode: given, but the study measures workload 'disc_mlp'")

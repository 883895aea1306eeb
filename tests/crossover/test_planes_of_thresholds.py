"""Regions of sizes and batch sizes: the answer, thresholds.json, the C header, and a Snakemake rule's resource."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.compare.rules import Rule
from crossover.config.models import Model
from crossover.config.study import Study
from crossover.home import ROOT
from crossover.report.thresholds import thresholds_of
from crossover.tables.run_tables import RunTables
from crossover.thresholds import C_HEADER, c_header, gpu_if, read_thresholds, should_use_gpu
from crossover.topics.answers import read_answers
from crossover.topics.plane import InPlane, rule_text
from report_pages import study, tables_of

SIZES, BATCH_SIZES = (16, 64, 256, 1024), (1, 8, 64)
INSIDE = {(16, 1): False, (16, 8): False, (20, 2): False, (1024, 64): True, (1000, 60): True, (256, 8): True}
OUTSIDE = [(64, 30), (15, 1), (2000, 64), (0, 8), (-1, 8), ("INFINITY", 8), ("INFINITY", "INFINITY"), ("NAN", 8)]


def study_of(x_axis: str) -> Study:
    return study(
        name="both",
        sizes=SIZES,
        batch_sizes=BATCH_SIZES,
        protocols=("resident",),
        precisions=("fp32",),
        executions=("eager",),
        refinement={"pairs": ["plane"]},
        x_axis=x_axis,
    )


STUDIES = {"both": study_of("size")}


def rows_of(
    row: Callable[..., dict[str, Any]], gpu_wins: Callable[[int, int], bool] = lambda size, batch: size * batch >= 1024
) -> list[dict[str, Any]]:
    """A GPU that is four times as fast where it wins, and four times as slow elsewhere."""
    return [
        row(
            study="both",
            size=size,
            batch_size=batch_size,
            parameters=size**2,
            device=device,
            trial=trial,
            torch_version="2.13.0",
            step_time_s=1e-3 * 1.01**trial * ((4 if gpu_wins(size, batch_size) else 1 / 4) if device == "cpu" else 1),
        )
        for size in SIZES
        for batch_size in BATCH_SIZES
        for device in ("cpu", "cuda")
        for trial in range(1, 4)
    ]


@pytest.fixture(scope="module")
def tables(row: Callable[..., dict[str, Any]]) -> RunTables:
    return tables_of(pd.DataFrame(rows_of(row)), STUDIES)


@pytest.fixture(scope="module")
def file(tables: RunTables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("thresholds") / "thresholds.json"
    path.write_text(json.dumps(thresholds_of(tables, "today")))
    return path


def test_the_answer_names_the_regions_and_the_rule(tables: RunTables) -> None:
    answer = read_answers(tables.answers)[0]
    assert isinstance(answer, InPlane)
    assert answer.main
    region, rule = answer.text().split(". Rule: ")
    assert region == (
        "Of the plane of 16 to 1,024 linear layers and batches of 1 to 64, GPU is certified faster on 33 %, CPU on 25 %"
    )
    assert rule == (
        "GPU where linear layers x batch is at least 724 (wrong at 0 of 12 significant points; 1 when held out, "
        "at most 4.00x slower there)"
    )
    against = replace(answer, contradictions=(3, 17), winner_share=0.0, loser_share=0.0).details()
    assert against[0] == "3 of 17 points within regions of the first grid contradict these, so nothing is certified"
    assert answer.winner_share == pytest.approx(4 / 12)  # of six squares, each of two triangles
    assert answer.loser_share == pytest.approx(3 / 12)


def test_a_rule_is_about_parameters_if_the_study_is(row: Callable[..., dict[str, Any]]) -> None:
    text = read_answers(tables_of(pd.DataFrame(rows_of(row)), {"both": study_of("parameters")}).answers)[0].text()
    assert "of 16 to 1,024 linear layers and batches" in text
    assert "Rule: GPU where parameters x batch^2 is at least 524 k (wrong at 0" in text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule(1.0, 0.0, 128.0), "from 128 neurons"),
        (Rule(0.0, 1.0, 22.6), "from batch 23"),
        (Rule(0.0, 1.0, 32.00000000000001), "from batch 32"),
        (Rule(1.0, 0.5, 431.2), "where neurons x batch^0.5 is at least 431"),
        (Rule(1.0, 1.0, 0.0), "always"),
        (
            Rule(1.0, 0.0, None, [(1, None), (8, 30.0), (64, 0.0)]),
            "never at batch 1, from 30 neurons at batch 8, always at batch 64",
        ),
    ],
)
def test_a_rule_in_words(rule: Rule, text: str) -> None:
    assert rule_text(rule, "neurons") == text


@pytest.mark.parametrize(
    ("rule", "units", "text"),
    [
        (Rule(0.0, 1.0, 22.6), ("m", "k"), "from k = 23"),
        (Rule(1.0, 0.5, 431.2), ("m", "k"), "where m x k^0.5 is at least 431"),
        (Rule(1.0, 0.5, 431.2), ("units of width", "experts"), "where width x experts^0.5 is at least 431"),
        (Rule(1.0, -0.5, 9.8), ("m", "k"), "where m / k^0.5 is at least 9.8"),
        (Rule(1.0, 0.0, None, [(1, None), (8, 30.0)]), ("m", "k"), "never at k = 1, from m = 30 at k = 8"),
    ],
)
def test_a_rule_of_a_function_with_two_sizes_has_their_names(rule: Rule, units: tuple[str, str], text: str) -> None:
    assert rule_text(rule, *units) == text


@pytest.fixture(scope="module")
def named(row: Callable[..., dict[str, Any]]) -> RunTables:
    """The same rows, of a function `build(m, k, device)` with `axes`."""
    rows = pd.DataFrame(rows_of(row)).assign(size_name="m", batch_name="k")
    model = Model("my_op.py", "build", size_name="m", takes=("device",), axes=("m", "k"))
    return tables_of(rows, {"both": replace(STUDIES["both"], user_model=model)})


def test_the_answers_of_a_function_with_two_sizes_have_their_names(named: RunTables) -> None:
    plane, *others = read_answers(named.answers)
    assert plane.text().startswith(
        "Of the plane of m = 16 to 1,024 and k = 1 to 64, GPU is certified faster on 33 %, CPU on 25 %. Rule: GPU "
        "where m x k is at least 724 "
    )
    crossovers = [answer for answer in others if answer.kind == "crossover"]
    assert {answer.series for answer in crossovers} >= {"k = 8", "m = 64"}
    (over_k,) = [answer.text() for answer in crossovers if answer.series == "m = 64"]
    assert over_k.startswith("m = 64: GPU faster above k = ")
    (over_k,) = [answer.text() for answer in crossovers if answer.series == "m = 1,024"]
    assert over_k.startswith("m = 1,024: GPU faster at every k measured, ")


def test_programs_may_ask_by_the_names_of_the_arguments(named: RunTables, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(thresholds_of(named, "today")))
    thresholds = read_thresholds(file)
    for (m, k), wins in INSIDE.items():
        assert should_use_gpu(thresholds, "both", m=m, k=k) is wins
        assert should_use_gpu(thresholds, "both", size=m, batch_size=k) is wins
    assert should_use_gpu(thresholds, "both", 1024, k=8) is True
    assert should_use_gpu(thresholds, "both", m=64, k=30) is None
    with pytest.raises(ValueError, match="'q' is not an axis of a series; allowed: size, batch_size, m, k, machine"):
        should_use_gpu(thresholds, "both", m=64, q=30)
    with pytest.raises(TypeError, match="x is missing; allowed: a number, or m= and k= together"):
        should_use_gpu(thresholds, "both", m=64)
    with pytest.raises(TypeError, match="m and size are one variable; allowed: one of them"):
        should_use_gpu(thresholds, "both", m=64, size=1024, k=30)
    with pytest.raises(ValueError, match=r"study 'other' has no thresholds; allowed: \['both'\]"):
        should_use_gpu(thresholds, "other", m=64, k=30)
    with pytest.raises(TypeError, match="k is 'a'; allowed: a number"):
        should_use_gpu(thresholds, "both", m=64, k="a")
    assert gpu_if(file, "both", m="n", k="b")(SimpleNamespace(n="1024", b="64")) == 1
    header = c_header(thresholds, file.name)
    assert (
        "/* both: m and k, 3 trials or more */\n"
        "static inline int crossover_t_both_plane(double arg_m, double arg_k) {" in header
    )
    assert "/* both, k 8: m, 3 trials or more */" in header


def build(folder: Path) -> None:
    """Compile main.c of a folder as C++, and then as C to the program `main`."""
    warnings = ["-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", "-lm"]
    for compiler in (["c++", "-x", "c++", "-std=gnu++20"], ["cc", "-std=gnu99"]):
        subprocess.run([*compiler, *warnings], cwd=folder, check=True)


has_compilers = pytest.mark.skipif(not (shutil.which("cc") and shutil.which("c++")), reason="no C and C++ compilers")


@has_compilers
def test_any_name_and_unit_compiles_as_c_and_cpp(named: RunTables, tmp_path: Path) -> None:
    plane = thresholds_of(named, "today")["thresholds"][-1] | {"cpu": "*/ C", "unit": "*/ int x; /*"}
    plane["rule"] |= {"text": "*/ int y; /*"}
    pairs = [("long", "regions"), ("linux", "M_PI"), ("wchar_t", "char8_t"), ("co_await", "in_crossover_plane")]
    pairs += [("log", "log_"), ("double", "fmin")]
    changed = [plane | {"study": f"s{number}", "arguments": pair} for number, pair in enumerate(pairs)]
    (tmp_path / "main.c").write_text(c_header(changed, "some/*/t.json") + "int main(void) { return 0; }\n")
    build(tmp_path)


def test_a_plane_counts_as_one_comparison_of_its_study(tables: RunTables) -> None:
    crossovers = len(tables.crossovers[tables.crossovers["cost"] == "time"])
    assert tables.answers["corrected_for"].iloc[0] <= crossovers + 1


def test_programs_get_the_answer_within_the_regions_only(file: Path) -> None:
    thresholds = read_thresholds(file)
    for (size, batch_size), wins in INSIDE.items():
        assert should_use_gpu(thresholds, "both", size=size, batch_size=batch_size) is wins, (size, batch_size)
    for size, batch_size in [(float(size), float(batch_size)) for size, batch_size in OUTSIDE]:
        assert should_use_gpu(thresholds, "both", size=size, batch_size=batch_size) is None
        assert should_use_gpu(thresholds, "both", size=size, batch_size=batch_size, default=True) is True
    assert should_use_gpu(thresholds, "both", 1024, batch_size=8) is True  # along the size, as before
    assert should_use_gpu(thresholds, "both", size=16, batch_size=1, gpu="Brand X") is None
    with pytest.raises(TypeError, match="x is missing; allowed: a number, or size= and batch_size= together"):
        should_use_gpu(thresholds, "both", size=16)
    along_one = [series for series in thresholds if "triangles" not in series]
    with pytest.raises(ValueError, match="study 'both' has no thresholds for sizes and batch sizes together; allowed"):
        should_use_gpu(along_one, "both", size=16, batch_size=1)


def test_a_point_without_a_time_is_in_no_region(row: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    rows = rows_of(row)
    for lost in rows:
        if (lost["size"], lost["batch_size"], lost["device"]) == (1024, 8, "cuda"):
            lost |= {"status": "oom", "step_time_s": None}
    (tmp_path / "t.json").write_text(json.dumps(thresholds_of(tables_of(pd.DataFrame(rows), STUDIES), "")))
    thresholds = read_thresholds(tmp_path / "t.json")
    found = [should_use_gpu(thresholds, "both", size=1024, batch_size=batch) for batch in (7, 8, 9)]
    assert found == [None] * 3


def test_one_side_with_an_exception_gets_no_rule(row: Callable[..., dict[str, Any]]) -> None:
    """The GPU is faster at the smallest size only, which no least size describes."""
    rows = rows_of(row, lambda size, _: size == 16)
    answer = read_answers(tables_of(pd.DataFrame(rows), STUDIES).answers)[0]
    assert isinstance(answer, InPlane)
    assert answer.rule is None
    assert answer.winner_share == pytest.approx(0)


def test_the_file_is_for_the_hardware_that_it_names(file: Path) -> None:
    assert read_thresholds(file, gpu="Brand G1", cpu="Brand C1", torch_version="2.13.0")
    with pytest.raises(ValueError, match="measured with gpu 'Brand G1', not 'Brand X'; measure here, which"):
        read_thresholds(file, gpu="Brand X")
    with pytest.raises(ValueError, match="measured with physical_cores None, not '64'; measure here"):
        read_thresholds(file, physical_cores="64")
    with pytest.raises(TypeError, match="'colour' is no hardware or version of a file; allowed: cpu, physical_cores"):
        read_thresholds(file, colour="red")


def test_a_rule_of_snakemake_asks_for_a_gpu_where_it_pays(file: Path) -> None:
    wildcards = SimpleNamespace(n="1024", b="64")
    assert gpu_if(file, "both", size="n", batch_size="b")(wildcards) == 1
    assert gpu_if(file, "both", size="n", batch_size=lambda w: int(w.b) / 64)(SimpleNamespace(n="16", b="64")) == 0
    assert gpu_if(file, "both", "n", batch_size=8)(wildcards) == 1
    assert gpu_if(file, "both", size=64, batch_size=30)(wildcards) == 0
    assert gpu_if(file, "both", size=64, batch_size=30, default=1)(wildcards) == 1
    assert gpu_if(file, "both", "n", batch_size=8, gpu="Brand G1")(wildcards) == 1
    assert gpu_if(file, size="n", batch_size="b")(wildcards) == 1  # of the only study
    with pytest.raises(ValueError, match="'bth' is not an axis of a series; allowed: size, batch_size"):
        gpu_if(file, "both", size="n", batch_size="b", bth="b")
    with pytest.raises(TypeError, match=r"study is 50; allowed: \['both'\], or None for the only one"):
        gpu_if(file, 50)  # type: ignore[arg-type]
    for default in (None, -3, 0.5, True):
        with pytest.raises(ValueError, match=f"gpu_if: default is {default}; allowed: a number of GPUs"):
            gpu_if(file, "both", "n", default=default)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measured with gpu 'Brand G1', not 'Brand X'; measure here"):
        gpu_if(file, "both", "n", batch_size=8, gpu="Brand X")


def test_a_workflow_uses_it(file: Path, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        "from crossover import gpu_if\n"
        f"rule fit:\n    output: '{{n}}.txt'\n    resources: gpu=gpu_if({str(file)!r}, 'both', 'n', batch_size=8)\n"
        "    shell: 'echo {resources.gpu} > {output}'\n"
    )
    command = [sys.executable, "-m", "snakemake", "16.txt", "1024.txt", "--cores", "1", "--resources", "gpu=1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)
    assert [(tmp_path / f"{n}.txt").read_text() for n in (16, 1024)] == ["0\n", "1\n"]


@has_compilers
def test_the_c_header_gives_the_same_answers(file: Path, tmp_path: Path) -> None:
    thresholds = read_thresholds(file)
    (tmp_path / "thresholds.h").write_text(c_header(thresholds, file.name))
    points = [*INSIDE, *OUTSIDE]
    calls = ", ".join(f"crossover_both_plane({size}, {batch_size})" for size, batch_size in points)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "thresholds.h"\n'
        f"int main(void) {{ int found[] = {{{calls}, crossover_both_8(1024), crossover_both_8(99999)}};\n"
        'for (unsigned i = 0; i < sizeof found / sizeof *found; i++) printf("%d ", found[i]);\nreturn 0; }\n'
    )
    build(tmp_path)
    output = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert [int(word) for word in output.split()] == [*map(int, INSIDE.values()), *[-1] * len(OUTSIDE), 1, -1]
    assert "Brand C1 and Brand G1, torch 2.13.0" in (tmp_path / "thresholds.h").read_text()


RULES = [
    Rule(1.0, 0.0, 60.0),
    Rule(0.0, 1.0, 7.0),
    Rule(1.0, 0.5, 300.0),
    Rule(1.0, -0.5, 20.0),
    Rule(1.0, 0.0, None, [(1, None), (8, 50.0), (64, 0.0)]),
]


@has_compilers
def test_a_header_may_have_a_function_of_any_name_of_a_study(file: Path, tmp_path: Path) -> None:
    of_plane = [series | {"study": "in"} for series in read_thresholds(file) if "triangles" in series]
    (tmp_path / "thresholds.h").write_text(c_header(of_plane, "thresholds.json"))
    call = "crossover_in_plane(1024, 64)"
    (tmp_path / "main.c").write_text(f'#include "thresholds.h"\nint main(void) {{ return {call} != 1; }}\n')
    build(tmp_path)
    assert subprocess.run([tmp_path / "main"]).returncode == 0


@has_compilers
def test_headers_of_two_files_have_their_rules_and_go_together(file: Path, tmp_path: Path) -> None:
    """The headers of files with other names have functions of other names."""
    (series,) = (series for series in read_thresholds(file) if "triangles" in series)
    points = [(size, batch) for size in (10, 49, 51, 100, 1000) for batch in (1, 2, 3, 6, 8, 22, 23, 100)]
    text, names = "#include <stdio.h>\n", []
    for number, rule in enumerate(RULES):
        changed = series | {"rule": series["rule"] | {"rule": vars(rule)}}
        (tmp_path / f"r{number}.h").write_text(c_header([changed], f"some/r{number}.json"))
        text += f'#include "r{number}.h"\n' * 2
        names.append(f"crossover_r{number}_both_plane_rule")
    calls = ", ".join(f"{name}({size}, {batch})" for name in names for size, batch in points)
    calls += f", {names[0]}(-1, 2) == -1, {names[0]}(NAN, 2) == -1"
    text += f"int main(void) {{ int found[] = {{{calls}}};\nfor (int i = 0; i < {len(RULES) * len(points) + 2}; i++) "
    (tmp_path / "main.c").write_text(text + 'printf("%d", found[i]);\nreturn 0; }\n')
    build(tmp_path)
    output = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    expected = [wins for rule in RULES for wins in rule.chooses(np.array(points)).tolist()]
    assert [digit == "1" for digit in output] == [*expected, True, True]


@pytest.mark.parametrize(
    "change",
    [
        {"triangles": {"gpu": [[1, 2]], "cpu": []}},
        {"triangles": {"gpu": [[1, 1, 1, 1, 1, -1]], "cpu": []}},
        {"triangles": {"gpu": [[16, 1, 16, 1, 16, 1]], "cpu": []}},
        {"triangles": {"gpu": [["16", 1, 64, 1, 16, 8]], "cpu": []}},
        {"triangles": {"gpu": [], "cpu": []}, "rule": {"x": 1}},
        {"triangles": {"gpu": [], "cpu": []}, "arguments": ["m"]},
        {"triangles": {"gpu": [], "cpu": []}, "arguments": ["m", "m"]},
        {"triangles": {"gpu": [], "cpu": []}, "arguments": ["m", "if"]},
        {"triangles": {"gpu": [], "cpu": []}, "arguments": ["default", "k"]},
        {"triangles": {"gpu": [], "cpu": []}, "arguments": ["m", 7]},
        {"triangles": {"gpu": [[10**400, 1, 64, 1, 16, 8]], "cpu": []}},
        {"study": None},
        {"triangles": {}},
        {"triangles": None},
        {"ranges": [{"from": 1}]},
        {"arguments": None},
        {"arguments": ["m", "k", "n"]},
        {"single_trial": "no"},
        {"gpu_measured_elsewhere": 0},
        {"protocol": ["resident"]},
        {"smallest": "16"},
        {"lost": ["2048"]},
        {"ranges": [{"from": 1, "until": 8, "faster": "tpu"}]},
        {"ranges": [{"from": 1, "until": True, "faster": "gpu"}]},
        {"ranges": [{"from": 1, "until": 8, "faster": "cpu"}, {"from": 4, "until": 16, "faster": "gpu"}]},
        {"triangles": {"gpu": [[16, 1, 64, 1, 16, 8]], "cpu": [[16, 8, 64, 8, 64, 64]]}},
    ],
)
def test_a_damaged_file_is_refused(file: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    content = json.loads(file.read_text())
    content["thresholds"] = [series | change for series in content["thresholds"]]
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"t\.json: thresholds are incomplete; copy thresholds.json"):
        read_thresholds(tmp_path / "t.json")
    with pytest.raises(FileNotFoundError, match=r"none\.json: no such file; copy thresholds\.json from the results"):
        read_thresholds(tmp_path / "none.json")


@pytest.mark.parametrize(
    "change",
    [
        {"size_exponent": math.nan},
        {"batch_exponent": math.inf},
        {"least": math.nan},
        {"least": math.inf},
        {"by_batch": [[1, None], [8, math.inf]]},
        {"by_batch": [[1, 16], [8, 16, 16]]},
        {"by_batch": [[1, None], [8, True]]},
        {"wrong": True},
    ],
)
def test_a_rule_with_a_value_that_is_no_finite_number_is_damaged(
    file: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    content = json.loads(file.read_text())
    fit = content["thresholds"][-1]["rule"]
    (fit if "wrong" in change else fit["rule"]).update(change)
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"t\.json: thresholds are incomplete; copy thresholds.json"):
        read_thresholds(tmp_path / "t.json")


def test_a_header_names_the_hardware_that_was_measured(tables: RunTables) -> None:
    thresholds = [series | {"gpu": None, "device": None} for series in thresholds_of(tables, "today")["thresholds"]]
    assert "Measured on Brand C1, torch 2.13.0." in c_header(thresholds, "a.json")


def test_a_header_without_an_answer_has_no_function() -> None:
    assert "static const" not in c_header([], "a.json")
    assert C_HEADER.count("static inline") == 2

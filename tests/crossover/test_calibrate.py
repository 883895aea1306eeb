from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from crossover.calibrate import SHORT, calibrate
from crossover.thresholds import KINDS, VERSION
from user_errors import error_line


@pytest.fixture(autouse=True)
def _with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossover.calibrate.find_machine", lambda: SimpleNamespace(devices=("cpu", "cuda")))


THRESHOLD = {key: kinds[-1]() for key, kinds in KINDS.items()} | {"study": "my_op", "device": "cuda", "ranges": []}
WRITE = "import sys, pathlib; path = pathlib.Path(sys.argv[1], 'thresholds.json'); path.parent.mkdir(parents=True); "


def test_the_thresholds_of_a_run_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content = json.dumps({"version": VERSION, "thresholds": [THRESHOLD]})
    given: list[str] = []

    def build_command(words: Sequence[str]) -> list[str]:
        given[:] = words
        return ["-c", WRITE + f"path.write_text({content!r})", words[words.index("--results") + 1]]

    words = ["my_op.py:build", "--seed=1", "--sizes", "1,2,4", "--batch-sizes", "1,8,64", "--output", "mine.json"]
    assert calibrate(words, build_command) == 0
    assert Path("mine.json").read_text() == content
    assert " ".join(given) == (
        "my_op.py:build --minutes=5 --results results/calibration --sizes 1,2,4 --batch-sizes 1,8,64 --effort "
        f"{{{SHORT}, refinement: {{pairs: [plane]}}}} --seed=1"
    )
    assert (
        "Caution: results/calibration/thresholds.json: should_use_gpu returns its default everywhere: "
        in capsys.readouterr().out
    )


def test_two_sizes_by_name_are_refined_together() -> None:
    given: list[str] = []

    def build_command(words: Sequence[str]) -> list[str]:
        given[:] = words
        return ["-c", "raise SystemExit(3)"]

    axes = "{m: [64, 256, 1024], k: [1, 8, 64]}"
    assert calibrate(["my_op.py:build", "--axes", axes], build_command) == 3
    assert given[-4:] == ["--axes", axes, "--effort", f"{{{SHORT}, refinement: {{pairs: [plane]}}}}"]


def test_one_variable_is_refined_along_its_crossover() -> None:
    given: list[str] = []

    def build_command(words: Sequence[str]) -> list[str]:
        given[:] = words
        return ["-c", "raise SystemExit(3)"]

    words = ["my_op.py:build", "--minutes=2", "--effort=thorough"]
    assert calibrate(words, build_command) == 3  # the status of a run that failed
    assert " ".join(given) == "my_op.py:build --minutes=2 --results results/calibration --effort {preset: thorough}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch-sizes", "1,8"], "--batch-sizes 1,8; allowed: 3 or more values of each of two variables"),
        (["--sizes", "[1, 2]", "--batch-sizes", "1,8,9"], "--sizes [1, 2]; allowed: 3 or more values of each of two"),
        (["--axes", "{m: [1, 2, 3], k: [1, 8,]}"], "[1, 8,]}; allowed: 3 or more values of each"),
        (["--output", "missing/t.json"], "--output missing/t.json: not a file in an existing folder"),
        (["--output", "."], "--output .: not a file in an existing folder"),
        (["--", "-n"], "-- and options of Snakemake; allowed: options of crossover"),
    ],
)
def test_a_mistake_is_one_line_before_the_run(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in error_line(calibrate, ["my_op.py:build", *words], lambda _: pytest.fail("it runs"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: FILE.py:FUNCTION"),
        (["my_op.py:build", "--effort", "fast"], "argument --effort: invalid choice: 'fast' (choose from"),
    ],
)
def test_an_unreadable_command_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        calibrate(words, lambda _: pytest.fail("it runs"))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {message}")
    assert line.endswith("; `crossover calibrate --help` lists what is allowed")


def test_without_a_gpu_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = SimpleNamespace(devices=("cpu",), note=None)
    monkeypatch.setattr("crossover.calibrate.find_machine", lambda: alone)
    message = error_line(calibrate, ["my_op.py:build"], lambda _: pytest.fail("it runs"))
    assert "no GPU to compare with the CPU: none was found; run this where one is" in message


def test_if_no_gpu_was_measured_no_thresholds_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content = json.dumps({"version": VERSION, "thresholds": [THRESHOLD | {"device": None}]})
    write = ["-c", WRITE + f"path.write_text({content!r})", "results/calibration"]
    assert calibrate(["my_op.py:build"], lambda _: write) == 1
    assert "error: no GPU was measured, so thresholds.json is not written" in capsys.readouterr().err
    assert not Path("thresholds.json").exists()

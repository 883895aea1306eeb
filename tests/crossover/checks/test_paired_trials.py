from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.checks import paired_trials
from crossover.checks.paired_trials import collect_pairs, measure_trial
from crossover.errors import UserError

TRIALS = ["--size=1", "--size=2"]


class Measuring:
    """Measures in no time, until it is interrupted."""

    def __init__(self, until: int = 1000) -> None:
        self.until = until
        self.asked: list[tuple[str, int]] = []

    def __call__(self, options: list[str], pair: int) -> dict[str, Any]:
        if len(self.asked) == self.until:
            raise KeyboardInterrupt
        self.asked.append((*options, pair))
        return {"time_s": float(options[0][-1]) + pair / 10}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checks" / "check.pairs.csv"


def test_pairs_come_in_rounds_and_lie_in_a_file(path: Path) -> None:
    measuring = Measuring()
    samples = collect_pairs(TRIALS, 2, path, measuring, gpus=4)
    assert measuring.asked == [("--size=1", 0), ("--size=2", 0), ("--size=1", 1), ("--size=2", 1)]
    assert samples["time_s"].tolist() == [1.0, 2.0, 1.1, 2.1]
    pd.testing.assert_frame_equal(pd.read_csv(path), samples)


@pytest.mark.parametrize("until", [0, 1, 3, 5])
def test_an_interrupted_check_goes_on_after_its_last_pair(path: Path, until: int) -> None:
    first, second = Measuring(until), Measuring()
    with pytest.raises(KeyboardInterrupt):
        collect_pairs(TRIALS, 3, path, first, gpus=4)
    samples = collect_pairs(TRIALS, 3, path, second, gpus=4)
    assert first.asked + second.asked == [(trial, pair) for pair in range(3) for trial in TRIALS]
    assert samples["time_s"].tolist() == pytest.approx([1.0, 2.0, 1.1, 2.1, 1.2, 2.2])


def test_more_pairs_are_added_and_as_many_are_measured_anew(path: Path) -> None:
    collect_pairs(TRIALS, 2, path, Measuring(), gpus=4)
    collect_pairs(TRIALS, 3, path, more := Measuring(), gpus=4)
    assert more.asked == [("--size=1", 2), ("--size=2", 2)]
    collect_pairs(TRIALS, 3, path, again := Measuring(), gpus=4)
    assert len(again.asked) == 6


@pytest.mark.parametrize(("trials", "gpus"), [(["--size=1", "--size=3"], 4), (TRIALS[::-1], 4), (TRIALS, 2)])
def test_pairs_of_other_trials_or_another_machine_do_not_count(path: Path, trials: list[str], gpus: int) -> None:
    collect_pairs(TRIALS, 1, path, Measuring(), gpus=4)
    collect_pairs(trials, 2, path, measuring := Measuring(), gpus=gpus)
    assert len(measuring.asked) == 4


def script(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "script.py"
    place.write_text(f"import sys\nimport pandas as pd\noutput = sys.argv[-1].partition('=')[2]\n{text}")
    monkeypatch.setattr(paired_trials, "SCRIPT", place)


def test_a_trial_is_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "{'status': 'ok', 'reason': None, 'size': int(sys.argv[1]), 'flags': [[]]}"
    script(f"pd.DataFrame({row}).to_parquet(output)", tmp_path, monkeypatch)
    assert measure_trial(["7"])["size"] == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.exit(3)", "ended with status 3"),
        ("pd.DataFrame({'status': ['oom'], 'reason': ['too large']}).to_parquet(output)", "oom: too large"),
    ],
)
def test_a_trial_that_did_not_end_ok_ends_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    script(text, tmp_path, monkeypatch)
    with pytest.raises(UserError, match=f"script.py --size=1 .*: {words}"):
        measure_trial(["--size=1"])

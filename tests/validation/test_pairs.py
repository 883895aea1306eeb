from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pairs
import pandas as pd
import pytest
from pairs import (
    check_cell,
    collect_pairs,
    measure_trial,
    pair_table,
    spread_table,
    trial_commands,
)
from scipy import stats

from crossover.errors import UserError
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.workloads import read_dataset

TRIALS = ["--size=1", "--size=2"]


class Measuring:
    def __init__(self, until: int = 1000) -> None:
        self.until = until
        self.measured_pairs: list[tuple[str, int]] = []

    def __call__(self, options: list[str], pair: int) -> dict[str, Any]:
        if len(self.measured_pairs) == self.until:
            raise KeyboardInterrupt
        self.measured_pairs.append((*options, pair))
        return {"time_s": float(options[0][-1]) + pair / 10}


def test_a_command_names_its_cell_and_a_new_dataset(tmp_path: Path) -> None:
    cells = [check_cell("disc_mlp", 100, 3, "cpu"), check_cell("linear_stack", 8, 2, "cpu")]
    command, without_dataset = trial_commands(cells, tmp_path, seed=3)
    job = read_job(TrialJob, "", [*shlex.split(command), f"--output={tmp_path / 'row.parquet'}"])
    assert (job.cell, job.seed) == (cells[0], 3)
    assert read_dataset(job.dataset, "disc_mlp")["features"].shape == (1000, 2)
    assert "--dataset" not in without_dataset


@pytest.mark.parametrize("until", [0, 3, 5])
def test_an_interrupted_check_continues_after_its_last_pair(tmp_path: Path, until: int) -> None:
    first, second, path = Measuring(until), Measuring(), tmp_path / "new" / "pairs.csv"
    with pytest.raises(KeyboardInterrupt):
        collect_pairs(TRIALS, 3, path, first)
    samples = collect_pairs(TRIALS, 3, path, second)
    assert first.measured_pairs + second.measured_pairs == [(trial, pair) for pair in range(3) for trial in TRIALS]
    assert samples["time_s"].tolist() == pytest.approx([1.0, 2.0, 1.1, 2.1, 1.2, 2.2])
    pd.testing.assert_frame_equal(pd.read_csv(path), samples)


@pytest.mark.parametrize(
    ("trials", "wanted", "measured"),
    [(TRIALS, 3, 2), (TRIALS, 2, 4), (TRIALS[::-1], 3, 6)],
    ids=["one more", "as many again", "another order"],
)
def test_earlier_pairs_count_for_the_same_trials(tmp_path: Path, trials: list[str], wanted: int, measured: int) -> None:
    collect_pairs(TRIALS, 2, tmp_path / "pairs.csv", Measuring())
    collect_pairs(trials, wanted, tmp_path / "pairs.csv", measuring := Measuring())
    assert len(measuring.measured_pairs) == measured


def test_no_pair_starts_after_the_time_limit(tmp_path: Path) -> None:
    path, left = tmp_path / "pairs.csv", iter([True] * 3 + [False])
    assert len(collect_pairs(TRIALS, 3, path, Measuring(), lambda: next(left))) == 3
    assert len(collect_pairs(TRIALS, 3, path, rest := Measuring())) == 6
    assert len(rest.measured_pairs) == 3


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        ("row(status='ok', size=int(sys.argv[1]))", None),
        ("sys.exit(3)", "ended with status 3"),
        ("row(status='oom', reason='too large')", "oom: too large"),
    ],
)
def test_a_trial_returns_its_row_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, error: str | None
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport pandas as pd\noutput = sys.argv[-1].partition('=')[2]\n"
        f"def row(**values):\n    pd.DataFrame([values]).to_parquet(output)\n{ending}"
    )
    monkeypatch.setattr(pairs, "SCRIPT", script)
    if error is None:
        assert measure_trial(["7"])["size"] == 7
    else:
        with pytest.raises(UserError, match=f"script.py 7 .*: {error}"):
            measure_trial(["7"])


def test_the_ratio_of_pairs_is_a_paired_t_test_on_the_log_scale() -> None:
    random = np.random.default_rng(3)
    first = random.lognormal(0, 0.5, 20)  # pairs differ by more than the two sides of a pair
    second = first * random.lognormal(0.01, 0.02, 20)
    pair = pair_table(pd.DataFrame({"cell": "a", "first": first, "second": second}), ["cell"], "first", "second").iloc[
        0
    ]
    interval = stats.ttest_rel(np.log(second), np.log(first)).confidence_interval(0.95)
    assert math.log(pair["ratio"]) == pytest.approx(np.mean(np.log(second) - np.log(first)))
    assert (pair["low"], pair["high"]) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ([0.99, 1.01, 1.0, 1.0], "equivalent"),
        ([1.06, 1.061, 1.059, 1.06], "slower"),
        ([0.8, 1.25, 0.8, 1.25], "inconclusive"),
        ([1.0], "single_trial"),
    ],
)
def test_the_verdict_is_on_the_second_column(factors: list[float], verdict: str) -> None:
    samples = pd.DataFrame({"cell": "a", "first": 1.0, "second": factors})
    assert pair_table(samples, ["cell"], "first", "second")["verdict"].tolist() == [verdict]


def test_spreads_are_of_logarithms_and_the_interval_of_their_ratio_is_from_the_f_test() -> None:
    """The logs 0, 2, 4 have a standard deviation of 2, and 0, 6, 12 of 6.

    F with 2 and 2 degrees of freedom has the distribution function x / (1 + x), so its 97.5 % quantile is 39.
    """
    samples = pd.DataFrame({"cell": "a", "first": np.exp([0.0, 2.0, 4.0]), "second": np.exp([0.0, 6.0, 12.0])})
    (spread,) = spread_table(samples, ["cell"], "first", "second").to_dict("records")
    assert (spread["first_sd_ln"], spread["second_sd_ln"]) == pytest.approx((2, 6))
    assert spread["sd_ratio"] == pytest.approx(3)
    assert (spread["sd_ratio_low"], spread["sd_ratio_high"]) == pytest.approx((3 / 39**0.5, 3 * 39**0.5))


def test_the_interval_of_a_ratio_of_spreads_contains_it_as_often_as_stated() -> None:
    random = np.random.default_rng(5)
    draws = {"group": np.repeat(np.arange(400), 12), "first": np.exp(random.normal(0, 0.1, 4800))}
    samples = pd.DataFrame(draws | {"second": np.exp(random.normal(0, 0.2, 4800))})
    spreads = spread_table(samples, ["group"], "first", "second")
    holds = (spreads["sd_ratio_low"] <= 2) & (spreads["sd_ratio_high"] >= 2)
    assert abs(holds.mean() - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)
    assert (spreads["levene_p"] < 0.5).mean() > 0.7  # a twofold spread shows


def test_two_pairs_are_too_few_for_a_spread() -> None:
    assert spread_table(
        pd.DataFrame({"cell": ["a"] * 2, "first": 1.0, "second": 2.0}), ["cell"], "first", "second"
    ).empty

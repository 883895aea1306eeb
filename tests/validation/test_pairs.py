from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pairs import (
    pair_table,
    spread_table,
)
from scipy import stats


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

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crossover import text


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (text.seconds_text, 9.996e-4, "1.00 ms"),
        (text.seconds_text, 12.04, "12.0 s"),
        (text.seconds_text, 293_760.0, "3.4 days"),
        (text.seconds_text, 1e9, "31.7 years"),
        (text.bytes_text, 999_600_000, "1.00 GB"),
        (text.number_text, 0.01234, "0.0123"),
        (text.number_text, 1239.6, "1,240"),
        (text.number_text, 0, "0"),
        (text.count_text, 0, "0"),
        (text.count_text, 9999, "10 k"),
        (text.count_text, 999_999, "1 million"),
        (lambda value: text.place_text(value, "neurons"), 176_806, "176,806"),
        (lambda value: text.place_text(value, "neurons"), 176_806.4, "177 k"),
        (lambda values: text.place_texts(values, "parameters"), (612_000, 2e6), ["612 k", "2 million"]),
        (lambda values: text.place_texts(values, "layers"), (105, 195_278.5), ["105 layers", "195 k layers"]),
        (lambda value: text.with_unit(value, "n"), "1,000", "n = 1,000"),
        (lambda value: text.with_unit(value, "n"), "n = 1,000", "n = 1,000"),
        (lambda value: text.with_unit(value, "units of n"), "1,000", "n = 1,000"),
        (lambda value: text.with_unit(value, "units of hidden"), "16 to 64", "hidden = 16 to 64"),
        (lambda value: text.with_unit(value, "units of hidden"), "hidden = 16", "hidden = 16"),
        (lambda value: text.with_unit(value, "units of width"), "64", "width 64"),
        (lambda values: text.place_texts(values, "n"), (105, 195_278.5), ["n = 105", "n = 195 k"]),
        (text.rate_text, 8.0, "8.00/s"),
        (text.percent_text, 1.532, "153 %"),
        (text.share_text, 0.004, "under 1 %"),
        (text.money_text, 0.00123, "0.0012"),
        (text.small_text, 3.9e-5, "3.9 × 10⁻⁵"),
        (text.small_text, 0.13, "0.13"),
        (text.cores_text, 1, "1 core"),
        (text.cores_text, 15.7, "16 cores"),
        (text.listed, ["a", "b", "c"], "a, b and c"),
    ],
)
def test_values_are_formatted_with_units(function: Callable[[Any], Any], value: Any, expected: Any) -> None:
    assert function(value) == expected

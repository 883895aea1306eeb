from __future__ import annotations

import pandas as pd

from crossover.answers.naming import name_by, varying


def test_what_varies_is_named_in_the_order_of_a_name() -> None:
    table = pd.DataFrame({"precision": ["fp32", "tf32"], "batch_size": [1, 8], "execution": ["eager", "eager"]})
    assert varying(table) == ["batch_size", "precision"]


def test_a_missing_value_is_no_other_value() -> None:
    assert varying(pd.DataFrame({"precision": ["fp32", None], "batch_size": [8, 8]})) == []


def test_a_name_reads_as_words() -> None:
    row = {"size": 1024, "size_name": "width", "variant": "channels_last", "batch_size": 4096, "precision": None}
    assert name_by(row, ["size", "variant", "batch_size", "precision"]) == "1,024 width, channels last, batch 4,096"
    assert name_by({"size": 18}, ["size", "execution"]) == "18"

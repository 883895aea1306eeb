from __future__ import annotations

import json

import numpy as np
import pandas as pd

from crossover.report.page_encoding import encoded, plain, script_json


def test_a_column_is_written_without_repetition() -> None:
    assert encoded(["a", "a", "a"]) == {"all": "a"}
    assert encoded(["a", "b", "a", "b"]) == {"values": ["a", "b"], "at": [0, 1, 0, 1]}
    assert encoded([1, 2, 3, 1]) == [1, 2, 3, 1]
    assert encoded([]) == {"values": [], "at": []}


def test_values_are_those_of_json() -> None:
    table = pd.DataFrame(
        {"n": pd.array([1, None], dtype="Int64"), "x": [0.1234567891234, np.nan], "l": [["a", "b"], []]}
    )
    assert plain(table["n"]) == [1, None]
    assert plain(table["x"]) == [0.12345679, None]
    assert plain(table["l"]) == ["a b", ""]
    assert plain([np.bool_(True), np.int64(3), 4.0, float("inf"), "word"]) == [True, 3, 4, None, "word"]


def test_no_text_ends_the_element() -> None:
    text = "</script><!--<script> 🙂 \u202e"
    written = script_json({"text": text})
    assert "<" not in written
    assert written.isascii()
    assert json.loads(written) == {"text": text}

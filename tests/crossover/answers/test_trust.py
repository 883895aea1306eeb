from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from crossover.answers.trust import trust_words


def words(*cells: tuple[str, int, Sequence[str]]) -> list[str]:
    return list(map(str, trust_words(pd.DataFrame(cells, columns=["status", "trials", "flags"]))))


def test_flags_are_counted_by_cell_and_by_name() -> None:
    """Two of three cells are flagged, one of them twice."""
    assert words(("ok", 3, ["drift", "quota"]), ("ok", 3, ["drift"]), ("ok", 3, [])) == [
        "3 trials a cell",
        "2 of 3 cells flagged: 2 with times that drift (drift), 1 held back by a CPU quota (quota)",
        "every measured cell has a result",
    ]


def test_one_trial_is_indicative_and_several_counts_are_a_range() -> None:
    assert words(("ok", 1, []))[0] == "1 trial a cell: indicative only"
    assert words(("ok", 1, []), ("ok", 6, []))[0] == "1 to 6 trials a cell"


def test_cells_without_a_result_do_not_count_as_measured_with_none() -> None:
    assert words(("ok", 3, []), ("oom", 0, []), ("oom", 0, []), ("timeout", 2, [])) == [
        "2 to 3 trials a cell",
        "no cell flagged",
        "3 of 4 cells without a full result: 2 out of memory (oom), 1 over the time limit (timeout)",
    ]


def test_where_nothing_ended_ok_that_is_all_there_is_to_say() -> None:
    assert words(("invalid", 0, [])) == ["The only cell was not measured ok: 1 discarded as faulty (invalid)"]
    assert words(*[("oom", 0, [])] * 2) == ["None of 2 cells was measured ok: 2 out of memory (oom)"]
    assert words() == []

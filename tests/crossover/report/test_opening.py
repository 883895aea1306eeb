from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.report.opening import lead_figure, opening
from crossover.report.report_figures import FigureFile
from crossover.statistics.cores_worth import compare_cores
from report_pages import tables_of

PowerLaws = Callable[..., pd.DataFrame]
SPEC: dict[str, Any] = {"title": "A title", "question": "Where?", "figures": ["times"], "published": None}


def opened(rows: pd.DataFrame, **studies: dict[str, Any]) -> dict[str, Any]:
    return opening({name: SPEC | changes for name, changes in studies.items()}, tables_of(rows), [])


def figure(study: str, kind: str) -> FigureFile:
    return FigureFile(Path(study) / f"{kind}.svg")


def test_the_times_of_the_first_study_with_an_answer_lead() -> None:
    figures = [figure("a", "times"), figure("b", "speedups"), figure("c", "times")]
    assert lead_figure(["b", "c"], figures) == figures[2]
    assert lead_figure(["b"], figures) == figures[0]
    assert lead_figure([], []) is None


def test_a_study_that_was_not_measured_says_for_whom_it_is(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    cards = opened(rows, disc_depth={}, other={"devices": ["mps", "xpu"]}, third={})["cards"]
    assert [bool(card["answers"]) for card in cards] == [True, False, False]
    assert [card["missing"] for card in cards[1:]] == ["Not measured: for mps, xpu only", "Not measured here"]


def test_where_nothing_ended_ok_no_answer_is_made_up(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}).assign(status="invalid", step_time_s=None)
    found = opened(rows, disc_depth={})
    (card,) = found["cards"]
    said = "None of 4 cells was measured ok: 4 discarded as faulty (invalid)"
    assert (card["answers"], card["missing"]) == ([], said)
    assert list(map(str, found["trust"])) == [said]


def test_the_hardware_is_named_once_the_accelerator_first(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    assert opened(rows, disc_depth={})["hardware"] == ["GPU (Brand G1), 2 host threads", "CPU (Brand C1), 2 threads"]
    shared = rows.assign(threads=rows["device"].map({"cpu": 32, "cuda": 1}))
    assert opened(shared, disc_depth={})["hardware"] == ["GPU (Brand G1), 1 host thread", "CPU (Brand C1), 32 threads"]


def test_what_ended_before_it_knew_its_threads_is_no_hardware_of_its_own(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    untold = rows["size"] == 2
    rows = rows.assign(threads=rows["threads"].mask(untold), device_name=rows["device_name"].mask(untold))
    assert opened(rows, disc_depth={})["hardware"] == ["GPU (Brand G1), 2 host threads", "CPU (Brand C1), 2 threads"]
    assert opened(rows[untold], disc_depth={})["hardware"] == ["GPU", "CPU"]


def test_memory_is_that_of_the_fullest_study(power_laws: PowerLaws) -> None:
    """2 GB and 6 GB of 8 GB; the CPU's is not known."""
    rows = [
        power_laws({2: 100}, peak_allocated_bytes=peak, device_memory_bytes=8 * 10**9).assign(study=name)
        for name, peak in (("a", 2 * 10**9), ("b", 6 * 10**9))
    ]
    memory = opened(pd.concat(rows), a={}, b={"title": "B"})["memory"]
    assert (memory["study"], memory["title"]) == ("b", "B")
    assert "6.00 GB of its 8.00 GB, 75 %" in memory["words"]
    assert opened(power_laws({2: 100}), disc_depth={})["memory"] is None


def test_nothing_measured_yet_is_a_first_screen_without_answers(power_laws: PowerLaws) -> None:
    found = opened(power_laws({2: 100}).head(0), disc_depth={})
    assert [card["missing"] for card in found["cards"]] == ["Not measured here"]
    assert (found["hardware"], found["trust"], found["memory"], found["lead"]) == ([], [], None, None)


def test_an_empty_figure_does_not_lead(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    figures = [figure("disc_depth", "times")]
    studies = {"disc_depth": SPEC}
    assert opening(studies, tables_of(rows), figures)["lead"] == figures[0]
    failed = rows.assign(status="timeout", step_time_s=None)
    found = opening(studies, tables_of(failed, cores_worth=compare_cores(failed)), figures)
    assert found["lead"] is None
    assert found["cards"][0]["answers"] == []

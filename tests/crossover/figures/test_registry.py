"""Every kind of figure is found, and drawn into files that the same tables give again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

from crossover.figures.registry import FIGURES, SUFFIXES, draw_run
from crossover.figures.style import spaced_out
from crossover.figures.view import StudyView

ROOT = Path(__file__).parents[3]


def test_studies_ask_for_kinds_that_there_are() -> None:
    asked = {
        kind
        for path in (ROOT / "config" / "studies").glob("*.yaml")
        for kind in yaml.safe_load(path.read_text()).get("figures", ())
    }
    assert asked
    assert asked <= set(FIGURES)
    assert all(kind.caption.endswith(".") for kind in FIGURES.values())


def test_the_same_tables_give_the_same_bytes(
    power_laws: Callable[..., pd.DataFrame], view_of: Callable[..., StudyView], tmp_path: Path
) -> None:
    view = view_of(power_laws({2: 100, 4: 1_000}, trials=2))
    wanted = [("disc_depth", "times"), ("other", "times")]
    studies = {"disc_depth": view.spec, "other": view.spec}
    first, second = (draw_run(view.tables, studies, tmp_path / name, wanted) for name in ("first", "second"))
    assert [path.name for path in first] == ["times.svg", "times.pdf", "times.png"] * 2
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert {path.suffix for path in first} == set(SUFFIXES)
    assert "Nothing of this study was measured." in first[3].read_text()


@pytest.mark.parametrize(
    ("values", "last", "kept"),
    [
        ([1, 10, 100], (), [1, 10, 100]),
        ([1, 1.01, 100], (), [1, 100]),
        ([1, 9, 10, 100], (9,), [1, 10, 100]),
    ],
)
def test_ticks_stand_apart_and_refined_sizes_give_way(
    values: list[float], last: tuple[float, ...], kept: list[float]
) -> None:
    assert spaced_out(values, 0.1, last) == kept

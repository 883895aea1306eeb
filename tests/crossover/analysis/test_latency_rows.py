"""Latencies measured right and wrong, with made-up samples whose means are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.analysis.latency import plot_latency
from crossover.analysis.latency_rows import latency_rows, ratio_words
from crossover.analysis.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def test_trials_are_pooled_and_those_not_ok_left_out(row: Row) -> None:
    rows = [
        row(trial=1, latencies_s=[1.0, 2.0]),
        row(trial=2, latencies_s=[3.0]),
        row(trial=3, latencies_s=[90.0], status="invalid"),
    ]
    right, single = latency_rows(pd.DataFrame(rows), None)
    assert sorted(right.samples_s) == [1, 2, 3]
    assert (right.mean_s, right.deviation_s) == (pytest.approx(2), pytest.approx(1))
    assert (single.low_s, single.high_s, single.kind) == (1, 3, "one sample")


def test_only_what_was_measured_has_a_row(row: Row) -> None:
    rows = latency_rows(pd.DataFrame([row(latencies_s=[1.0, 1.0], latencies_cold_s=[9.0, 1.0])]), None)
    assert [found.name for found in rows] == [
        "right: host clock, synchronised",
        "mistake: no warm-up",
        "mistake: one sample",
    ]
    assert latency_rows(pd.DataFrame([row(latencies_s=None)]), None) == []


def test_published_values_stand_beside_their_cell_only(row: Row) -> None:
    published = pd.DataFrame(
        [
            {"device": "cpu", "batch_size": 100, "latency_s": 0.0744, "hardware": "i7"},
            {"device": "cpu", "batch_size": 8, "latency_s": 0.5094, "hardware": "i7"},
            {"device": "cuda", "batch_size": 100, "latency_s": 0.0156, "hardware": "RTX"},
        ]
    )
    rows = latency_rows(pd.DataFrame([row(latencies_s=[0.05, 0.05])]), published)
    assert [(found.name, found.mean_s) for found in rows if found.kind == "published"] == [("published, i7", 0.0744)]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.009, "the same within 1 %"),
        (1.45, "45 % too high"),
        (0.7, "30 % too low"),
        (2.3, "2.3× too high"),
        (0.1, "10× too low"),
        (12.4, "12× too high"),
    ],
)
def test_how_far_a_mean_is_off(ratio: float, words: str) -> None:
    assert ratio_words(ratio) == words


def test_the_figure_writes_means_and_ratios(row: Row, view_of: Views) -> None:
    samples = {"latencies_s": [0.009, 0.011], "latencies_device_s": [0.009, 0.011]}
    wrong = {"latencies_transfer_s": [0.023, 0.023], "latencies_unsynchronised_s": [0.001, 0.001]}
    figure = plot_latency(view_of([row(device="cuda", **samples, **wrong), row(device="cpu", latencies_s=[0.1, 0.1])]))
    cpu, gpu = figure.axes
    assert (cpu.get_title(loc="left"), gpu.get_title(loc="left")) == ("CPU (Brand C1)", "GPU (Brand G1)")
    written = [text.get_text() for text in gpu.texts]
    assert written[::2] == ["10.0 ± 1.4 ms", "10.0 ± 1.4 ms", "23.0 ± 0.0 ms", "1.00 ± 0.00 ms", "9.00 to 11.0 ms"]
    assert written[1::2] == ["", "", "2.3× too high", "10× too low", "−10 to +10 %"]
    assert "1 trial pooled, 2 passes" in gpu.get_xlabel()
    assert (cpu.get_xscale(), gpu.get_xscale()) == ("linear", "log")


def test_a_device_that_measured_no_latency_says_how_it_ended(row: Row, view_of: Views) -> None:
    rows = [row(status="timeout", step_time_s=None, flags=None)]
    (axes,) = plot_latency(view_of(rows)).axes
    assert [text.get_text() for text in axes.texts] == ["timeout"]

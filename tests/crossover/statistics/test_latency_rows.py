"""Latencies measured right and wrong, with made-up samples whose means are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.figures.latency import plot_latency
from crossover.figures.style import PUBLISHED_COLOUR
from crossover.figures.views import StudyView
from crossover.statistics.latency_rows import LOWERS, LatencyRow, latency_rows, off_words, worst_words
from crossover.statistics.summary import Ratio

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def rows_of(*trials: dict[str, Any], published: pd.DataFrame | None = None) -> list[LatencyRow]:
    """The rows of the first trial's cell."""
    return latency_rows(pd.DataFrame(trials), trials[0], published)


def test_trials_are_pooled_and_those_not_ok_left_out(row: Row) -> None:
    rows = [
        row(trial=1, latencies_s=[1.0, 2.0]),
        row(trial=2, latencies_s=[3.0]),
        row(trial=3, latencies_s=[90.0], status="invalid"),
    ]
    right, single = rows_of(*rows)
    assert sorted(right.samples_s) == [1, 2, 3]
    assert (right.mean_s, right.deviation_s) == (pytest.approx(2), pytest.approx(1))
    assert (single.low_s, single.high_s, single.kind) == (1, 3, "one sample")


def test_only_what_was_measured_has_a_row(row: Row) -> None:
    rows = rows_of(row(latencies_s=[1.0, 1.0], latencies_cold_s=[9.0, 1.0]))
    assert [found.name for found in rows] == [
        "right: host clock, synchronised",
        "mistake: no warm-up",
        "mistake: one sample",
    ]
    assert rows_of(row(latencies_s=None)) == []


def test_published_values_stand_beside_their_cell_only(row: Row) -> None:
    published = pd.DataFrame(
        [
            {"device": "cpu", "batch_size": 100, "latency_s": 0.0744, "hardware": "i7"},
            {"device": "cpu", "batch_size": 8, "latency_s": 0.5094, "hardware": "i7"},
            {"device": "cuda", "batch_size": 100, "latency_s": 0.0156, "hardware": "RTX"},
        ]
    )
    rows = rows_of(row(latencies_s=[0.05, 0.05]), published=published)
    assert [(found.name, found.mean_s) for found in rows if found.kind == "published"] == [("published, i7", 0.0744)]


def test_published_values_of_one_hardware_bear_their_labels(row: Row) -> None:
    published = pd.DataFrame(
        [
            {"label": "one way", "device": "cpu", "latency_s": 1.0, "latency_std_s": 0.25, "hardware": "i7"},
            {"label": "other way", "device": "cpu", "latency_s": 2.0, "hardware": "i7"},
            {"label": "one way", "device": "cpu", "latency_s": 3.0, "hardware": "i9"},
            {"label": "one way", "device": "cuda", "latency_s": 4.0, "hardware": "i9"},
        ]
    )
    rows = rows_of(row(latencies_s=[0.05, 0.05]), published=published)
    assert [(found.name, found.mean_s, found.deviation_s) for found in rows if found.kind == "published"] == [
        ("published, i7, one way", 1, 0.25),
        ("published, i7, other way", 2, None),
        ("published, i9", 3, None),
    ]


def test_a_mistake_is_compared_within_each_trial(row: Row) -> None:
    """Ratios of means 2 and 8 have the geometric mean 4; the trial without the mistake does not count."""
    rows = [
        row(trial=1, latencies_s=[1.0, 3.0], latencies_transfer_s=[1.0, 7.0]),
        row(trial=2, latencies_s=[0.5], latencies_transfer_s=[4.0]),
        row(trial=3, latencies_s=[9.0], latencies_transfer_s=None),
        row(trial=4, latencies_s=[1.0], latencies_transfer_s=[99.0], status="invalid"),
    ]
    right, transfer, single = rows_of(*rows)
    assert (right.ratio, single.ratio) == (None, None)
    assert transfer.ratio is not None
    assert transfer.ratio.ratio == pytest.approx(4)
    # ln 2 and ln 8: mean 2 ln 2, standard error ln 2; Student's t of 0.975 with one degree of freedom is 12.706.
    assert transfer.ratio.high == pytest.approx(2 ** (2 + 12.7062), rel=1e-4)
    assert rows_of(rows[2])[0].ratio is None


def test_cold_steps_are_compared_with_later_ones_of_their_own(row: Row) -> None:
    """A mean of 4 over one of 2 for the later half; that the machine is at another pace by then does not count."""
    cold = rows_of(row(latencies_s=[9.0], latencies_cold_s=[10.0, 2.0, 2.0, 2.0]))[1]
    assert cold.mean_s == 4
    assert cold.ratio is not None
    assert cold.ratio.ratio == pytest.approx(2)


def test_intervals_of_all_mistakes_of_a_machine_hold_together(row: Row) -> None:
    """Three mistakes on two devices: the 97.5 % of one interval become 1 - 0.025 / 6, as of another machine alone."""
    wrong = ("latencies_cold_s", "latencies_unsynchronised_s", "latencies_transfer_s")
    trials = [
        row(machine=machine, device=device, trial=trial, latencies_s=[1.0], **dict.fromkeys(names, [mean] * 2))
        for machine, device, names in (("a", "cuda", wrong), ("a", "xpu", wrong), ("b", "cuda", wrong[2:]))
        for trial, mean in ((1, 2.0), (2, 8.0))
    ]
    # Student's t with one degree of freedom is Cauchy's distribution, whose quantiles are tan(pi (p - 1/2)).
    for machine, comparisons in (("a", 6), ("b", 1)):
        cell = next(trial for trial in trials if trial["machine"] == machine)
        found = next(own for own in latency_rows(pd.DataFrame(trials), cell) if own.mistake == "transfer in the loop")
        assert found.ratio is not None
        quantile = np.tan(np.pi * (0.5 - 0.025 / comparisons))
        assert np.log2(found.ratio.high or 0) == pytest.approx(2 + quantile)
        assert np.log2(found.ratio.low or 0) == pytest.approx(2 - quantile)


def with_ratio(ratio: Ratio, name: str = "mistake: this one") -> LatencyRow:
    return LatencyRow(name, np.ones(1), 1.0, None, "mistake", ratio)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (Ratio(1.45, 1.2, 1.7), "45 % too high"),
        (Ratio(1.005, 1.002, 1.008), "under 1 % too high"),
        (Ratio(2.3, 2.2, 2.4), "2.3× too high"),
        (Ratio(12.4, 12, 13), "12× too high"),
        (Ratio(0.84, 0.6, 1.2), "16 % lower, not told apart"),
        (Ratio(2.3, 1.0, 5.0), "2.3× higher, not told apart"),
        (Ratio(1.0, 0.999, 1.001), "under 1 % lower, not told apart"),
        (Ratio(1.16, None, None), "16 % higher, one trial"),
    ],
)
def test_a_mean_is_off_only_where_the_trials_bear_it_out(ratio: Ratio, words: str) -> None:
    row = with_ratio(ratio)
    assert (off_words(row, ratio), row.is_error) == (words, "too" in words)


@pytest.mark.parametrize(
    ("ratio", "lowering", "raising"),
    [
        (Ratio(0.7, 0.6, 0.99), "30 % too low", "30 % lower, not told apart"),
        (Ratio(0.1, 0.09, 0.2), "10× too low", "10× lower, not told apart"),
        (Ratio(1.23, 1.06, 1.43), "23 % higher, not told apart", "23 % too high"),
    ],
)
def test_a_mistake_moves_a_mean_the_way_it_can(ratio: Ratio, lowering: str, raising: str) -> None:
    """To wait for nobody cannot take longer, and to do more cannot take less time."""
    assert off_words(with_ratio(ratio, LOWERS), ratio) == lowering
    assert off_words(with_ratio(ratio), ratio) == raising


@pytest.mark.parametrize(
    ("name", "ratio", "words"),
    [
        ("this one", Ratio(1.45, 1.2, 1.7), "45 % too high (95 %: 20 % to 70 %)"),
        ("no synchronisation", Ratio(0.7, 0.6, 0.99), "30 % too low (95 %: 1.0 % to 40 %)"),
        ("this one", Ratio(2.0, 1.6, 2.5), "2× too high (95 %: 1.60× to 2.50×)"),
        ("no synchronisation", Ratio(0.1, 0.08, 0.125), "10× too low (95 %: 8.00× to 12.5×)"),
    ],
)
def test_the_worst_mistake_has_its_interval(name: str, ratio: Ratio, words: str) -> None:
    others = [Ratio(1.2, 1.1, 1.3), Ratio(40.0, 0.5, 3200.0), Ratio(0.01, 0.009, 0.02)]
    found = [*map(with_ratio, others), with_ratio(ratio, f"mistake: {name}")]
    assert worst_words(found) == f"“{name}” makes the mean latency {words}"


def test_one_trial_finds_no_mistake(row: Row) -> None:
    """Means of 2 s; 0.5 s without synchronisation."""
    found = rows_of(row(latencies_s=[2.0], latencies_unsynchronised_s=[0.5]))
    assert worst_words(found) == "no mistake could be told from the right way"
    assert worst_words(rows_of(row(latencies_s=[2.0]))) == ""


def test_the_figure_writes_means_and_ratios(row: Row, view_of: Views) -> None:
    samples = {"latencies_s": [0.009, 0.011], "latencies_device_s": [0.009, 0.011]}
    wrong = {"latencies_transfer_s": [0.023, 0.023]}
    scattered = ([0.005, 0.005], [0.018, 0.018])
    trials = [
        row(device="cuda", trial=trial, latencies_unsynchronised_s=own, **samples, **wrong)
        for trial, own in enumerate(scattered, 1)
    ]
    figure = plot_latency(view_of([*trials, row(device="cpu", latencies_s=[0.1, 0.1])]))
    cpu, gpu = figure.axes
    assert (cpu.get_title(loc="left"), gpu.get_title(loc="left")) == ("CPU (Brand C1)", "GPU (Brand G1)")
    written = [text.get_text() for text in gpu.texts]
    assert written[::2] == ["10.0 ± 1.2 ms", "10.0 ± 1.2 ms", "23.0 ± 0.0 ms", "11.5 ± 7.5 ms", "9.00 to 11.0 ms"]
    scatter = "5 % lower,\nnot told apart"
    assert written[1::2] == ["", "", "2.3× too high", scatter, "−10 to +10 %"]
    assert [text.get_color() for text in gpu.texts[5:8:2]] == ["black", PUBLISHED_COLOUR]
    assert "2 trials pooled, 4 passes" in gpu.get_xlabel()
    assert (cpu.get_xscale(), gpu.get_xscale()) == ("linear", "linear")


@pytest.mark.parametrize("largest_s", [0.05, 0.17, 0.3, 0.56, 2.0, 7.0, 90.0])
def test_no_label_of_an_axis_runs_into_the_next(row: Row, view_of: Views, largest_s: float) -> None:
    wide = {"latencies_s": [0.0035, 0.0041], "latencies_cold_s": [largest_s, 0.004]}
    figure = plot_latency(view_of([row(**wide)]))
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    shown = [tick.label1.get_window_extent() for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len(shown) >= 2
    assert all(left.x1 + 3 < right.x0 for left, right in pairwise(shown))


def test_a_long_name_takes_two_lines(row: Row, view_of: Views) -> None:
    published = [
        {"label": label, "device": "cpu", "latency_s": 0.1, "hardware": "NVIDIA RTX 2080"}
        for label in ("on the device", "with transfers")
    ]
    (axes,) = plot_latency(view_of([row(latencies_s=[0.1, 0.1])], published)).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[-2:] == ["published, NVIDIA RTX 2080,\non the device", "published, NVIDIA RTX 2080,\nwith transfers"]


def test_a_device_that_measured_no_latency_says_how_it_ended(row: Row, view_of: Views) -> None:
    rows = [row(status="timeout", step_time_s=None, flags=None)]
    (axes,) = plot_latency(view_of(rows)).axes
    assert [text.get_text() for text in axes.texts] == ["timeout"]

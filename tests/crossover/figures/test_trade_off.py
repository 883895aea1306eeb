from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from crossover.figures.trade_off import front, plot_trade_off
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    points = [(4.0, 1.0), (1.0, 9.0), (2.0, 5.0), (3.0, 5.0), (2.5, 7.0)]
    assert front(points) == [(1, 9), (2, 5), (4, 1)]
    assert front([]) == []


def test_points_are_labelled_with_both_numbers(row: Row, view_of: Views) -> None:
    """4 samples in 1 s and 8 GB; 4 in 2 s and 2 GB; one cell that did not fit."""
    rows = [
        row(device="cuda", batch_size=4, variant=name, step_time_s=time, peak_allocated_bytes=memory)
        for name, time, memory in (("plain", 1.0, 8 * 10**9), ("gradient_checkpointing", 2.0, 2 * 10**9))
    ]
    rows.append(row(device="cuda", batch_size=4, variant="adafactor", status="oom", step_time_s=None, flags=None))
    published = [
        {"device": "cuda", "hardware": "V100", "label": "batch 4", "samples_per_s": 8.0, "peak_allocated_bytes": 15e9}
    ]
    (axes,) = plot_trade_off(view_of(rows, published)).axes
    written = {text.get_text() for text in axes.texts if text.get_text()}
    assert written == {
        "plain: 8.00 GB, 250 ms",
        "gradient checkpointing: 2.00 GB, 500 ms",
        "adafactor: oom",
        "batch 4: 15.0 GB, 125 ms",
    }
    assert axes.get_xlabel() == "memory: peak that tensors needed\ndiamonds: published, V100"
    (dots,) = (line for line in axes.lines if line.get_marker() == "o")
    assert np.asarray(dots.get_xydata()).tolist() == [[8e9, 0.25], [2e9, 0.5]]


def test_the_cpus_memory_is_its_growth(row: Row, view_of: Views) -> None:
    rows = [row(batch_size=10, step_time_s=1.0, base_rss_bytes=10**9, peak_rss_bytes=3 * 10**9)]
    (axes,) = plot_trade_off(view_of(rows)).axes
    assert "fp32: 2.00 GB, 100 ms" in {text.get_text() for text in axes.texts}
    assert "growth of the process" in axes.get_xlabel()

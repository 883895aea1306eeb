"""The host's share of a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from crossover.figures.host_share import NO_SHARE, host_shares, plot_host_share, share_over_trials
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def test_the_interval_is_that_of_the_mean_over_trials() -> None:
    """0.4, 0.5, 0.6: deviation 0.1, t(2) = 4.3027, half-width 4.3027 * 0.1 / sqrt(3) = 0.2484."""
    found = share_over_trials([0.4, 0.5, 0.6])
    assert (found.mean, found.low, found.high, found.trials) == (
        pytest.approx(0.5),
        pytest.approx(0.2516, abs=1e-4),
        pytest.approx(0.7484, abs=1e-4),
        3,
    )


def test_an_interval_stays_within_what_a_share_can_be() -> None:
    found = share_over_trials([0.9, 1.0])
    assert found.high == 1
    assert math.isnan(share_over_trials([0.9]).low)


def test_a_line_over_size_on_the_devices_that_know_it(row: Row, view_of: Views) -> None:
    rows = [row(size=size, device="cuda", host_bound_share=share) for size, share in ((4, 0.25), (2, 0.75))]
    view = view_of([*rows, *(row(size=size) for size in (2, 4))])
    assert host_shares(view)["mean"].tolist() == [0.75, 0.25]
    (axes,) = plot_host_share(view).axes
    (line,) = axes.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([2, 4], [0.75, 0.25])
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["25 %"]
    assert (axes.get_yscale(), axes.get_ylim()) == ("linear", (0, 1))


def test_where_none_was_profiled_the_figure_says_so(row: Row, view_of: Views) -> None:
    figure = plot_host_share(view_of([row(size=2), row(size=4)]))
    assert [text.get_text() for text in figure.texts] == ["A title", NO_SHARE]

"""A stage of refinement is cut to the time left; trials take 2 s on the CPU and 3 s on the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from crossover.compare.budget import Fitted, fit_stage
from crossover.compare.refinement import Request
from crossover.config.studies import Cell

SECONDS = {"cpu": 2.0, "cuda": 3.0}


def cell(study: str, size: int, device: str) -> Cell:
    return Cell(study, "linear_stack", "resident", 1, "fp32", "eager", size, device)


def request(study: str, width: float | None, numbers: Iterable[int], sizes: Iterable[int] = (10, 30)) -> Request:
    """A round takes 10 s if there are two sizes; the width asked for is ±10 %."""
    trials = {cell(study, size, device): {*numbers} for size in sizes for device in SECONDS}
    return Request(trials, {"study": study, "half_width": width}, target_width=0.1)


def fit(left_s: float, *requests: Request, measured: int = 4, new: bool = False) -> Fitted:
    """The stage after four trials of all cells, or none if they are new."""
    trials: Mapping[Cell, set[int]] = {
        cell: set(range(1, measured + 1)) for request in requests for cell in request.trials if not new
    }
    return fit_stage(requests, trials, lambda cell: SECONDS[cell.device], left_s)


def counts(fitted: Fitted) -> dict[str, int]:
    """The trials added to each cell, by study; they are the same for all cells of a study."""
    return {cell.study: len(numbers) for cell, numbers in fitted.trials.items()}


def test_a_stage_takes_at_most_half_of_the_time_left() -> None:
    fitted = fit(65, request("wide", 0.4, range(4, 17)))
    assert set(map(tuple, fitted.trials.values())) == {(5, 6, 7)}
    assert (len(fitted.trials), fitted.seconds, fitted.is_cut) == (4, 30, True)
    assert fitted.expected == {"wide": (0.4, pytest.approx(0.4 * (4 / 7) ** 0.5))}


def test_the_last_stage_takes_all_that_is_left() -> None:
    assert counts(fit(39, request("wide", 0.4, range(4, 17)))) == {"wide": 3}
    assert counts(fit(9, request("wide", 0.4, range(4, 17)))) == {}


def test_a_round_that_takes_more_than_half_of_the_time_left_is_added_alone() -> None:
    slow = request("wide", 0.4, range(4, 17), sizes=range(10, 22, 2))  # 6 x 5 s
    assert counts(fit(59, slow)) == {"wide": 1}
    assert counts(fit(29, slow)) == {}


def test_no_more_trials_are_added_than_the_target_needs() -> None:
    """4 x (0.15 / 0.1)^2 is 9."""
    fitted = fit(10_000, request("wide", 0.15, range(4, 65)))
    assert counts(fitted) == {"wide": 5}
    assert not fitted.is_cut


def test_the_widest_interval_comes_first() -> None:
    """After one round, ±24 % is expected to be ±21 %, narrower than ±22 %, which then gets the second round."""
    requests = request("wide", 0.24, range(5, 17)), request("wider", 0.22, range(5, 17))
    assert counts(fit(39, requests[0], requests[1])) == {"wide": 2, "wider": 1}
    assert counts(fit(44, requests[0], requests[1])) == {"wide": 1, "wider": 1}


def test_a_crossover_without_an_interval_counts_as_four_times_too_wide() -> None:
    assert counts(fit(10, request("known", 0.39, range(5, 17)), request("unknown", None, range(5, 17)))) == {
        "unknown": 1
    }
    assert counts(fit(10, request("known", 0.41, range(5, 17)), request("unknown", None, range(5, 17)))) == {"known": 1}


def test_a_new_size_gets_all_of_its_first_trials_or_none() -> None:
    size = request("wide", 0.4, (1, 2, 3), sizes=(17,))
    assert counts(fit(15, size, new=True)) == {"wide": 3}
    assert (counts(fit(14, size, new=True)), fit(14, size, new=True).is_cut) == ({}, True)


def test_a_trial_for_two_crossovers_is_paid_once() -> None:
    """Both need the same round, which takes 10 s, as long as all that is left."""
    fitted = fit(10, request("wide", 0.4, (5,)), request("wide", 0.3, (5,)))
    assert (fitted.seconds, fitted.is_cut) == (10, False)


def test_what_fits_better_is_added_if_the_widest_does_not_fit() -> None:
    assert counts(fit(5, request("wide", 0.4, (5,)), request("narrow", 0.2, (5,), sizes=(10,)))) == {"narrow": 1}


def test_a_stage_says_what_it_takes_and_what_to_expect() -> None:
    fitted = fit(66, request("wide", 0.4, range(4, 17)))
    assert fitted.note(66) == "They take about 0.5 of the 1.1 min left; expected: ±30 % for wide (now ±40 %)."
    unknown = fit(66, request("unknown", None, range(4, 17)))
    assert unknown.note(66) == "They take about 0.5 of the 1.1 min left."
    assert fit(9, request("wide", 0.4, (5,))).note(9) == "No time is left for more trials."
    assert fit(99, request("narrow", 0.1, (5,))).note(99) is None

"""What an error means, given what noise does: by hand at the limits."""

from __future__ import annotations

import math

import pytest

from crossover.config.words import PRECISIONS
from crossover.measurement.step.judgement import ROUNDING, Answer, Errors, judge


class Noise:
    """Says how far noise of a share moves the answer, and what was asked."""

    def __init__(self, result: float = 0.0, gradient: float = 0.0, *, from_share: float = 0.0) -> None:
        self.moved = {"result": result, "gradient": gradient}
        self.from_share = from_share
        self.asked: list[tuple[float, int]] = []

    def __call__(self, share: float, seed: int) -> Errors:
        self.asked.append((share, seed))
        return self.moved if share >= self.from_share else {"result": 0.0, "gradient": 0.0}


def verdict(errors: Errors, moved: Noise, precision: str = "fp32", again: float = 0.0) -> str:
    answer = judge(errors, moved, lambda: dict.fromkeys(errors, again), precision)
    assert answer.errors == errors
    assert answer.wrong is None or answer.unchecked is None
    return "wrong" if answer.wrong else "unchecked" if answer.unchecked else "right"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_three_roundings_are_right_without_any_noise(precision: str) -> None:
    moved = Noise()
    limit = 3 * ROUNDING[precision]
    assert verdict({"result": limit, "gradient": limit}, moved, precision) == "right"
    assert not moved.asked
    assert verdict({"result": limit * 1.01, "gradient": 0.0}, moved, precision) != "right"


def test_what_noise_of_rounding_explains_is_right() -> None:
    """Thrice what the noise does, by the first draw; noise 2^-20 is 16 times the error of rounding to fp32."""
    moved = Noise(gradient=0.1)
    assert verdict({"result": 0.0, "gradient": 0.3}, moved) == "right"
    assert moved.asked == [(2**-20, 0)]


def test_what_is_off_by_more_than_half_is_never_called_right() -> None:
    assert verdict({"result": 0.0, "gradient": 0.5}, Noise(gradient=1.0)) == "right"
    assert verdict({"result": 0.0, "gradient": 0.51}, Noise(gradient=1.0)) == "unchecked"


@pytest.mark.parametrize(("precision", "greater"), [("fp32", 2**-17), ("bf16", 2**-5)])
def test_what_only_greater_noise_explains_is_undecided_and_what_none_explains_is_wrong(
    precision: str, greater: float
) -> None:
    errors = {"result": 0.0, "gradient": 0.375}
    moved = Noise(gradient=0.125, from_share=greater)
    assert verdict(errors, moved, precision) == "unchecked"
    assert moved.asked == [*((ROUNDING[precision], seed) for seed in range(2)), (greater, 0)]
    assert verdict(errors, Noise(gradient=0.12), precision) == "wrong"


def test_the_largest_of_several_draws_counts() -> None:
    moves = iter([0.0, 0.2])
    answer = judge({"result": 0.5}, lambda _share, _seed: {"result": next(moves)}, dict, "fp32")
    assert answer == Answer({"result": 0.5})


def test_noise_that_makes_the_exact_answer_no_number_explains_everything() -> None:
    assert verdict({"result": 1e9, "gradient": 0.0}, Noise(result=math.nan)) == "unchecked"


def test_two_runs_that_differ_are_undecided() -> None:
    assert verdict({"result": 1.0, "gradient": 0.0}, Noise(), again=0.1) == "unchecked"
    assert verdict({"result": 1.0, "gradient": 0.0}, Noise(), again=1e-6) == "wrong"


@pytest.mark.parametrize(
    ("precision", "advice"),
    [("fp32", "look for what computes otherwise"), ("bf16", "leave this precision out if fp32 is right")],
)
def test_the_advice_is_about_the_precision_where_that_may_be_why(precision: str, advice: str) -> None:
    off = judge({"result": 0.7, "gradient": 0.0}, Noise(), lambda: {"result": 0.0}, precision).wrong
    assert str(off).startswith("the step's result is off by 0.7 of its norm, where rounding explains ")
    assert str(off).endswith(advice)
    lost = judge({"result": 0.0, "gradient": math.nan}, Noise(), dict, precision).wrong
    assert lost == f"the step's gradient is not finite, in double precision it is; {advice}"

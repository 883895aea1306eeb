"""Whether rounding explains an error: right, surely wrong, or undecided.

How large an error is right depends on the model: in fp32 the gradient of a perceptron is off by 3e-7, that of a fresh
ResNet by up to 6e-2. So where an error is larger than rounding is in any model, the exact computation runs again with
noise after each operation, and the error is held against what the noise does to the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

ROUNDING = {
    "fp64": 2.0**-49,
    "fp32": 2.0**-20,
    "tf32": 2.0**-10,
    "amp-bf16": 2.0**-7,
    "amp-fp16": 2.0**-10,
    "bf16": 2.0**-7,
    "fp16": 2.0**-10,
}
"""Share of the noise that stands for rounding: 16 times the error of rounding one number in fp64 and fp32, whose sums
round many times, 2 times in the others, which sum up in fp32."""

GREATER = {"fp64": 8.0, "fp32": 8.0}
"""How much more noise leaves no doubt, by precision; 4 times in the others. Where rounding carries a value across zero
before a ReLU, its gradient goes another way: one such value of many is rare, and more noise shows what it does."""

FACTOR = 3.0
"""Times what the noise does, an error is explained by it."""

DRAWS = 2
"""Of each noise, as long as the error is not explained."""

MOST = 0.5
"""Of its norm: an answer that is off by more is not called right, whatever noise does."""

Errors = dict[str, float]
"""Relative errors of `result` and `gradient` in the Euclidean norm; without what was not compared."""


@dataclass(frozen=True)
class Answer:
    """What the check says of a step's answer: right, unless one of the reasons is given."""

    errors: Errors = field(default_factory=dict)
    wrong: str | None = None
    """Why it is surely wrong."""
    unchecked: str | None = None
    """Why right and wrong cannot be told apart."""


def judge(errors: Errors, moved: Callable[[float, int], Errors], again: Callable[[], Errors], precision: str) -> Answer:
    """Right where as much noise as rounding explains the errors, wrong where even a greater one does not.

    `moved` says how far noise of a share, drawn from a seed, moves the exact answer; `again` how far a second run of
    the step is from the first.
    """
    advice = "look for what computes otherwise" if precision in GREATER else "leave this precision out if fp32 is right"
    for name, error in errors.items():
        if math.isnan(error):
            return Answer(errors, wrong=f"the step's {name} is not finite, in double precision it is; {advice}")
    share = ROUNDING[precision]
    limits = _limits(errors, moved, share)
    doubtful = [name for name, error in errors.items() if error > min(MOST, limits[name])]
    if not doubtful:
        return Answer(errors)
    if _beyond(errors, limits):
        greater = _limits(errors, moved, share * GREATER.get(precision, 4.0))
        limits = {name: max(limit, greater[name]) for name, limit in limits.items()}
    name = next(iter(_beyond(errors, limits)), doubtful[0])
    seen = f"the step's {name} is off by {errors[name]:.2g} of its norm, where rounding explains {limits[name]:.2g}"
    if errors[name] <= limits[name]:
        return Answer(errors, unchecked=f"{seen}: in {precision}, right and wrong cannot be told apart here")
    if (spread := again()[name]) > limits[name]:
        return Answer(errors, unchecked=f"{seen}, but two runs of the step differ by {spread:.2g}")
    return Answer(errors, wrong=f"{seen}; {advice}")


def _limits(errors: Errors, moved: Callable[[float, int], Errors], share: float) -> Errors:
    """The largest errors that noise of a share explains: drawn until it explains those found, or DRAWS times."""
    limits = dict.fromkeys(errors, FACTOR * share)
    for seed in range(DRAWS):
        if not _beyond(errors, limits):
            break
        for name, error in moved(share, seed).items():
            limits[name] = math.inf if math.isnan(error) else max(limits[name], FACTOR * error)
    return limits


def _beyond(errors: Errors, limits: Errors) -> list[str]:
    return [name for name, error in errors.items() if error > limits[name]]

"""The simplest rule of size and batch size that tells the faster side, and how often and how dearly it errs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossover.compare.intervals import Floats
from crossover.compare.plane import Ints

EXPONENTS = (1.0, 0.5, 2.0, 1 / 3, 2 / 3, 1.5, 3.0, 0.25, 0.75, 4 / 3, 4.0)
"""Of the batch size in a product or, as their negatives, in a quotient, the simplest first; that of the size is 1."""

LEAST_OF_BATCH = 3
"""Least number of sizes of a batch size in a table, among them the smallest and the largest of the plane.

Those of a batch size that refinement added may lie in a narrow range, beyond which "always" and "never" are guesses.
"""

MOST_HELD_OUT_WRONG = 1 / 3
"""Held-out wrong points of a rule, as a share of those of the better single side. In simulations of 644 planes, a rule
with less was worse than that side, over the whole plane, in 2 of 310 cases; with a half, in 9 of 355."""


@dataclass(frozen=True)
class Rule:
    """The contender where size^a * batch^b >= least or, with `by_batch`, from a size of its own for each batch size.

    A least value of 0 means always, None never.
    """

    size_exponent: float
    batch_exponent: float
    least: float | None
    """None with `by_batch`."""
    by_batch: Sequence[tuple[int, float | None]] | None = None
    """Each batch size with its least size."""

    def chooses(self, points: Ints) -> npt.NDArray[np.bool_]:
        """True at the points, of shape (points, 2), at which the contender is chosen.

        A batch size that `by_batch` lacks has the least size of the nearest one, on logarithms.
        """
        if self.by_batch is None:
            return np.asarray(_score(points, self.size_exponent, self.batch_exponent) >= _log(self.least))
        batches, sizes = zip(*self.by_batch, strict=True)
        nearest = np.abs(np.log(points[:, 1:]) - np.log(batches)).argmin(axis=1)
        return np.asarray(np.log(points[:, 0]) >= np.array([_log(size) for size in sizes])[nearest])


def _log(least: float | None) -> float:
    return math.inf if least is None else math.log(least) if least else -math.inf


def _exp(cut: float) -> float | None:
    return None if cut == math.inf else math.exp(cut)


@dataclass(frozen=True)
class Fit:
    rule: Rule
    wrong: int
    """Number of points that have a significant sign and at which the rule chooses the slower side."""
    held_out_wrong: int
    """Likewise, each point by the rule fitted to the others."""
    points: int
    """Number of points with a significant sign."""
    measured: int
    """Number of all points."""
    worst: float
    """Largest ratio of times, slower side over faster one, at the wrong points; 1 if there are none."""
    held_out_worst: float
    """Likewise, for the points that are wrong when held out."""


def simplest_rule(points: Ints, mean: Floats, signs: Floats) -> Fit | None:
    """The simplest rule with the fewest held-out points wrong; None if one side everywhere is about as good.

    It is also None unless each side is faster at two points or more.

    The arguments are as in `Plane`. A rule is fitted to all points, of which each weighs by |mean|, what a wrong choice
    costs there; it is judged at those with a significant sign.
    """
    if min((signs > 0).sum(), (signs < 0).sum()) < 2:
        return None
    judged = np.flatnonzero(signs)
    wrong_of = [
        (rule, [number for number in judged.tolist() if _is_held_out_wrong(rule, points, mean, number)])
        for rule in _kinds(points, mean)
    ]
    rule, held_out = min(wrong_of, key=lambda one: len(one[1]))
    if len(held_out) > MOST_HELD_OUT_WRONG * min((signs > 0).sum(), (signs < 0).sum()):
        return None
    wrong = judged[rule.chooses(points[judged]) != (mean[judged] > 0)]
    worst, held_out_worst = (float(np.exp(np.abs(mean[numbers]).max(initial=0.0))) for numbers in (wrong, held_out))
    return Fit(rule, len(wrong), len(held_out), len(judged), len(points), worst, held_out_worst)


def _kinds(points: Ints, mean: Floats) -> Iterator[Rule]:
    """The best rule of each kind, the simplest first: size or batch size alone, a product, a quotient, a table."""
    both = ((1.0, sign * exponent) for sign in (1, -1) for exponent in EXPONENTS)
    for exponents in ((1.0, 0.0), (0.0, 1.0), *both):
        yield _threshold(points, mean, exponents)
    ends = {int(points[:, 0].min()), int(points[:, 0].max())}
    sizes_of = {batch: {*points[points[:, 1] == batch, 0].tolist()} for batch in np.unique(points[:, 1]).tolist()}
    of_table = [batch for batch, sizes in sizes_of.items() if len(sizes) >= LEAST_OF_BATCH and ends <= sizes]
    if len(of_table) > 1:
        yield _table(points, mean, of_table)


def _is_held_out_wrong(rule: Rule, points: Ints, mean: Floats, number: int) -> bool:
    others = np.delete(points, number, axis=0), np.delete(mean, number)
    if rule.by_batch is None:
        refitted = _threshold(*others, (rule.size_exponent, rule.batch_exponent))
    else:
        refitted = _table(*others, [batch for batch, _ in rule.by_batch])
    return bool(refitted.chooses(points[number : number + 1])[0] != (mean[number] > 0))


def _score(points: Ints, size_exponent: float, batch_exponent: float) -> Floats:
    return np.asarray(np.log(points) @ np.array([size_exponent, batch_exponent]))


def _threshold(points: Ints, mean: Floats, exponents: tuple[float, float]) -> Rule:
    """The rule whose wrong choices cost least; of equally good ones, that with the widest gap around it."""
    return Rule(*exponents, _exp(_cut(_score(points, *exponents), mean)))


def _cut(scores: Floats, mean: Floats) -> float:
    """The value from which on the contender is chosen: in the middle of a gap between scores, or infinite."""
    values, numbers = np.unique(scores.round(9), return_inverse=True)  # equal products differ in their last digits
    cuts = np.concatenate([[-math.inf], (values[:-1] + values[1:]) / 2, [math.inf]])
    costs = np.concatenate([[0.0], np.cumsum(np.bincount(numbers, mean))])  # more than that of the first cut
    gaps = np.concatenate([[0.0], np.diff(values), [0.0]])
    return float(cuts[np.lexsort((-gaps, costs.round(12)))[0]])


def _table(points: Ints, mean: Floats, batches: Sequence[int]) -> Rule:
    rows = [points[:, 1] == batch for batch in batches]
    cuts = [_exp(_cut(np.log(points[row, 0]), mean[row])) for row in rows]
    return Rule(1.0, 0.0, None, [*zip(batches, cuts, strict=True)])

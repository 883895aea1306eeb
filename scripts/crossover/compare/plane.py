"""The advantage over size and batch size: the regions in which a side is certified faster, and what to measure next.

The plane is divided into triangles between neighbouring points (Delaunay, on logarithms). A triangle belongs to a side
if that side is significantly faster at all three corners, simultaneously over all points. That the side is the same
within a triangle is an assumption, which is tested: each stage measures points within the largest triangles, and
nothing is certified if a share of these differs from what the first grid certifies there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from crossover.compare.crossover_curve import advantages_of_table
from crossover.compare.intervals import ONE_TRIAL_LEAD, Floats, sure_signs
from crossover.compare.refinement import Request
from crossover.config.studies import Cell, Refinement
from crossover.config.study import LEAST_OF_MAP
from crossover.config.words import BASELINE, is_cpu, series_axes
from crossover.config.workloads import workload_traits
from crossover.tables.frames import first_row

POINT = ["size", "batch_size"]
"""The two variables of a plane."""
SERIES_OF_PLANE = [axis for axis in series_axes("size") if axis not in POINT]

Ints = npt.NDArray[np.int64]

STRETCH = np.array([[1.0, 0.01], [0.01, 1.0]])
"""Divides a square of four points along the line on which the amount of work stays the same, as the boundary runs."""

LEAST_AREA = 1e-9
"""Of a triangle, as a share of the plane; points on a line make flatter ones."""

MARGIN = 2.0
"""The least advantage at a point to be added, as a multiple of the error; chosen by simulation."""
SHORTEST = 0.2
"""The least distance of a point to be added from the significant end of its edge, as a share of the edge."""

TESTS = 2
"""Number of points that a stage adds within regions."""

DOUBT = 0.2
"""Share of `contradictions` above which nothing is certified; refinement goes round a single one."""

NEW_SHARE = 1 / 3
"""Number of points that a stage may add, as a share of those measured."""


@dataclass(frozen=True)
class Plane:
    series: Mapping[str, Any]
    """The axes that all cells share."""
    contender: str
    points: Ints
    """Sizes and batch sizes that were tried, of shape (points, 2)."""
    mean: Floats
    """ln(time of the CPU / time of the contender) at each point; NaN where a side has no time, as if out of memory."""
    signs: Floats
    """Of `mean`, or 0 where it is not significant, simultaneously over all points."""
    certainty: Floats
    """|mean| over its error; at least 1 where the sign is significant."""
    trials: Ints
    """Trials at each point of the side with fewer."""
    has_intervals: bool
    """False for single trials, whose signs are those of clear leads."""

    @property
    def timed(self) -> npt.NDArray[np.bool_]:
        """True at the points with a time on both sides."""
        return ~np.isnan(self.mean)

    @cached_property
    def triangles(self) -> Ints:
        """Numbers of the corners, of shape (triangles, 3); none if all points lie on a line."""
        from scipy import spatial  # slow to import, and only needed for studies over two variables

        if any(len(values) < 2 for values in map(set, self.points.T)):
            return np.empty((0, 3), np.int64)
        corners = np.asarray(spatial.Delaunay(self._places @ STRETCH).simplices, np.int64)
        return corners[self._areas(corners) > LEAST_AREA]

    @cached_property
    def _places(self) -> Floats:
        """The points on logarithmic axes, both scaled to lengths of 1."""
        logs = np.log(self.points)
        return np.asarray((logs - logs.min(axis=0)) / np.ptp(logs, axis=0))

    @cached_property
    def areas(self) -> Floats:
        return self._areas(self.triangles)

    def _areas(self, corners: Ints) -> Floats:
        if not len(corners):
            return np.empty(0)
        a, b, c = np.moveaxis(self._places[corners], 1, 0)
        (ux, uy), (vx, vy) = (b - a).T, (c - a).T
        return np.asarray(np.abs(ux * vy - uy * vx) / 2)

    @cached_property
    def sides(self) -> Floats:
        """Of each triangle: 1 if the contender is certified to be faster, -1 if the CPU is, else 0."""
        differ, tested = self.contradictions
        return self._signs_of_corners if differ <= max(1, DOUBT * tested) else np.zeros(len(self.triangles))

    @cached_property
    def _signs_of_corners(self) -> Floats:
        """Of each triangle: the sign of its corners, or 0 if they differ."""
        return _common(self.signs[self.triangles])

    @cached_property
    def contradictions(self) -> tuple[int, int]:
        """Numbers of points whose side differs from what the first grid certifies there, and of all points with both.

        The first grid has the sizes and batch sizes that most points share.
        """
        from scipy import spatial

        shared = [np.isin(values, _frequent(values)) for values in self.points.T]
        in_grid = shared[0] & shared[1]
        others = np.flatnonzero(~in_grid & (self.signs != 0))
        if not len(others) or in_grid.sum() < LEAST_OF_MAP**2:
            return 0, 0
        places = self._places @ STRETCH
        corners = spatial.Delaunay(places[in_grid]).simplices
        of_corners = _common(self.signs[in_grid][corners])
        triangles = places[in_grid][corners]
        around = np.array([next(iter(of_corners[_contain(triangles, place)]), 0.0) for place in places[others]])
        return int((around == -self.signs[others]).sum()), int((around != 0).sum())

    def share(self, side: int) -> float:
        """The share of the area, on logarithmic axes, that is certified for a side; NaN without an area."""
        total = self.areas.sum()
        return float(self.areas[self.sides == side].sum() / total) if total else math.nan

    def between(self, granularity: int = 1, sizes: Collection[int] | None = None) -> list[tuple[int, int]]:
        """The points to add, on edges between a significant sign and another one: where it is still just significant.

        There, the advantage, interpolated on the edge, is `MARGIN` times the error of a typical point. Nearer to the
        other end, it would be undecided, and further away, less would be certified. Those come first whose triangles
        have the largest area that is not certified yet. Sizes are multiples of `granularity`, or of `sizes`, if the
        workload can build only these.
        """
        gains: dict[tuple[int, int], float] = defaultdict(float)
        measured = {*map(tuple, self.points.tolist())}
        is_open = self._signs_of_corners == 0
        for corners, area in zip(self.triangles[is_open].tolist(), self.areas[is_open], strict=True):
            for one, other in permutations(corners, 2):
                if self.signs[one] and self.signs[one] != self.signs[other] and self.timed[other]:
                    fall = self.signs[one] * (self.mean[one] - self.mean[other])
                    share = (abs(self.mean[one]) - self._margin) / fall if fall > 0 else 1.0
                    if SHORTEST < share < 1:
                        first, second = self.points[[one, other]].tolist()
                        point = [low ** (1 - share) * high**share for low, high in zip(first, second, strict=True)]
                        gains[_nearest(point, granularity, sizes)] += area
        ranked = sorted(gains.keys() - measured, key=lambda point: (-gains[point], point))
        return ranked[: math.ceil(len(measured) * NEW_SHARE)]

    def within(self, granularity: int = 1, sizes: Collection[int] | None = None) -> list[tuple[int, int]]:
        """The points to add as a test: one at random in each of the largest triangles whose corners favour one side."""
        owned = np.flatnonzero(_common(np.sign(self.mean)[self.triangles]))
        largest = owned[np.argsort(-self.areas[owned], kind="stable")][:TESTS]
        seed = np.frombuffer(self.mean.tobytes(), np.uint32)
        weights = np.random.default_rng(seed).dirichlet(np.ones(3), len(largest))
        places = np.exp(np.einsum("tc,tcv->tv", weights, np.log(self.points[self.triangles[largest]])))
        measured = {*map(tuple, self.points.tolist())}
        return sorted({_nearest(place, granularity, sizes) for place in places.tolist()} - measured)

    @cached_property
    def _margin(self) -> float:
        timed = self.timed & (self.certainty > 0)
        return MARGIN * float(np.median(np.abs(self.mean[timed]) / self.certainty[timed])) if timed.any() else math.inf

    def undecided(self, trials: int) -> list[tuple[int, int]]:
        """The points without a significant sign whose sign would be significant with this number of trials."""
        growth = np.sqrt(trials / self.trials)
        reached = (self.signs == 0) & (self.certainty * growth >= 1) & (growth > 1)
        return [(size, batch_size) for size, batch_size in self.points[reached].tolist()]


def planes_of(trials: pd.DataFrame, together: int = 1) -> Iterator[Plane]:
    """The planes of a study's trials: one for each series and accelerator that was measured beside its host's CPU.

    `trials` has the columns of `with_costs`. `together` is as for `Advantages`.
    """
    for _, rows in trials.groupby(SERIES_OF_PLANE, sort=False):
        for contender in rows["device"].unique():
            sides = rows[rows["device"].isin([BASELINE, contender])]
            if not is_cpu(contender) and sides.loc[sides["time"].notna(), "device"].nunique() == 2:
                yield _plane(first_row(sides[SERIES_OF_PLANE]), sides.assign(side=sides["device"]), contender, together)


def _plane(series: Mapping[str, Any], trials: pd.DataFrame, contender: str, together: int) -> Plane:
    numbered = trials.assign(point=trials.groupby(POINT).ngroup() + 1)
    advantages = replace(advantages_of_table(numbered, BASELINE, contender, x="point", cost="time"), together=together)
    numbers = advantages.sizes.astype(np.int64).tolist()
    counts = numbered[numbered["time"].notna()].groupby(["point", "side"])["trial"].nunique().groupby("point").min()
    leads = np.full_like(advantages.mean, math.log(ONE_TRIAL_LEAD))
    errors = advantages.stepwise_errors() if advantages.has_intervals else leads
    columns = {
        "mean": advantages.mean,
        "signs": sure_signs(advantages.mean, errors),
        "certainty": np.abs(advantages.mean) / errors,
        "trials": counts[numbers].to_numpy(),
    }
    points = numbered.groupby("point")[POINT].first()
    known = pd.DataFrame(columns, index=numbers).reindex(points.index)
    return Plane(
        series,
        contender,
        points.to_numpy(np.int64),
        known["mean"].to_numpy(float),
        known["signs"].fillna(0).to_numpy(float),
        known["certainty"].fillna(0).to_numpy(float),
        known["trials"].fillna(1).to_numpy(np.int64),
        advantages.has_intervals,
    )


def _contain(triangles: Floats, place: Floats) -> npt.NDArray[np.bool_]:
    """Whether each of the triangles, of shape (triangles, 3, 2), contains a place, also on its edges."""
    edges, to_place = np.roll(triangles, -1, axis=1) - triangles, place - triangles
    turns = edges[..., 0] * to_place[..., 1] - edges[..., 1] * to_place[..., 0]
    return np.asarray((turns >= -LEAST_AREA).all(axis=1) | (turns <= LEAST_AREA).all(axis=1))


def _frequent(values: Ints) -> Ints:
    """The values that occur as often as those of a grid of three."""
    found, counts = np.unique(values, return_counts=True)
    return np.asarray(found[counts >= LEAST_OF_MAP])


def _common(signs: Floats) -> Floats:
    """The sign that each row has throughout, or 0."""
    return np.where((signs == signs[:, :1]).all(axis=1), signs[:, 0], 0.0)


def _nearest(point: Sequence[float], granularity: int, sizes: Collection[int] | None) -> tuple[int, int]:
    """The nearest point, on logarithms, whose size a workload can build."""
    size, batch_size = point
    if sizes is not None:
        return min(sizes, key=lambda offered: abs(math.log(offered / size))), round(batch_size)
    return max(1, round(size / granularity)) * granularity, round(batch_size)


def plan_planes(timed: pd.DataFrame, stage: int, refinement: Refinement, trials: int) -> Iterator[Request]:
    """The trials that a stage (from 1) adds in a study's planes: at new points, and at points whose side is undecided.

    `timed` has the columns of `with_costs`, and `trials` is the number of trials of the run without `extra_trials`.
    """
    first = refinement.first(trials)
    targets = [first] * refinement.bisections + [*refinement.trials_at_crossover(trials)]
    if stage > len(targets):
        return
    for plane in planes_of(timed):
        traits = workload_traits(str(plane.series["workload"]))
        new = [*plane.between(traits.granularity, traits.sizes), *plane.within(traits.granularity, traits.sizes)]
        numbers = dict.fromkeys(new, first) | dict.fromkeys(plane.undecided(targets[stage - 1]), targets[stage - 1])
        why = {
            **plane.series,
            "pair": "plane",
            "device": plane.contender,
            **{f"{side}_share": plane.share(sign) for side, sign in (("contender", 1), ("baseline", -1))},
        }
        for (size, batch_size), most in numbers.items():
            point = {"size": size, "batch_size": batch_size}
            cells = [Cell(**{**plane.series, **point, "device": side}) for side in (BASELINE, plane.contender)]
            decision = "add_point" if (size, batch_size) in new else "add_trials"
            yield Request({cell: {*range(1, most + 1)} for cell in cells}, why | point | {"decision": decision})

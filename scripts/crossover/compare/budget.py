"""Fit a stage of refinement into the time that is left, with the widest intervals first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from crossover.compare.refinement import Request
from crossover.config.studies import Cell

STAGE_SHARE = 0.5
"""Share of the time left that a stage may take, so that later ones learn from it."""
SHORTEST_STAGE_S = 20.0
"""If a stage would have less than this, it may take all that is left, since planning one takes some seconds."""
UNKNOWN_NEED = 4.0
"""The need of a crossover without an interval, or of an inconclusive claim, in multiples of the width asked for."""


@dataclass(frozen=True)
class Fitted:
    """What fits into a stage."""

    trials: Mapping[Cell, list[int]]
    seconds: float
    is_cut: bool
    """Whether something was left out for lack of time."""
    expected: Mapping[str, tuple[float, float]]
    """Half widths now and then, as shares, by study: of the widest interval that gets trials."""

    def note(self, left_s: float) -> str | None:
        """A sentence for the terminal; None if nothing is to be said."""
        if not self.trials:
            return "No time is left for more trials." if self.is_cut else None
        widths = ", ".join(
            f"±{100 * then:.2g} % for {study} (now ±{100 * now:.2g} %)" for study, (now, then) in self.expected.items()
        )
        takes = f"They take about {self.seconds / 60:.1f} of the {left_s / 60:.1f} min left"
        return f"{takes}; expected: {widths}." if widths else f"{takes}."


class _Share:
    """What a request gets of a stage: `given` of its `rounds`."""

    def __init__(self, request: Request, measured: Mapping[Cell, Collection[int]]) -> None:
        missing = {cell: sorted(numbers.difference(measured.get(cell, ()))) for cell, numbers in request.trials.items()}
        self.trials = min((len(measured.get(cell, ())) for cell in missing), default=0)
        """Trials so far of the cell with the fewest; 0 if the request adds a size."""
        # A new size gets all of its first trials in one round; otherwise a round has one more trial of each cell.
        most = max(map(len, missing.values()), default=0)
        step = 1 if self.trials else most or 1
        self.rounds: Sequence[Mapping[Cell, Set[int]]] = [
            {cell: {*numbers[at : at + step]} for cell, numbers in missing.items()} for at in range(0, most, step)
        ]
        self.given = 0
        self.study, self.width = str(request.why["study"]), request.why.get("half_width")
        self.need_now = self.width / request.target_width if self.width and request.target_width else UNKNOWN_NEED

    @property
    def narrowed(self) -> float:
        """Predicted width over the present one, by the square root law; 1 if it is unknown."""
        return math.sqrt(self.trials / (self.trials + self.given)) if self.trials else 1.0

    @property
    def need(self) -> float:
        """Predicted half width in multiples of what is asked; 0 if nothing more can be added."""
        return self.need_now * self.narrowed if self.given < len(self.rounds) else 0.0


def fit_stage(
    requests: Iterable[Request],
    measured: Mapping[Cell, Collection[int]],
    cost_s: Callable[[Cell], float],
    left_s: float,
) -> Fitted:
    """Choose the trials of a stage, round by round, each for the crossover that is predicted to be widest by then.

    They take at most `STAGE_SHARE` of the time left, or one round if that takes longer. A crossover gets no more trials
    once its interval is predicted to be as narrow as asked. `measured` has the numbers of the trials so far, `cost_s`
    returns the seconds of one more trial of a cell.
    """
    allowed_s = left_s if left_s * STAGE_SHARE < SHORTEST_STAGE_S else left_s * STAGE_SHARE
    shares = [_Share(request, measured) for request in requests]
    waiting, added = list(shares), defaultdict[Cell, set[int]](set)
    seconds, is_cut = 0.0, False
    while waiting and (share := max(waiting, key=lambda share: share.need)).need > 1:
        new = {cell: numbers - added[cell] for cell, numbers in share.rounds[share.given].items()}
        takes_s = sum(len(numbers) * cost_s(cell) for cell, numbers in new.items())
        if seconds + takes_s > allowed_s and (seconds or takes_s > left_s):
            is_cut = True
            waiting.remove(share)
            continue
        seconds += takes_s
        share.given += 1
        for cell, numbers in new.items():
            added[cell] |= numbers
    in_order = sorted((cell for cell in added if added[cell]), key=lambda cell: cell.path)
    # Of a study's entries, the last one stays.
    narrowing = sorted((share for share in shares if share.given and share.trials), key=lambda share: share.need_now)
    expected = {share.study: (share.width, share.width * share.narrowed) for share in narrowing if share.width}
    return Fitted({cell: sorted(added[cell]) for cell in in_order}, seconds, is_cut, expected)

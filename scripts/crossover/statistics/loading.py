"""What loading its data takes of a step: the published protocol beside the same arithmetic on resident data.

The difference holds all that the published protocol does beside the arithmetic: its loader, the move of each batch to
the device, and reading the loss back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from crossover.answers.wording import CAUTION, INDICATIVE, Answer, machine_words
from crossover.config.studies import steps_of_run
from crossover.config.words import DEVICES, PROTOCOLS
from crossover.figures.style import device_label, seconds_text, side_word
from crossover.statistics.summary import Ratio, ratio_over_trials, time_over_trials
from crossover.tables.frames import CELL_AXES

BOUND = 0.5
"""Share of a step above which what takes it bounds the run."""

SMALLEST_PERCENT = 0.001
"""What is smaller reads 0 %."""

PAIRED_AXES = [axis for axis in CELL_AXES if axis != "protocol"]


@dataclass(frozen=True)
class Loading:
    """A cell of the published protocol beside the same one on resident data; times of a step, in seconds."""

    batch_size: int
    published_s: float
    resident_s: float
    share: Ratio
    """What loading takes of a step, from 0 to 1; below 0 where the resident step is the slower one."""


def loading_answers(trials: pd.DataFrame, steps_per_run: int | Mapping[str, int] | None) -> list[str]:
    """One sentence a device on which cells of both protocols have an ok trial.

    `trials` are a study's, as `with_ok_times` leaves them. Times are of an epoch where the study's run has some.
    """
    return [_sentence(label, pairs, steps_per_run) for label, _, pairs in _pairs(trials)]


def short_loading(trials: pd.DataFrame) -> list[Answer]:
    """The same in a few words: the share of a step, and its interval."""
    answers = []
    for _, side, pairs in _pairs(trials):
        shares = [pair.share for pair in pairs]
        lows, highs = (
            [end for end in ends if end is not None] for ends in zip(*((s.low, s.high) for s in shares), strict=True)
        )
        interval = f"95 %: {_percent(min(lows))} to {_percent(max(highs))}" if lows else ""
        alone = len(shares) - len(lows)
        notes = [interval] if lows else [INDICATIVE]
        notes += [f"without {alone} of {len(shares)} cells, which have one trial"] if lows and alone else []
        span = _span([share.ratio for share in shares], _percent)
        if highs and max(highs) < 0 and not alone:
            answers.append(Answer(f"Loading does not slow a step down on the {side}"))
        else:
            answers.append(Answer(f"Loading takes {span} of a step on the {side}", [", ".join(notes)]))
    return answers


def _pairs(trials: pd.DataFrame) -> list[tuple[str, str, list[Loading]]]:
    """A device's label, its short one and its cells of both protocols, where it has any."""
    timed = trials.dropna(subset=["step_time_s"])
    if timed["protocol"].nunique() < len(PROTOCOLS):
        return []
    found = []
    for device, machine in product(DEVICES, timed["machine"].unique()):
        own = timed[(timed["device"] == device) & (timed["machine"] == machine)]
        pairs = [pair for _, rows in own.groupby(PAIRED_AXES, sort=False) if (pair := _pair(rows))]
        if pairs:
            label = device_label(device, own["device_name"].iloc[0], machine)
            found.append((label, side_word(device) + machine_words("of", machine), pairs))
    return found


def _pair(rows: pd.DataFrame) -> Loading | None:
    published, resident = (
        rows.loc[rows["protocol"] == protocol, "step_time_s"].tolist() for protocol in ("as_published", "resident")
    )
    if not published or not resident:
        return None
    left = ratio_over_trials(published, resident)
    low, high = (None if end is None else 1 - end for end in (left.high, left.low))
    published_s, resident_s = (time_over_trials(seconds).mean_s for seconds in (published, resident))
    return Loading(int(rows["batch_size"].iloc[0]), published_s, resident_s, Ratio(1 - left.ratio, low, high))


def _sentence(device: str, pairs: Sequence[Loading], steps_per_run: int | Mapping[str, int] | None) -> str:
    """Loading bounds the run where it surely takes more than BOUND of each step, by the intervals' lower ends."""
    timed_again = [pair.share for pair in pairs if pair.share.low is not None and pair.share.high is not None]
    lows = [share.low for share in timed_again if share.low is not None]
    highs = [share.high for share in timed_again if share.high is not None]
    certain = len(timed_again) == len(pairs)
    shares = [pair.share.ratio for pair in pairs]
    what, sign = "the loader takes {share} of a step", 1
    if certain and min(lows) > BOUND:
        what = "the loader, not the network, bounds the run: it takes {share} of a step"
    elif certain and max(highs) < 0:
        # A negative share of a step is what the step takes longer without the loader.
        what, sign = "the loader does not slow a step down: on resident data a step takes {share} longer", -1
    elif lows and min(highs) < 0:
        what = "the loader does not slow every step down: it takes {share} of a step"
    elif lows and min(lows) <= 0:
        what = "it is not certain that the loader slows every step down: it takes {share} of a step"
    ends = sorted(sign * end for end in (*lows, *highs))
    interval = f" (95 % intervals from {_percent(ends[0])} to {_percent(ends[-1])})" if ends else ""
    unit, factor = _unit(steps_per_run)
    published, resident = (
        _span([getattr(pair, name) * factor(pair.batch_size) for pair in pairs], seconds_text)
        for name in ("published_s", "resident_s")
    )
    return (
        f"On the {device} {what.format(share=_span([sign * share for share in shares], _percent))}{interval}. "
        f"{unit} takes {published} with the loader, and {resident} with the data on the device."
        f"{_caution(len(pairs), len(timed_again))}"
    )


def _caution(pairs: int, timed_again: int) -> str:
    """What to say of the pairs that have no interval, with one trial on a side."""
    if not timed_again:
        return CAUTION
    alone = pairs - timed_again
    return f" The intervals leave out {alone} of {pairs} cells, which have one trial only." if alone else ""


def _unit(steps_per_run: int | Mapping[str, int] | None) -> tuple[str, Callable[[int], int]]:
    """What the times are of, and its steps at a batch size."""
    if not isinstance(steps_per_run, Mapping):
        return "A step", lambda _batch_size: 1
    epoch: dict[str, Any] = {**steps_per_run, "epochs": 1}
    return "An epoch", lambda batch_size: steps_of_run(epoch, batch_size) or 1


def _percent(share: float) -> str:
    """'88 %'; below one percent a digit of it, '0.2 %'."""
    percent = 100 * share
    return f"{percent:.1g} %" if SMALLEST_PERCENT <= abs(percent) < 1 else f"{round(percent)} %"


def _span(values: Sequence[float], text: Callable[[float], str]) -> str:
    """'86 % to 88 %', or one text where both ends read the same."""
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"

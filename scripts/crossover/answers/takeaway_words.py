"""The words that takeaways share: intervals, places, names, and the caution that one trial calls for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.caveats import CAVEATS
from crossover.answers.naming import NAMED_AXES, name_by
from crossover.answers.sentences import axis_words, known_place
from crossover.answers.wording import INDICATIVE, capitalised, listed
from crossover.figures.style import DEVICE_WORDS, number_text
from crossover.figures.views import StudyView

MOST_FLAGS = 3
"""Of more flags than these, the rest is counted."""


def between(low: float | None, high: float | None, say: Callable[[float], str] = number_text) -> str:
    """' (95 %: 4.50 to 5.10)'; nothing where there is no interval."""
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return ""
    return f" (95 %: {say(low)} to {say(high)})"


def indicative(text: str, trials: float) -> str:
    """A sentence, and behind it what one trial is worth; `trials` are the fewest of the cells that it speaks of."""
    if not text:
        return ""
    return f"{text}. {capitalised(INDICATIVE)}." if trials < 2 else f"{text}."


def resting_on(flags_of_cells: Sequence[Sequence[str]]) -> str:
    """' It rests on a cell with times that drift.': behind a sentence on cells with these flags; empty without any."""
    flagged = [flags for flags in flags_of_cells if len(flags)]
    names = list(dict.fromkeys(flag for flags in flagged for flag in flags))
    if not names:
        return ""
    words = [CAVEATS[name] for name in names[:MOST_FLAGS]]
    if more := len(names) - len(words):
        words.append(f"with {more} other flag{'' if more == 1 else 's'}")
    return f" It rests on {'a cell' if len(flagged) == 1 else 'cells'} {listed(words)}."


def at_place(view: StudyView, x: float, size_name: str) -> str:
    """'2,000 neurons', '681 k parameters': a place on the study's x axis."""
    return f"{number_at(view, x)} {axis_words({'x_axis': view.x_axis, 'size_name': size_name})}"


def number_at(view: StudyView, x: float) -> str:
    """'2,000', '681 k': the same without its unit."""
    return known_place(view.x_axis, x)


def where(view: StudyView, row: Mapping[str, Any], varied: Collection[str]) -> str:
    """'at 2,000 neurons on the GPU (resident, amp-bf16)': a row with x and size_name."""
    return f"at {at_place(view, row['x'], row['size_name'])} {on_device(row, varied)}"


def on_device(row: Mapping[str, Any], varied: Collection[str]) -> str:
    """'on the GPU (resident, amp-bf16)'."""
    device, name = _named(row, varied)
    return f"{device} ({name})" if name else device


def who(row: Mapping[str, Any], varied: Collection[str]) -> str:
    """'amp-bf16 on the GPU': what of a study a row is, by the axes in which its rows differ."""
    device, name = _named(row, varied)
    return f"{name} {device}" if name else device


def _named(row: Mapping[str, Any], varied: Collection[str]) -> tuple[str, str]:
    """'on the GPU', and what else sets a row apart."""
    name = name_by(row, [axis for axis in NAMED_AXES if axis in varied and axis != "size"])
    return f"on the {DEVICE_WORDS[row['device']]}", name

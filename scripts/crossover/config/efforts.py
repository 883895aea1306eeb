"""A study's effort beside the run's: which of them counts, and what contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crossover.config.studies import Effort, Study
from crossover.config.validation import Locator
from crossover.errors import UserError

CAPS = ("warmup_max_s", "timed_max_s")
"""Of these the smaller counts, so that a study cannot make a short run longer; of all others, the study's own."""

ENDS = (("warmup_min_s", "warmup_max_s"), ("timed_min_s", "timed_max_s"))
"""Least and most seconds of the same thing."""


def effort_of(study: Study, run: Effort) -> Effort:
    """The effort of a study's trials in a run."""
    return with_own(study.effort, run)


def with_own(own: Mapping[str, Any], run: Effort) -> Effort:
    """The run's effort with what a study's file says instead."""
    return replace(run, **{key: _that_counts(key, value, run) for key, value in own.items()})


def _that_counts(key: str, own: Any, run: Effort) -> Any:
    value = type(getattr(run, key))(own)
    return min(value, getattr(run, key)) if key in CAPS else value


def check_effort(effort: Effort, locate: Locator) -> None:
    """Raise UserError naming file and key where a run's least seconds are more than its most."""
    for least, most in _crossed(effort):
        low, high = getattr(effort, least), getattr(effort, most)
        raise UserError(
            f"{locate(('effort', least))}: effort.{least}: {low:g} is more than effort.{most}, {high:g}; "
            f"allowed: at most {high:g}, or a larger {most}"
        )


def check_effort_of(study: Study, run: Effort, place: str) -> None:
    """The same of a study's trials, whose ends may be the study's and the run's; `place` is the study's file."""
    effort = effort_of(study, run)
    for least, most in _crossed(effort):
        low, high = getattr(effort, least), getattr(effort, most)
        names = {end: f"effort.{end}{_whose(end, study.effort, effort)}" for end in (least, most)}
        if least in study.effort:
            text = f"effort.{least}: {low:g} is more than {names[most]}, {high:g}; allowed: at most {high:g}"
        else:
            text = f"effort.{most}: {high:g} is less than {names[least]}, {low:g}; allowed: at least {low:g}"
        raise UserError(f"{place}: {text}, or another {most if least in study.effort else least}")


def _crossed(effort: Effort) -> list[tuple[str, str]]:
    return [(least, most) for least, most in ENDS if getattr(effort, least) > getattr(effort, most)]


def _whose(key: str, own: Mapping[str, Any], effort: Effort) -> str:
    """Whether a value is the run's: it may stand in another file than the study's."""
    return "" if key in own and own[key] == getattr(effort, key) else " of the run"

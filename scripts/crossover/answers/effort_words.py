"""What the page says of the effort of the trials: that of their rows, where it is not the config's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from crossover.answers.wording import listed
from crossover.config.studies import Effort, with_own


def effort_words(
    counts: Sequence[Mapping[str, Any]], run: Mapping[str, Any] | None, studies: Mapping[str, Mapping[str, Any]]
) -> str:
    """One or more sentences. `run` is the config's effort, None where each of several runs had its own, `studies` the
    files of the studies.

    `counts` says how many rows of a study have an effort, as JSON; null where they do not say. A report can be made of
    rows that another config measured, so the config's effort is stated only where no row contradicts it.
    """
    known = _known(counts)
    if run is not None and _all_agree(known, run, studies):
        return f"Effort of the run, where a study has none of its own: {_listed(run)}."
    if not known:
        return "The rows do not say the effort of their trials."
    by_effort: dict[str, list[str]] = {}
    for study, effort, rows in known:
        by_effort.setdefault(_listed(effort), []).append(f"{study} ({rows:,} {'row' if rows == 1 else 'rows'})")
    said = "; ".join(f"{', '.join(whose)}: {effort}" for effort, whose in by_effort.items())
    silent = sum(row["rows"] for row in counts if row["effort"] is None)
    unsaid = f" Rows that do not say theirs: {silent:,}." if silent else ""
    against = "" if run is None else ", which is not all as the config of this page has it"
    return f"Effort of the trials, as their rows say{against}: {said}.{unsaid}"


def short_effort_words(
    counts: Sequence[Mapping[str, Any]], run: Mapping[str, Any] | None, studies: Mapping[str, Mapping[str, Any]]
) -> str:
    """The same in a few words: what differs from the effort that a run has by itself."""
    known = _known(counts)
    if run is not None and _all_agree(known, run, studies):
        return _beside_default(run)
    if not known:
        return "not recorded"
    by_effort: dict[str, list[str]] = {}
    for study, effort, _ in known:
        by_effort.setdefault(_beside_default(effort), []).append(study)
    if len(by_effort) == 1:
        return next(iter(by_effort))
    return "; ".join(f"{effort} ({listed(list(dict.fromkeys(whose)))})" for effort, whose in by_effort.items())


def _beside_default(effort: Mapping[str, Any] | str) -> str:
    if isinstance(effort, str):
        return effort
    usual = asdict(Effort())
    other = {key: own for key, own in effort.items() if usual.get(key) != own}
    return f"the default but for {_listed(other)}" if other else "the default"


def _known(counts: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any] | str, int]]:
    """Study, effort and number of the rows that say theirs."""
    return [(row["study"], _effort(row["effort"]), row["rows"]) for row in counts if row["effort"] is not None]


def _all_agree(
    known: Sequence[tuple[str, Mapping[str, Any] | str, int]],
    run: Mapping[str, Any],
    studies: Mapping[str, Mapping[str, Any]],
) -> bool:
    return all(_agrees(effort, run, studies.get(study, {})) for study, effort, _ in known)


def _effort(text: str) -> Mapping[str, Any] | str:
    """The keys of an effort; the text itself where it is none."""
    try:
        effort = json.loads(text)
    except ValueError:
        return text
    return effort if isinstance(effort, dict) else text


def _agrees(effort: Mapping[str, Any] | str, run: Mapping[str, Any], study: Mapping[str, Any]) -> bool:
    """Whether a row's effort, as far as it goes, is what the config and the study's file ask for."""
    if isinstance(effort, str):
        return False
    asked = asdict(with_own(study.get("effort") or {}, Effort(**run)))
    return all(key in asked and asked[key] == value for key, value in effort.items())


def _listed(effort: Mapping[str, Any] | str) -> str:
    return effort if isinstance(effort, str) else ", ".join(f"{key} {value}" for key, value in effort.items())

"""What the page says of the effort of the trials: that of their rows, where it is not the config's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from crossover.efforts import with_own
from crossover.studies import Effort


def effort_words(
    counts: Sequence[Mapping[str, Any]], run: Mapping[str, Any], studies: Mapping[str, Mapping[str, Any]]
) -> str:
    """One or more sentences. `run` is the config's effort, `studies` the files of the studies.

    `counts` says how many rows of a study have an effort, as JSON; null where they do not say. A report can be made of
    rows that another config measured, so the config's effort is stated only where no row contradicts it.
    """
    known = [(row["study"], _effort(row["effort"]), row["rows"]) for row in counts if row["effort"] is not None]
    if all(_agrees(effort, run, studies.get(study, {})) for study, effort, _ in known):
        return f"Effort of the run, where a study has none of its own: {_listed(run)}."
    by_effort: dict[str, list[str]] = {}
    for study, effort, rows in known:
        by_effort.setdefault(_listed(effort), []).append(f"{study} ({rows:,} {'row' if rows == 1 else 'rows'})")
    said = "; ".join(f"{', '.join(whose)}: {effort}" for effort, whose in by_effort.items())
    silent = sum(row["rows"] for row in counts if row["effort"] is None)
    unsaid = f" Rows that do not say theirs: {silent:,}." if silent else ""
    return (
        f"Effort of the trials, as their rows say, which is not all as the config of this page has it: {said}.{unsaid}"
    )


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

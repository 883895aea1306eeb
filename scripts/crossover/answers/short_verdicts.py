"""What was published and whether it holds, in the few words that stand beside an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crossover.answers.claim_words import OWN_WORDS, VERDICT_MARKS, VERDICT_WORDS, claim_rows
from crossover.answers.sentences import known_place
from crossover.config.claim_forms import OURS

PLURALS = {"differs": "differ", "holds": "hold", "does not hold": "do not hold"}


def short_verdicts(claims: Any, spec: Mapping[str, Any]) -> list[dict[str, str]]:
    """Phrases of `words` and, where something was tested, a `verdict` with its `mark`.

    A single claim on a crossover stands with the published value, all others as a count a verdict. `claims` are the
    study's rows of the table of claims, `spec` is its file. Each of several machines has phrases of its own.
    """
    machines = claims["machine"].unique() if "machine" in claims else ()
    if len(machines) > 1:
        return [
            phrase | {"words": f"{machine}, {phrase['words']}" if phrase["words"] else ""}
            for machine in machines
            for phrase in short_verdicts(claims[claims["machine"] == machine], spec)
        ]
    rows = claim_rows(claims)
    crossing = [row for row in rows if row["form"] == "crossover_between" and row["source"] != OURS]
    if len(crossing) != 1:
        crossing = []
    others = [row for row in rows if row not in crossing]
    said = [_crossover(row, spec) for row in crossing]
    return said + _counted(others, more=bool(crossing)) or _published_only(spec["published"])


def _crossover(row: dict[str, Any], spec: Mapping[str, Any]) -> dict[str, str]:
    return {
        "words": f"published: {_value(row, [row['tested_low'], row['tested_high']], spec)}",
        "verdict": row["verdict_words"],
        "mark": row["mark"],
        "kind": row["verdict"],
    }


def _value(row: dict[str, Any], tested: Sequence[float], spec: Mapping[str, Any]) -> str:
    """The published value, and what was tested where that is something else."""
    x_axis = spec.get("x_axis", "size")
    if ends := (spec["published"] or {}).get("crossover"):
        value, is_tested = _span(ends, x_axis), list(ends) == list(tested)
    else:
        value, other, _ = str(row["published"]).partition(" (tested")
        is_tested = not other
    return value if is_tested else f"{value}, tested as {_span(tested, x_axis)}"


def _span(ends: Sequence[float], x_axis: str) -> str:
    return " to ".join(dict.fromkeys(known_place(x_axis, end) for end in ends))


def _counted(rows: Sequence[dict[str, Any]], *, more: bool) -> list[dict[str, str]]:
    """'2 more published statements: 1 reproduced, 1 differs', one phrase a verdict; and of ours likewise."""
    phrases = []
    for own, names, what in ((False, VERDICT_WORDS, "published statement"), (True, OWN_WORDS, "statement of our own")):
        counts = Counter(row["verdict"] for row in rows if (row["source"] == OURS) is own)
        total = sum(counts.values())
        noun = what.replace("statement", "statements") if total > 1 else what
        lead = f"{total}{' more' if more and not own else ''} {noun}:"
        for verdict in (verdict for verdict in names if counts[verdict]):
            said = names[verdict] if total == 1 else f"{counts[verdict]} {_of_several(names[verdict], counts[verdict])}"
            phrases.append({"words": lead, "verdict": said, "mark": VERDICT_MARKS[verdict], "kind": verdict})
            lead = ""
    return phrases


def _of_several(verdict: str, count: int) -> str:
    return verdict if count == 1 else PLURALS.get(verdict, verdict)


def _published_only(published: Mapping[str, Any] | None) -> list[dict[str, str]]:
    statement = (published or {}).get("statement")
    return [{"words": f"published: {statement}", "verdict": "", "mark": "", "kind": ""}] if statement else []

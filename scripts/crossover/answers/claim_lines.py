"""What was published on a question, whether it holds here, and why, as plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.answers.claim_words import claim_rows
from crossover.config.claim_forms import OURS
from crossover.config.words import HERE


def claim_lines(claims: pd.DataFrame, published: Mapping[str, Any] | None) -> list[str]:
    """A line for all statements that share a verdict and its reason, with what is published and measured of each.

    `claims` are a study's rows of the table of claims, `published` is what its file says; its statement stands only
    where none was tested.
    """
    machines = list(claims["machine"].unique()) if "machine" in claims else [HERE]
    groups: dict[tuple[str, str], list[str]] = {}
    for row, quantity in zip(claim_rows(claims), claims["quantity"], strict=True):
        verdict = f"{row['mark']} {row['verdict_words']} ({row['reason']})"
        groups.setdefault((row.get("machine", HERE), verdict), []).append(_statement(row, quantity))
    if not groups and published and published.get("statement"):
        return [f"published: {published['statement']}"]
    return [
        f"{'' if machine == HERE else f'{machine}: '}{verdict}: {'; '.join(said)}"
        for (machine, verdict), said in sorted(groups.items(), key=lambda group: machines.index(group[0][0]))
    ]


def _statement(row: Mapping[str, Any], quantity: str) -> str:
    """'it starts at 700 [crossover in parameters: published 700, measured 680 (610 to 760)]'."""
    value, _, _ = str(row["published"]).partition(" (tested")
    whose = "tested" if row["source"] == OURS else "published"
    measured = f", measured {row['measured']}" if row["measured"] else ""
    return f"{row['statement']} [{quantity}: {whose} {value}{measured}]"

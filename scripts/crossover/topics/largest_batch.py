"""Answers on searches for the largest batch that fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.tables.frames import records
from crossover.tables.labels import NAMED_AXES, device_label, name_by, varying
from crossover.text import bytes_text
from crossover.topics.answer import Answer


@dataclass(frozen=True, kw_only=True)
class LargestBatch(Answer):
    """The result of a search for the largest batch that fits into the memory of a device."""

    kind = "largest_batch"
    statuses = ("fits", "all_fit", "none_fits", "stopped", "not_found")

    batch_size: int | None
    """The largest that fits, or the smallest if none does."""
    limit_bytes: float | None
    reason: str | None

    def sentence(self) -> str:
        size = f"{self.batch_size:,}" if self.batch_size is not None else ""
        found = {
            "none_fits": f"Not even a batch of {size} fits",
            "fits": f"Largest batch that fits: {size}",
            "all_fit": f"Largest batch tried, which fits: {size}",
            "stopped": f"Largest batch: at least {size}, where the search was stopped",
            "not_found": "Largest batch not found",
        }[self.status]
        limits = ["the limit of the search"] if self.status == "all_fit" else []
        if self.limit_bytes is not None:
            limits.append(f"memory limit {bytes_text(self.limit_bytes)}")
        elif self.status == "fits":
            limits.append("limited by its memory")
        limit = f", {'; '.join(limits)}" if limits else ""
        return f"{found} on the {self.device}{limit}{f': {self.reason}' if self.reason else ''}"


def largest_batch_answers(searches: pd.DataFrame) -> list[LargestBatch]:
    named = varying(searches, [axis for axis in NAMED_AXES if axis != "batch_size"])
    return [
        LargestBatch(
            machine=row["machine"],
            series=name_by(row, named),
            device=device_label(row["device"], row["device_name"]),
            limit_bytes=row["memory_limit_bytes"],
            reason=row["reason"],
            **_search_result(row),
        )
        for row in records(searches)
    ]


def largest_batches_text(searches: pd.DataFrame) -> str:
    """A line for each search, with its study, the largest batch and what limits it."""
    answers = [
        (study, answer)
        for study, of_study in searches.groupby("study", sort=False)
        for answer in largest_batch_answers(of_study)
    ]
    return "".join(f"{study}: {answer.text()}\n" for study, answer in answers)


def _search_result(search: dict[str, Any]) -> dict[str, Any]:
    if search["status"] == "oom":
        return {"status": "none_fits", "batch_size": search["smallest_failing"]}
    if search["status"] != "ok":
        stopped = search["largest_fitting"] is not None
        return {"status": "stopped" if stopped else "not_found", "batch_size": search["largest_fitting"]}
    status = "all_fit" if search["smallest_failing"] is None else "fits"
    return {"status": status, "batch_size": search["largest_batch"]}

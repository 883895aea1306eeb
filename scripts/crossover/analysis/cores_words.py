"""How many cores an accelerator is worth, in words: a sentence a line for its largest size, and a table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.analysis.naming import varying
from crossover.analysis.sentences import line_words, merged
from crossover.analysis.style import device_label, number_text, short_name
from crossover.analysis.tables import LINE_AXES, records


def cores_view(table: pd.DataFrame) -> dict[str, Any]:
    """What the report says of one study, from its rows of `compare_cores`: `answers` with their lines, and `rows`."""
    several = varying(table, LINE_AXES)
    largest = table[table["size"] == table.groupby([*LINE_AXES, "contender"])["size"].transform("max")]
    return {
        "answers": merged((line_words(row, several), cores_answer(row)) for row in records(largest)),
        "rows": [
            {
                "line": line_words(row, several),
                "size": row["size"],
                "accelerator": device_label(row["contender"], row["contender_name"]),
                "worth": row["message"],
                "set": set_words(row),
                "measured": ", ".join(map(str, row["measured_cores"])),
                "trials": row["trials"],
            }
            for row in records(table)
        ],
    }


def cores_answer(row: dict[str, Any]) -> str:
    """One sentence for one row of the table."""
    accelerator = f"the {device_label(row['contender'], row['contender_name'])}"
    place = f"At {row['size']:,} {row['size_name']}"
    if row["status"] == "incomplete":
        return f"{place} it cannot be said how many cores {accelerator} is worth: {row['message']}."
    cpu = short_name(row["baseline_name"]) if row["baseline_name"] else "the CPU"
    known = f"95 % set: {set_words(row)}; " if set_words(row) else ""
    counts = ", ".join(map(str, row["measured_cores"]))
    caution = " One trial a cell: indicative only." if row["trials"] == 1 else ""
    return f"{place} {accelerator} is worth {row['message']} of {cpu} ({known}measured on {counts}).{caution}"


def set_words(row: dict[str, Any]) -> str:
    """'4.9 to 6.3', 'from 12 on'; empty where no end is known."""
    low, high = (None if row[end] is None else number_text(row[end], 2) for end in ("cores_low", "cores_high"))
    if low and high:
        return f"{low} to {high}"
    return f"from {low} on" if low else f"up to {high}" if high else ""

"""How many cores an accelerator is worth, in words: a sentence a line for its largest size, and a table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.naming import name_by, varying
from crossover.answers.sentences import line_words, merged
from crossover.answers.wording import CAUTION, INDICATIVE, Answer
from crossover.config.words import BASELINE
from crossover.figures.style import core_count_text, device_label, side_word
from crossover.tables.frames import LINE_AXES, records


def cores_answers(table: pd.DataFrame) -> list[tuple[str, str]]:
    """A sentence for the largest size of each line of one study, from its rows of `compare_cores`, after the line."""
    several = varying(table, LINE_AXES)
    return merged((line_words(row, several), cores_answer(row)) for row in records(_largest(table)))


def cores_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of the table that the report shows of one study."""
    several = varying(table, LINE_AXES)
    return [
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
    ]


def short_cores(table: pd.DataFrame) -> list[tuple[str, Answer]]:
    """The same answers in a few words, with what sets their lines apart."""
    several = varying(table, LINE_AXES)
    return merged((name_by(row, several), _short(row)) for row in records(_largest(table)))


def _largest(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of each line's largest size."""
    return table[table["size"] == table.groupby([*LINE_AXES, "contender"])["size"].transform("max")]


def _short(row: dict[str, Any]) -> Answer:
    place = f"at {row['size']:,} {row['size_name']}"
    if row["status"] in ("incomplete", "more_is_slower"):
        return Answer(f"Cannot be said {place}: {row['message']}")
    known = f"95 %: {set_words(row)}" if set_words(row) else ""
    notes = [note for note in (known, INDICATIVE if row["trials"] == 1 else "") if note]
    return Answer(f"{side_word(row['contender'])} worth {row['message']} {place}", notes)


def cores_answer(row: dict[str, Any]) -> str:
    """One sentence for one row of the table."""
    accelerator = f"the {device_label(row['contender'], row['contender_name'])}"
    place = f"At {row['size']:,} {row['size_name']}"
    caution = CAUTION if row["trials"] == 1 else ""
    if row["status"] in ("incomplete", "more_is_slower"):
        return f"{place} it cannot be said how many cores {accelerator} is worth: {row['message']}.{caution}"
    cpu = device_label(BASELINE, row["baseline_name"])
    known = f"95 % set: {set_words(row)}; " if set_words(row) else ""
    counts = ", ".join(map(str, row["measured_cores"]))
    return f"{place} {accelerator} is worth {row['message']} of the {cpu} ({known}measured on {counts}).{caution}"


def set_words(row: dict[str, Any]) -> str:
    """'4.9 to 6.3', 'from 12 on'; empty where there is no set."""
    if row["trials"] < 2 or row["status"] not in ("between", "more", "fewer"):
        return ""
    low, high = (None if row[end] is None else core_count_text(row[end]) for end in ("cores_low", "cores_high"))
    if low and high:
        return f"{low} to {high}"
    if low:
        return f"above {low}" if row["cores_low"] == max(row["measured_cores"]) else f"from {low} on"
    if high:
        return f"below {high}" if row["cores_high"] == min(row["measured_cores"]) else f"up to {high}"
    return "any number measured"

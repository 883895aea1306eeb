"""Notes of the code that makes results: a small file that stands for many, so that a job that depends on them has one
input, after which Snakemake asks sooner.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from crossover.files import atomic_path
from crossover.machine.code_key import Code


def note_code(code: Code, note: Path, results: Iterable[Path]) -> None:
    """Have `note` hold the key of the code, and what it is made of.

    It is new where it said something else before. Where there was none, it is as new as the newest file, and new if one
    of the results that are there is of other code. Where nothing has changed it stays as it is, so that a file that was
    only touched is not taken for another.
    """
    said = {"key": code.key, "packages": dict(code.packages), "code": dict(code.digests)}
    text = json.dumps(said, indent=2) + "\n"
    before = note.read_text(encoding="utf-8") if note.is_file() else None
    if text != before:
        with atomic_path(note) as temporary:
            temporary.write_text(text, encoding="utf-8")
            if before is None and not any(is_of_other_code(result, code.key) for result in results):
                newest_ns = max(file.stat().st_mtime_ns for file in code.files.values())
                os.utime(temporary, ns=(newest_ns, newest_ns))


def is_of_other_code(result: Path, key: str) -> bool:
    """Whether a result, a row or a search, says that other code made it, or does not say what did."""
    import pyarrow.parquet  # takes a moment, and there is seldom anything to read

    try:
        if result.suffix == ".json":
            return bool(json.loads(result.read_text(encoding="utf-8")).get("code_key") != key)
        with pyarrow.parquet.ParquetFile(result) as file:
            return [row.get("code_key") for row in file.read(columns=["code_key"]).to_pylist()] != [key]
    except (OSError, ValueError, pyarrow.ArrowException):
        return False  # whoever collects it says what is wrong with it

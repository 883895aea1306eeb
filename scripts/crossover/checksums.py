"""One small file that stands for many, so that a job which depends on all of them has one input."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from crossover.files import atomic_path


def note_checksums(files: Sequence[str], note: Path) -> None:
    """Have `note` hold the SHA-256 of each file, as `sha256sum` prints them.

    It is as new as its newest file, or new where it said something else before. Where nothing has changed it stays as
    it is, so that a file that was only touched is not taken for another.
    """
    text = "".join(f"{hashlib.sha256(Path(file).read_bytes()).hexdigest()}  {file}\n" for file in files)
    before = note.read_text(encoding="utf-8", errors="replace") if note.is_file() else None
    if text != before:
        with atomic_path(note) as temporary:
            temporary.write_text(text, encoding="utf-8")
            if before is None:
                newest_ns = max(Path(file).stat().st_mtime_ns for file in files)
                os.utime(temporary, ns=(newest_ns, newest_ns))

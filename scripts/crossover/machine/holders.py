"""Who holds a lock, noted in the lock's own file for those who wait."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

LONGEST_NOTE = 4096
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""In a folder that all may write in, a file may be a link to elsewhere, or a pipe that never answers."""


def write_holder(path: Path, holder: str | None) -> None:
    """Note this process as the holder; None wipes the note. A note that cannot be written is left out.

    The file is written in place: where the sticky bit is set, no user may replace another's.
    """
    lines = [str(os.getpid()), _user(), datetime.now().astimezone().isoformat(" ", "seconds"), _plain(holder or "")]
    with suppress(OSError), os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC | _SAFELY), "w", encoding="utf-8") as file:
        file.write("" if holder is None else "\n".join(lines))


def read_holder(path: Path) -> str:
    """Describe in one line the process that holds a lock, as far as it left a note."""
    if (note := _read_note(path)) is None:
        return "a process that left no note"
    pid, user, since, holder = note
    noted = f"{holder} (pid {pid}, user {user}, since {since})"
    # A holder that was killed wipes nothing, and the next one may not have written yet.
    return noted if _runs(pid) else f"a process that left no note; the last note is of {noted}"


def is_held(path: Path) -> bool:
    """Whether a process that runs has noted that it holds a lock; one of another PID namespace is not seen."""
    note = _read_note(path)
    return note is not None and _runs(note[0])


def _read_note(path: Path) -> tuple[str, str, str, str] | None:
    """Process number, user, time and holder; None where there is no note."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _SAFELY), "rb") as file:
            lines = file.read(LONGEST_NOTE).decode("utf-8", errors="replace").split("\n")
    except OSError:
        return None
    if len(lines) != 4 or not (lines[0].isascii() and lines[0].isdigit() and len(lines[0]) < 10):
        return None
    pid, user, since, holder = map(_plain, lines)
    return pid, user, since, holder


def _runs(pid: str) -> bool:
    import psutil  # only who waits or measures needs it: a trial should start quickly

    return psutil.pid_exists(int(pid))


def _plain(text: str) -> str:
    """Text for one line of a terminal, whoever wrote it."""
    return "".join(character if character.isprintable() else " " for character in text)[:200]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user need not have a name
        return str(os.getuid())

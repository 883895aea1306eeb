"""What a run shows on the terminal while it measures: one line of progress, and what a reader must see."""

from __future__ import annotations

import logging
import shutil
from typing import TextIO

HIDDEN = ("job_info", "job_started", "job_finished", "group_info", "progress", "shellcmd")
"""Events of Snakemake's log that tell of jobs which go well; its log file has them."""
TALK = ("Select jobs to execute", "Execute ")
"""Beginnings of its other lines on such jobs."""

STEPS = 20
"""In a file, where no line can be written over, so many lines of progress at most."""

ERASE = "\r\x1b[2K"


class StatusLine(logging.Filter):
    """The last line of a terminal, and a filter for the handler that writes the others above it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream, self._is_terminal = stream, stream.isatty()
        self._shown = ""
        self._told = -1

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is for the terminal; if so, the line makes room for it."""
        event = getattr(record, "event", None)
        if event in HIDDEN or (event is None and record.getMessage().startswith(TALK)):
            return False
        self.clear()
        return True

    def show(self, text: str, share: float) -> None:
        """Show how far the run is, in words and as a share of its work."""
        if self._is_terminal:
            self._shown = text[: shutil.get_terminal_size().columns - 1]
            self._write(ERASE + self._shown)
        elif (step := int(share * STEPS)) > self._told:
            self._told = step
            self._write(f"{text}\n")

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = ""
            self._write(ERASE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

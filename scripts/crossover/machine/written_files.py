"""Files that the user's code writes while it is measured, such as a cache or a log: they are no inputs.

A file that a measuring process has changed counts as it was before, as long as it still has the content that the last
such process left. What anybody else writes to it later counts as an input again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crossover.files import atomic_path
from crossover.machine.named_files import digest_or_none

RECORD = "written_files.json"
"""The record's name in a results folder."""


@dataclass(frozen=True)
class Written:
    """A file's digests before measuring processes wrote to it (None: there was no file), and after the last one."""

    before: str | None
    after: str


@dataclass(frozen=True)
class WrittenFiles:
    """The files that measuring processes have written, by path; paths in the record are relative to `home`."""

    home: Path
    """The folder of the model."""
    files: Mapping[Path, Written] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Path | None, home: Path) -> WrittenFiles:
        """Read a record; empty without a record, or for one that cannot be read."""
        with suppress(OSError, ValueError, TypeError):
            values = json.loads(record.read_text(encoding="utf-8")) if record else {}
            files = {Path(os.path.normpath(home / name)): Written(**value) for name, value in values.items()}
            return cls(home, files)
        return cls(home)

    def before(self, path: Path, digest: str | None) -> str | None:
        """The digest of a file before measuring processes wrote to it; `digest` is its current one."""
        written = self.files.get(path)
        return digest if written is None or digest != written.after else written.before

    def is_made(self, path: Path) -> bool:
        """True for a file that did not exist before measuring processes wrote it."""
        return path in self.files and self.before(path, digest_or_none(path)) is None

    def write(self, record: Path, noted: Mapping[Path, str | None]) -> None:
        """Add the files that a process has written; `noted` has their digests before."""
        files = dict(self.files)
        for path, digest in noted.items():
            if (after := digest_or_none(path)) is not None and after != digest:
                files[path] = Written(self.before(path, digest), after)
        if files != self.files:
            values = {os.path.relpath(path, self.home): asdict(written) for path, written in files.items()}
            with atomic_path(record) as temporary:
                temporary.write_text(json.dumps(values, indent=1), encoding="utf-8")

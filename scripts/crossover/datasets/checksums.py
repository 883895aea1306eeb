"""Files that a user names: are they there, and are they the expected ones?"""

from __future__ import annotations

import hashlib
from pathlib import Path

from crossover.errors import UserError


def check_file(path: Path, sha256: str | None, key: str) -> None:
    """Raise UserError, naming the config's key, where a file is missing or has another checksum (None: not checked)."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; mend its path in {key} of the config")
    if sha256 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        raise UserError(f"{path}: SHA-256 is {found}, but the config says {sha256}; the file is not the expected one")

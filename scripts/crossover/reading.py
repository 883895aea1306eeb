"""Read files of a run; a file that is truncated or of another kind raises a UserError with a remedy."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crossover.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

Content = TypeVar("Content")

RUN_AGAIN = "delete it and run again"


class UnreadableError(UserError):
    """A file that cannot be read."""

    def __init__(self, path: Path, reason: str, remedy: str = RUN_AGAIN) -> None:
        super().__init__(path, reason, remedy)
        self.reason = reason

    def __str__(self) -> str:
        path, reason, remedy = self.args
        return f"{path}: {reason}; {remedy}"


def read_arrow(path: Path, kind: str, columns: Sequence[str] | None = None, remedy: str = RUN_AGAIN) -> pa.Table:
    """Read a Parquet file, or only those of `columns` that it has; raises UnreadableError."""
    import pyarrow as pa  # slow to import, and not every reader needs it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if repeated := [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]:
                raise UnreadableError(path, f"column '{repeated[0]}' is repeated", remedy)
            return file.read(columns, use_threads=False)
    except FileNotFoundError:
        raise UnreadableError(path, f"no such {kind}", "check the path" if remedy is RUN_AGAIN else remedy) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(path, f"not a readable {kind} ({str(error).splitlines()[0]})", remedy) from None


def read_json(path: Path, kind: str) -> Any:
    """Read a JSON file; raises UnreadableError."""
    try:
        return json.loads(read_text(path, kind))
    except (ValueError, RecursionError):
        raise UnreadableError(path, f"not a readable {kind}") from None


def read_text(path: Path, kind: str) -> str:
    """Read a text file; raises UnreadableError."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableError(path, f"no such {kind}", "check the path") from None
    except (OSError, ValueError):
        raise UnreadableError(path, f"not a readable {kind}") from None


def read_each(
    paths: Iterable[Path], read: Callable[[Path], Content]
) -> tuple[dict[Path, Content], dict[Path, UnreadableError]]:
    """The contents of the readable files, and the errors for the others."""
    contents, errors = {}, {}
    for path in paths:
        try:
            contents[path] = read(path)
        except UnreadableError as error:
            errors[path] = error
    return contents, errors


def check_readable(errors: Mapping[Path, UnreadableError]) -> None:
    """Raise the only error, if any, or for several files one UserError with the command that deletes them."""
    if not errors:
        return
    path, first_error = next(iter(errors.items()))
    if len(errors) == 1:
        raise first_error
    raise UserError(
        f"{path}: {first_error.reason}; {len(errors)} files in all cannot be used; delete them and run again: "
        f"rm {shlex.join(map(str, errors))}"
    )

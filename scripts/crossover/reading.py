"""Read files of a run; a truncated file, or one of another kind, raises a UserError with the remedy."""

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

AGAIN = "delete it and run again"


class UnreadableError(UserError):
    """A file that cannot be read."""

    def __init__(self, path: Path, why: str, remedy: str = AGAIN) -> None:
        super().__init__(path, why, remedy)
        self.why = why

    def __str__(self) -> str:
        path, why, remedy = self.args
        return f"{path}: {why}; {remedy}"


def read_arrow(path: Path, kind: str, columns: Sequence[str] | None = None, remedy: str = AGAIN) -> pa.Table:
    """Read a Parquet file, or those of the named columns that it has; raises UnreadableError, which names its
    `kind`."""
    import pyarrow as pa  # slow to import, and not every reader needs it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if twice := [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]:
                raise UnreadableError(path, f"column '{twice[0]}' is repeated", remedy)
            return file.read(columns, use_threads=False)
    except FileNotFoundError:
        raise UnreadableError(path, f"no such {kind}", "check the path" if remedy is AGAIN else remedy) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(path, f"not a readable {kind} ({str(error).splitlines()[0]})", remedy) from None


def read_json(path: Path, kind: str) -> Any:
    """Read a JSON file; raises UnreadableError, which names its `kind`."""
    try:
        return json.loads(read_text(path, kind))
    except (ValueError, RecursionError):
        raise UnreadableError(path, f"not a readable {kind}") from None


def read_text(path: Path, kind: str) -> str:
    """Read a text file; raises UnreadableError, which names its `kind`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableError(path, f"no such {kind}", "check the path") from None
    except (OSError, ValueError):
        raise UnreadableError(path, f"not a readable {kind}") from None


def read_each(
    paths: Iterable[Path], read: Callable[[Path], Content]
) -> tuple[dict[Path, Content], dict[Path, UnreadableError]]:
    """The contents of the files that `read` can read, and the errors of the others."""
    contents, torn = {}, {}
    for path in paths:
        try:
            contents[path] = read(path)
        except UnreadableError as error:
            torn[path] = error
    return contents, torn


def check_readable(torn: Mapping[Path, UnreadableError]) -> None:
    """Raise UserError if files could not be read: one line for all, with the command that removes them."""
    if len(torn) == 1:
        raise next(iter(torn.values()))
    if torn:
        first, error = next(iter(torn.items()))
        raise UserError(
            f"{first}: {error.why}; {len(torn)} files like it cannot be used; delete them and run again: "
            f"rm {shlex.join(map(str, torn))}"
        )

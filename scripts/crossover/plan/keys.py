"""Keys of results: which results in a folder were measured under other conditions than those planned, and why.

Snakemake notices a changed key only while its own records are there. Each result therefore carries its key, and a
result without the planned key is measured again, wherever it was copied from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crossover.config.studies import RESULTS, path_of_result

Parts = Mapping[str, str]
"""What may change a time and is known when a run is planned: values or digests, by a name for messages."""

UNKNOWN = "what it was measured with is not known"
DISTURBED = "the peak rates of {device} were measured while other work or heat disturbed them; one more try"
MOST_REASONS = 4

LIMIT = re.compile(rb"([0-9.e+]+) s; raise time_limit_s")
"""The time limit in the reason of a result whose job ran into it. It changes no number, and is no part of the key."""

HEAD_BYTES = 2**16
"""The beginning of a dataset's file, which contains its metadata."""


@dataclass(frozen=True)
class Key:
    """A key with its parts, which a later run compares with its own."""

    key: str
    parts: Parts

    @classmethod
    def of(cls, parts: Parts) -> Key:
        return cls(hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32], parts)


def results_in(folder: Path) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """The results in a folder: the path, the kind of job, and the wildcards of its rule."""
    for kind, pattern in RESULTS.items():
        for path in sorted((folder / pattern.partition("/")[0]).rglob(f"*.{pattern.rpartition('.')[2]}")):
            if match := path_of_result(kind).fullmatch(path.relative_to(folder).as_posix()):
                yield path, kind, {name: value for name, value in match.groupdict().items() if value is not None}


def outdated_results(
    folder: Path,
    key_of: Callable[[str, Mapping[str, str]], Key | None],
    limit_s_of: Callable[[Mapping[str, str]], float],
    repeats: int,
) -> dict[str, list[str]]:
    """The results with another key than planned, ended by a lower time limit, or to be repeated.

    By path, each with the reasons. `key_of` gives the planned key for a kind of job and its wildcards (None if no such
    result is planned), and `limit_s_of` the time limit for wildcards. Disturbed roofs are repeated unless `repeats`
    (the key `repeat_disturbed`) is 0.
    """
    outdated: dict[str, list[str]] = {}
    former: dict[str, Parts] | None = None
    for path, kind, wildcards in results_in(folder):
        planned = key_of(kind, wildcards)
        try:
            content = path.read_bytes()
        except OSError:  # Snakemake, too, reports a file that cannot be read
            continue
        if planned is None:
            continue
        # Key and reason are plain text in the file, and reading a row with Arrow would take far longer.
        if planned.key.encode() in content:
            if (ended := LIMIT.search(content)) and float(ended[1]) < (limit_s := limit_s_of(wildcards)):
                outdated[str(path)] = [f"time_limit_s was {ended[1].decode()}, is {limit_s:g}"]
            elif repeats and kind == "probe" and mark_of_repeat(path).exists():
                outdated[str(path)] = [DISTURBED.format(**wildcards)]
            continue
        former = _former_keys(folder / "plan.json") if former is None else former
        measured = next((former[key] for key in re.findall("[0-9a-f]{32}", _text(content)) if key in former), None)
        outdated[str(path)] = [UNKNOWN] if measured is None else differences(measured, planned.parts)
    return outdated


def mark_of_repeat(roofs: Path) -> Path:
    """The file that exists beside disturbed roofs until they have been probed once more."""
    return roofs.with_suffix(".disturbed")


def outdated_datasets(folder: Path, keys: Mapping[str, str]) -> list[str]:
    """The paths of datasets in a results folder whose file does not name its key; `keys` are by dataset."""
    paths = {folder / "datasets" / f"{name}.safetensors": key.encode() for name, key in keys.items()}
    return [str(path) for path, key in paths.items() if path.is_file() and key not in _head(path)]


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(HEAD_BYTES)


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace")


def _former_keys(plan: Path) -> dict[str, Parts]:
    """The parts of the keys in the plan of the folder's last run; empty without a readable plan."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return {key["key"]: key["parts"] for key in json.loads(plan.read_text(encoding="utf-8"))["keys"]}
    return {}


def differences(first: Parts, second: Parts) -> list[str]:
    """The names of the parts that differ, with their values if these are no digests."""
    names = [name for name in dict.fromkeys([*first, *second]) if first.get(name) != second.get(name)]
    return [f"{name}{_change(first.get(name), second.get(name))}" for name in names]


def _change(before: str | None, now: str | None) -> str:
    if before is None or now is None:
        return " is new" if before is None else " is gone"
    if re.fullmatch("[0-9a-f]{32,64}", now):
        return " has changed"
    return f" was {before}, is {now}"


def reasons_text(outdated: Mapping[str, Sequence[str]]) -> str:
    """The note on results that are measured again, as in '12 results are measured again: file net.py has changed'."""
    reasons = [reason for reason, _ in Counter(reason for texts in outdated.values() for reason in texts).most_common()]
    more = f" and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    results = "1 result is" if len(outdated) == 1 else f"{len(outdated):,} results are"
    return f"{results} measured again: {'; '.join(reasons[:MOST_REASONS])}{more}"

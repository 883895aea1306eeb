from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.reading import UnreadableError, check_readable, read_arrow, read_each, read_json


def spoilt(path: Path) -> list[Path]:
    whole = path.read_bytes()
    contents = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "without_end": whole[:-1],
        "json": b'{"cells": []}',
        "garbled": whole[:4] + b"\xff" * (len(whole) - 12) + whole[-8:],
    }
    for name, content in contents.items():
        path.with_stem(name).write_bytes(content)
    path.with_stem("folder").mkdir()
    return [path.with_stem(name) for name in (*contents, "folder")]


def test_the_error_for_a_damaged_table_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"study": ["a"] * 100, "size": range(100)}), path)
    assert read_arrow(path, "table", ["size", "gone"]).column_names == ["size"]
    for other in spoilt(path):
        with pytest.raises(UnreadableError) as caught:
            read_arrow(other, "table")
        assert str(caught.value).startswith(f"{other}: not a readable table (")
        assert str(caught.value).endswith("; delete it and run again")
        assert "\n" not in str(caught.value)
    with pytest.raises(UnreadableError, match=r"missing\.parquet: no such table; check the path$"):
        read_arrow(path.with_stem("missing"), "table")


@pytest.mark.parametrize("content", [b"", b'{"cells": [', b"\xff\xfe", b"PAR1", b"[" * 100_000])
def test_the_error_for_a_damaged_json_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_json(path, "plan")
    assert str(caught.value) == f"{path}: not a readable plan; delete it and run again"


def fails_on(*names: str) -> Callable[[Path], str]:
    def read(path: Path) -> str:
        if path.name in names:
            raise UnreadableError(path, "cut off")
        return path.name

    return read


def test_one_error_lists_all_damaged_files_with_the_command_that_deletes_them() -> None:
    paths = [Path(name) for name in ("a", "b c", "d", "it's")]
    contents, torn = read_each(paths, fails_on("b c", "it's"))
    assert contents == {Path("a"): "a", Path("d"): "d"}
    with pytest.raises(UserError) as caught:
        check_readable(torn)
    words, _, command = str(caught.value).rpartition(": ")
    assert words == "b c: cut off; 2 files in all cannot be used; delete them and run again"
    assert shlex.split(command) == ["rm", "b c", "it's"]

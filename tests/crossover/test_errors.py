from __future__ import annotations

from pathlib import Path

import pytest

from crossover.errors import UserError, logged, one_line_errors


def test_a_users_error_ends_the_program_with_one_line() -> None:
    with pytest.raises(SystemExit) as ended, one_line_errors():
        raise UserError("config.yaml: sizes: 0 is not allowed")
    assert ended.value.code == "error: config.yaml: sizes: 0 is not allowed"


def test_a_users_error_is_one_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "job.log"
    with pytest.raises(SystemExit) as ended, logged(str(log)):
        raise UserError("no such file")
    assert ended.value.code == 1
    assert log.read_text() == "error: no such file\n"


def test_a_bug_is_a_traceback_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    with pytest.raises(SystemExit), logged(str(log)):
        print("so far so good")
        raise ZeroDivisionError("a bug")
    assert log.read_text().startswith("so far so good\nTraceback")
    assert "ZeroDivisionError: a bug" in log.read_text()

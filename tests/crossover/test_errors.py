from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from crossover.errors import UserError, full_disk, logged, one_line_errors
from trials import ROOT


def test_a_user_error_ends_the_program_with_one_line() -> None:
    with pytest.raises(SystemExit) as ended, one_line_errors():
        raise UserError("config.yaml: sizes: 0 is not allowed")
    assert ended.value.code == "error: config.yaml: sizes: 0 is not allowed"


@pytest.mark.parametrize(("body", "unbuffered"), [("print('a fact')", "1"), ("print('help'); sys.exit(0)", "")])
def test_a_program_whose_output_is_not_read_ends_without_a_message(body: str, unbuffered: str) -> None:
    program = f"import sys; from crossover.errors import one_line_errors\nwith one_line_errors(): {body}"
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_user_error_is_one_line_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "job.log"
    with pytest.raises(SystemExit) as ended, logged(str(log)):
        raise UserError("no such file")
    assert ended.value.code == 1
    assert log.read_text() == "error: no such file\n"


FULL = "; free some and run the same command again: what has finished is kept"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "row.parquet"),
            "no space left on the disk ([Errno 28] No space left on device: 'row.parquet')" + FULL,
        ),
        (
            SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
            "no space left on the disk (Error while serializing: I/O error: No space left on device (os error 28))"
            + FULL,
        ),
        (
            RuntimeError("unable to write to file </torch_12_345_0>: No space left on device (28)"),
            "the shared memory of data loaders is full; enlarge /dev/shm (in a container: --shm-size), "
            "or use num_workers=0",
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), None),
    ],
)
def test_a_full_disk_is_one_line(error: Exception, line: str | None, tmp_path: Path) -> None:
    assert full_disk(error) == line
    with pytest.raises(SystemExit if line else type(error)) as ended, one_line_errors():
        raise error
    assert line is None or str(ended.value) == f"error: {line}"
    log = tmp_path / "job.log"
    with pytest.raises(SystemExit), logged(str(log)):
        raise error
    text = log.read_text()
    assert text == f"error: {line}\n" if line else text.startswith("Traceback")


FILL = """
import sys, resource
sys.path.insert(0, sys.argv[1])
from crossover.errors import logged
with logged(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    print("x" * 1000)
    raise RuntimeError("a bug")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must refuse a large file")
def test_without_a_writable_log_the_error_goes_to_the_terminal(tmp_path: Path) -> None:
    """A limit on the size of files replaces a full disk."""
    command = [sys.executable, "-c", FILL, str(ROOT / "scripts"), str(tmp_path / "job.log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr == f"error: no space left on the disk ([Errno 27] File too large){FULL}\n"

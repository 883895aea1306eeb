from __future__ import annotations

import os
import subprocess
import sys

from processes import TESTER, started_by

DAEMON = """
import subprocess, sys
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
print(subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], **quiet).pid)
"""


def test_a_daemon_of_a_process_that_ended_is_found_until_it_ends() -> None:
    """It has another parent by then, and a session of its own."""
    reads, writes = os.pipe()
    try:
        environment = {**os.environ, TESTER: "this test"}
        command = [sys.executable, "-c", DAEMON]
        done = subprocess.run(command, stdin=reads, env=environment, capture_output=True, text=True, check=True)
        (found,) = [process for process in started_by("this test") if process.pid == int(done.stdout)]
    finally:
        os.close(reads)
        os.close(writes)
    found.wait()
    assert found not in started_by("this test")

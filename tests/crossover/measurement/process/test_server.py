"""The trial server: real ones, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest

from crossover.machine.code_key import LIBRARY
from crossover.measurement.process import forking
from crossover.measurement.process.attempts import choose_isolation, measure
from crossover.measurement.process.forking import ForkedProcess, NoServerError
from crossover.measurement.process.requests import Request
from crossover.measurement.process.server_key import server_key
from trials import CELL, read_row, request, write_points

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")]
WAIT_S = 30.0


@pytest.fixture(scope="module")
def runtime() -> Iterator[Path]:
    """A folder for sockets whose path is short; servers that use it end with the module."""
    folder = Path(tempfile.mkdtemp(prefix="xo"))
    yield folder
    for server in servers(folder):
        server.kill()
    shutil.rmtree(folder)


@pytest.fixture
def environment(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv("CROSSOVER_WORKFLOW", raising=False)
    return dict(os.environ)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_points(tmp_path_factory.mktemp("data") / "points.safetensors")


@pytest.fixture
def trial(dataset: Path, tmp_path: Path) -> Request:
    return request(dataset, tmp_path / "row.parquet", isolation="server")


def servers(folder: Path) -> list[psutil.Process]:
    """Servers whose sockets lie in a folder; a fork looks like its server, but has one as its parent."""
    found = {
        process.pid: process
        for process in psutil.process_iter()
        if process.status() != psutil.STATUS_ZOMBIE
        and any("measurement.server" in part for part in process.cmdline())
        and any(str(folder) in part for part in process.cmdline())
    }
    return [process for process in found.values() if process.ppid() not in found]


def until(condition: Callable[[], Any]) -> bool:
    """Whether a condition comes true."""
    deadline = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def measured(trial: Request, environment: dict[str, str]) -> dict[str, Any]:
    measure(trial, environment)
    return read_row(Path(trial.output))


def test_a_fork_measures_like_a_fresh_process(trial: Request, environment: dict[str, str]) -> None:
    forked = measured(trial, environment)
    fresh = measured(replace(trial, isolation="process"), environment)
    assert (forked["isolation"], fresh["isolation"]) == ("server", "process")
    for column in (
        "status",
        "threads",
        "backend_settings",
        "relative_error",
        "gradient_error",
        "parameters",
        "affinity",
    ):
        assert forked[column] == fresh[column], column
    assert forked["status"] == "ok"


def test_one_server_serves_all_trials(runtime: Path, trial: Request, environment: dict[str, str]) -> None:
    measured(trial, environment)
    first = servers(runtime)
    measured(replace(trial, cell=replace(CELL, size=4), threads=2), environment)
    assert len(first) == 1
    assert servers(runtime) == first


def test_the_folder_is_its_users_alone(runtime: Path, trial: Request, environment: dict[str, str]) -> None:
    measured(trial, environment)
    (folder,) = runtime.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_fork_wears_what_its_client_wears(
    trial: Request, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths, CPUs and variables are the client's, not the server's."""
    measured(trial, environment)
    monkeypatch.chdir(tmp_path)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        row = measured(replace(trial, output="here.parquet"), environment)
    finally:
        os.sched_setaffinity(0, before)
    assert row["affinity"] == [min(before)]
    assert row["isolation"] == "server"
    assert (tmp_path / "here.parquet").is_file()


@pytest.mark.parametrize("isolation", ["server", "process"])
def test_a_trial_runs_on_the_cpus_of_its_gpu_and_leaves_the_next_one_alone(
    runtime: Path, trial: Request, environment: dict[str, str], isolation: str
) -> None:
    """A server that the first trial starts is not bound to that trial's CPUs."""
    usable = os.sched_getaffinity(0)
    before = servers(runtime)
    environment |= {"TORCH_SERVER_OF_ITS_OWN": "1"}
    bound = measured(replace(trial, isolation=isolation, cpus=[max(usable)]), environment)
    free = measured(replace(trial, isolation=isolation, threads=2), environment)
    assert (bound["isolation"], bound["affinity"], bound["threads"]) == (isolation, [max(usable)], 1)
    assert (bound["logical_cpus"], bound["physical_cores"], bound["numa_nodes"]) == (1, 1, free["numa_nodes"] and 1)
    assert (free["affinity"], free["threads"]) == (sorted(usable), 2)
    assert os.sched_getaffinity(0) == usable
    own = [server for server in servers(runtime) if server not in before]
    assert len(own) == (isolation == "server")
    for server in own:
        assert set(server.cpu_affinity()) == usable
        server.kill()


def test_a_trial_without_a_process_of_its_own_binds_itself(trial: Request, environment: dict[str, str]) -> None:
    usable = os.sched_getaffinity(0)
    try:
        with patch.dict(os.environ):  # a trial sets variables, here those of this very process
            row = measured(replace(trial, isolation="none", cpus=[max(usable)]), environment)
    finally:
        os.sched_setaffinity(0, usable)
    assert (row["isolation"], row["affinity"]) == ("none", [max(usable)])


def test_a_server_killed_in_the_midst_costs_no_trial(
    runtime: Path, trial: Request, environment: dict[str, str]
) -> None:
    measured(trial, environment)
    child = ForkedProcess(replace(trial, effort=replace(trial.effort, timed_min_s=1000, timed_max_s=1000)), environment)
    pid = child.pid
    (server,) = servers(runtime)
    server.kill()
    assert until(lambda: child.ending(0.1) is not None)
    child.kill()
    assert until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    assert measured(trial, environment)["isolation"] == "server"  # a new one was started


def test_a_trial_whose_server_dies_is_measured_afresh(
    runtime: Path, trial: Request, environment: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    measured(trial, environment)
    effort = replace(trial.effort, warmup_min_s=2, warmup_max_s=10)
    (server,) = servers(runtime)
    threading.Timer(0.5, server.kill).start()
    row = measured(replace(trial, effort=effort), environment)
    assert (row["status"], row["isolation"]) == ("ok", "process")
    assert "starting a fresh process" in capfd.readouterr().err


def test_a_server_that_hangs_is_left_behind(
    runtime: Path, trial: Request, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(trial, environment)
    (server,) = servers(runtime)
    server.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(forking, "ANSWER_LIMIT_S", 0.5)
    assert measured(trial, environment)["isolation"] == "process"
    monkeypatch.undo()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert measured(trial, environment)["isolation"] == "server"
    assert len(servers(runtime)) == 2
    server.kill()


def test_a_listener_that_talks_nonsense_is_no_server(
    trial: Request, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(prefix="xo"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(forking.server_folder() / server_key(environment)))
        listener.listen()

        def babble() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b"[what]\n")
            connection.close()

        threading.Thread(target=babble, daemon=True).start()
        assert measured(trial, environment)["isolation"] == "process"
    shutil.rmtree(short)


def test_a_server_of_other_code_refuses(trial: Request, environment: dict[str, str]) -> None:
    """Whoever puts an old server's socket in the new one's place gets nothing stale."""
    measured(trial, environment)
    folder = forking.server_folder()
    own = folder / server_key(environment)
    other = {**environment, "OMP_SCHEDULE": "static"}
    shutil.move(own, folder / server_key(other))
    try:
        with pytest.raises(NoServerError, match="another version of code, packages or environment"):
            ForkedProcess(trial, other)
    finally:
        shutil.move(folder / server_key(other), own)


def test_a_folder_that_others_may_read_is_not_used(
    trial: Request, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(prefix="xo"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    (short / f"crossover-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(NoServerError, match="is not a folder of mode 0700 of this user"):
        forking.server_folder()
    assert measured(trial, environment)["isolation"] == "process"
    shutil.rmtree(short)


def start(place: Path, environment: dict[str, str], idle_s: float) -> subprocess.Popen[bytes]:
    """A server that listens, and ends after being idle for so long."""
    code = (
        f"import sys; sys.path.insert(0, {str(LIBRARY)!r}); import crossover.measurement.process.server as server; "
        f"server.IDLE_S = {idle_s}; server.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, server_key(environment), str(place)], env=environment)
    assert until(place.exists)
    return process


def test_an_idle_server_goes_away(environment: dict[str, str], runtime: Path) -> None:
    place = runtime / "idle"
    process = start(place, environment, idle_s=0.5)
    assert process.wait(WAIT_S) == 0
    assert not place.exists()


def test_a_server_goes_with_its_workflow(
    environment: dict[str, str], trial: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(prefix="xo"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    process = start(forking.server_folder() / server_key(environment), environment, idle_s=1000)
    with subprocess.Popen(["sleep", "1000"]) as workflow:
        row = measured(trial, {**environment, "CROSSOVER_WORKFLOW": str(workflow.pid)})
        assert row["isolation"] == "server"
        assert process.poll() is None
        workflow.kill()
    assert process.wait(WAIT_S) == 0
    shutil.rmtree(short)


def test_a_server_that_code_has_left_behind_does_not_start(runtime: Path) -> None:
    module = "crossover.measurement.process.server"
    code = f"import sys; sys.path.insert(0, {str(LIBRARY)!r}); from {module} import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "of-yesterday", str(runtime / "old")], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1
    assert "the packages or the environment changed" in done.stderr
    assert not (runtime / "old").exists()


@pytest.mark.parametrize(
    ("wanted", "environment", "isolation"),
    [
        ("auto", {}, "server"),
        ("auto", {"SLURM_JOB_ID": "7"}, "process"),
        ("auto", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "process"),
        ("process", {}, "process"),
        ("server", {"SLURM_JOB_ID": "7"}, "server"),
        ("none", {}, "none"),
    ],
)
def test_where_a_server_is_safe(wanted: str, environment: dict[str, str], isolation: str) -> None:
    assert choose_isolation(wanted, environment) == isolation

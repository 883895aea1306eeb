"""Real trial servers."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from crossover.config.workloads import workload_traits
from crossover.home import PACKAGE
from crossover.machine.code_key import digests_of
from crossover.machine.entry_points import SERVER
from crossover.machine.locks import locked, locks_on
from crossover.machine.threads import THREAD_VARIABLES
from crossover.measurement.process import children
from crossover.measurement.process.attempts import measure
from crossover.measurement.process.children import ForkedProcess, NoServerError
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.process.messages import Inbox
from crossover.measurement.process.server import Server
from crossover.measurement.process.server_key import server_key
from processes import PATIENCE_S, wait_for
from trials import read_row, trial_job, write_points

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")


@pytest.fixture(scope="module", autouse=True)
def runtime() -> Iterator[Path]:
    """A folder for the sockets of this file's servers; the path must be short."""
    folder = Path(tempfile.mkdtemp(prefix="xo"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        for name in THREAD_VARIABLES:
            patch.setenv(name, "2")
        yield folder
    for server in servers(folder):
        server.kill()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def early(runtime: Path) -> psutil.Process:
    """A server that was started before the first trial."""
    children.start_early()
    (server,) = wait_for(lambda: servers(runtime), "the server")
    return server


@pytest.fixture
def job(tmp_path: Path) -> TrialJob:
    return trial_job(write_points(tmp_path / "points.safetensors"), tmp_path / "row.parquet", isolation="server")


@pytest.fixture
def long_job(job: TrialJob) -> TrialJob:
    return replace(job, effort=replace(job.effort, timed_min_s=1000, timed_max_s=1000))


def servers(folder: Path) -> list[psutil.Process]:
    """The trial servers, without their forks."""
    processes = {
        process.pid: process
        for process in psutil.process_iter(["status", "cmdline"])  # skips processes that end meanwhile
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any("process.server" in part for part in process.info["cmdline"] or ())
        and any(str(folder) in part for part in process.info["cmdline"] or ())
    }
    return [process for process in processes.values() if process.ppid() not in processes]


def server_of(child: ForkedProcess, folder: Path) -> psutil.Process:
    (server,) = {*servers(folder)} & {*psutil.Process(child.pid).parents()}
    return server


def measured(job: TrialJob) -> dict[str, Any]:
    measure(job)
    return read_row(Path(job.output))


@pytest.mark.slow
def test_a_fork_measures_like_a_fresh_process(long_job: TrialJob) -> None:
    job = replace(long_job, effort=replace(long_job.effort, timed_min_s=0, timed_max_s=10))
    forked, fresh = measured(job), measured(replace(job, isolation="process"))
    assert (forked["isolation"], fresh["isolation"]) == ("server", "process")
    alike = ("status", "threads", "backend_settings", "relative_error", "gradient_error", "parameters", "affinity")
    assert {name: forked[name] for name in alike} == {name: fresh[name] for name in alike}
    assert forked["status"] == "ok"
    assert forked["base_rss_bytes"] < fresh["base_rss_bytes"]  # by the libraries' pages that a fork has not touched
    assert forked["rss_growth_bytes"] == pytest.approx(fresh["rss_growth_bytes"], abs=2**20)


def test_one_server_that_was_started_early_and_has_no_threads_forks_with_any_number_of_threads(
    early: psutil.Process, runtime: Path, job: TrialJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in (1, 2):
        for name in THREAD_VARIABLES:
            monkeypatch.setenv(name, str(threads))
        row = measured(replace(job, threads=threads))
        assert (row["isolation"], row["threads"]) == ("server", threads)
    of_transformers = replace(job, cell=replace(job.cell, workload="gpt_block", size=64, batch_size=1), dataset=None)
    assert measured(of_transformers)["isolation"] == "server"
    assert servers(runtime) == [early]
    assert early.num_threads() == 1


def test_a_server_imports_what_a_workload_needs_once_and_follows_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr("importlib.import_module", imported.append)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    connection, client = socket.socketpair()
    with connection, client, socket.socket(socket.AF_UNIX) as listener:
        server = Server(listener, modules := [SERVER], digests_of(SERVER))
        for workload in ("disc_mlp", "gpt_block", "bert"):
            server.import_once(workload_traits(workload).preloaded, connection)
        answers = Inbox(client.fileno())
        assert answers.next(PATIENCE_S) == {"imports": "_transformers"}
        assert answers.next(0) is None
    assert imported == ["crossover.measurement.workloads._transformers"]
    assert modules == [SERVER]
    assert server.imported == digests_of(SERVER, *imported) != digests_of(SERVER)


def test_the_server_keeps_a_trials_locks_until_its_process_is_gone(long_job: TrialJob, tmp_path: Path) -> None:
    """So a finished trial need not wait for the end of its process, and no other trial begins before that."""
    turn = tmp_path / "turn"
    with locked(turn, fcntl.LOCK_EX):
        child = ForkedProcess(long_job, dict(os.environ))
        child.wait_for_end(PATIENCE_S, is_final=True)
    assert locks_on(turn)
    child.kill()  # does not wait
    wait_for(lambda: not locks_on(turn), "the end of the lock")
    assert not psutil.pid_exists(child.pid)


@pytest.fixture
def gone(tmp_path: Path) -> Iterator[None]:
    """Work in a folder that has been removed."""
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "gone").mkdir()
        patch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        yield
        patch.chdir(tmp_path)


@pytest.mark.usefixtures("gone")
def test_a_server_runs_a_trial_if_the_working_directory_is_gone(job: TrialJob) -> None:
    row = measured(job)
    assert (row["status"], row["isolation"]) == ("ok", "server")


POOLS = """
import json, numpy, pyarrow, threadpoolctl, torch
from crossover.measurement.process.child import resize_thread_pools
resize_thread_pools(3)
print(json.dumps([*(pool["num_threads"] for pool in threadpoolctl.threadpool_info()), pyarrow.cpu_count()]))
"""


def test_the_pools_of_loaded_libraries_are_resized(in_fresh_process: Callable[..., Any]) -> None:
    numbers = in_fresh_process(POOLS)
    assert len(numbers) >= 3
    assert set(numbers) == {3}


@pytest.mark.slow
def test_no_trial_is_lost_if_a_server_is_killed(
    runtime: Path, long_job: TrialJob, capfd: pytest.CaptureFixture[str]
) -> None:
    child = ForkedProcess(long_job, dict(os.environ))
    server_of(child, runtime).kill()
    wait_for(lambda: child.ending(0.1) is not None, "the ending")
    child.kill()
    wait_for(lambda: not psutil.pid_exists(child.pid) or psutil.Process(child.pid).status() == "zombie", "its end")

    short = replace(long_job.effort, timed_min_s=2, timed_max_s=10)
    child = ForkedProcess(long_job, dict(os.environ))  # a new server, which dies during the next trial
    server = server_of(child, runtime)
    child.kill()
    threading.Timer(0.5, server.kill).start()
    row = measured(replace(long_job, effort=short))
    assert (row["status"], row["isolation"]) == ("ok", "process")
    assert "starting a fresh process" in capfd.readouterr().err


def test_a_server_that_hangs_is_replaced_by_one_that_runs_each_trial_on_the_cpus_of_its_gpu(
    runtime: Path, job: TrialJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server that the first trial starts is not bound to that trial's CPUs."""
    measured(job)  # by which time the server has started
    (hung,) = servers(runtime)
    hung.send_signal(signal.SIGSTOP)
    with monkeypatch.context() as patched, pytest.raises(NoServerError, match="it gave no answer"):
        patched.setattr(children, "ANSWER_LIMIT_S", 0.5)
        ForkedProcess(job, dict(os.environ))
    usable = os.sched_getaffinity(0)
    bound, free = measured(replace(job, cpus=[max(usable)])), measured(replace(job, threads=2))
    assert (bound["isolation"], bound["affinity"], bound["threads"]) == ("server", [max(usable)], 1)
    assert (bound["logical_cpus"], bound["physical_cores"]) == (1, 1)
    assert (free["isolation"], free["affinity"], free["threads"]) == ("server", sorted(usable), 2)
    (new,) = {*servers(runtime)} - {hung}
    assert set(new.cpu_affinity()) == os.sched_getaffinity(0) == usable
    hung.kill()


def test_an_idle_server_exits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path = Path(server_key(os.environ))
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
        "import crossover.measurement.process.server as server; "
        "server.IDLE_S, server.preload = 0.5, print; server.main()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command) as process:
        wait_for(path.exists, "the socket")
        assert process.wait(PATIENCE_S) == 0
    assert not path.exists()


@pytest.mark.usefixtures("gone")
def test_without_a_private_folder_a_trial_runs_in_a_fresh_process_on_the_cpus_of_its_gpu(
    tmp_path: Path, job: TrialJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"crossover-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(NoServerError, match="is not a folder of mode 0700 of this user"):
        children.server_folder()
    usable = os.sched_getaffinity(0)
    bound = measured(replace(job, cpus=[max(usable)]))
    assert (bound["isolation"], bound["affinity"], bound["threads"]) == ("process", [max(usable)], 1)
    assert (bound["logical_cpus"], bound["physical_cores"]) == (1, 1)
    assert os.sched_getaffinity(0) == usable


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, True) for name in ("OMP_PROC_BIND", "MKL_DYNAMIC", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF")),
        *((name, False) for name in ("CUDA_VISIBLE_DEVICES", "HOME", "TERM", "SNAKEMAKE_PROFILE", *THREAD_VARIABLES)),
    ],
)
def test_the_key_depends_on_variables_that_a_fork_cannot_change(name: str, changes: bool) -> None:
    assert (server_key({}) != server_key({name: "7"})) is changes

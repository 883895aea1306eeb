"""Shared fixtures: the workflow, and rows as a trial would write them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from hypothesis import HealthCheck, settings

from crossover.machine.locks import LEASES
from crossover.tables.columns import COLUMNS
from forks import Forks
from processes import TESTER, started_by

ROOT = Path(__file__).parents[1]

# Otherwise each of the hundreds of processes that tests start would compile the library's modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# With several test processes, the threads of an operation would wait for each other longer than they compute.
os.environ["OMP_NUM_THREADS"] = "1"
# The threads of a trial, which has all cores, would keep the other tests' threads from the core they wait for.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

# Avoid tests that depend on the current speed of this machine.
settings.register_profile("crossover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crossover")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several processes (pytest -n 3), run all tests of a file in one process, so that they share its fixtures."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start tests of the workflow first: they take minutes, and would keep one process running after the others.

    Those on Slurm mostly wait, so the others fill their time.
    """
    items.sort(key=lambda item: (item.path.name != "test_slurm.py", item.path.parent != ROOT / "tests"))


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail if a process started by a test, directly or indirectly, is still running after the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TESTER, str(os.getpid()))
        yield
    _, left = psutil.wait_procs(started_by(str(os.getpid())), timeout=10)
    for process in left:
        process.kill()
    assert [process.info["cmdline"] for process in left] == []


@pytest.fixture(scope="session", autouse=True)
def own_locks() -> Iterator[None]:
    """Give the tests a lock folder of their own, so that their trials do not wait for other trials on this machine."""
    with tempfile.TemporaryDirectory(prefix="xo-locks") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(LEASES, f"{folder}/locks")
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def in_fresh_process(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Run code with these arguments in a process that has imported nothing but torch; returns the JSON it prints."""
    forks = Forks(tmp_path_factory.mktemp("forks"), root / "scripts")
    yield forks.run
    forks.end()


@pytest.fixture(scope="module", autouse=True)
def own_servers() -> Iterator[None]:
    """Put the sockets of a module's trial servers into a separate folder, and stop the servers after its tests."""
    with tempfile.TemporaryDirectory(prefix="xo") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield
        for process in started_by(str(os.getpid())) if any(Path(folder).iterdir()) else []:
            if any(folder in part for part in process.info["cmdline"] or ()):
                process.kill()
        children = sys.modules.get("crossover.measurement.process.children")
        for server in children.STARTED if children else ():
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def row() -> Callable[..., dict[str, Any]]:
    def build(**values: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "schema_version": 1,
            "study": "disc_depth",
            "workload": "disc_mlp",
            "variant": "plain",
            "protocol": "resident",
            "batch_size": 100,
            "precision": "fp32",
            "execution": "eager",
            "size": 4,
            "machine": "here",
            "device": "cpu",
            "trial": 1,
            "size_name": "linear layers",
            "parameters": 230,
            "status": "ok",
            "flag_names": [],
            "step_time_s": 1e-3,
            "device_name": "Brand C1" if values.get("device", "cpu") == "cpu" else "Brand G1",
            "hostname": "here",
            "threads": 2,
        }
        unknown = set(values) - set(COLUMNS)
        assert not unknown, unknown
        return dict.fromkeys(COLUMNS) | plain | values

    return build


@pytest.fixture(scope="session")
def power_laws(row: Callable[..., dict[str, Any]]) -> Callable[..., pd.DataFrame]:
    """Rows of a CPU that takes 1 us x parameters and a GPU that takes `gpu_s` at every size; trials 1 % apart."""

    def build(sizes: dict[int, int], gpu_s: float = 1e-3, trials: int = 1, **values: Any) -> pd.DataFrame:
        times = {"cpu": lambda count: count * 1e-6, "cuda": lambda _: gpu_s}
        return pd.DataFrame(
            [
                row(
                    size=size,
                    parameters=count,
                    device=device,
                    trial=trial,
                    step_time_s=time(count) * 1.01 ** (trial - (trials + 1) / 2),
                    **values,
                )
                for size, count in sizes.items()
                for device, time in times.items()
                for trial in range(1, trials + 1)
            ]
        )

    return build

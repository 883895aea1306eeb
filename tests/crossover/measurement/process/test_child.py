"""Measuring processes: imports of user code, files, errors, a full disk, the copy of the heap, and torch's warnings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.models import Model
from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.machine.threads import THREAD_VARIABLES
from crossover.measurement import Tell, trial
from crossover.measurement.process import child
from crossover.measurement.process.attempts import measure
from crossover.measurement.process.child import run_child
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.process.messages import Inbox
from crossover.measurement.user.model import UserModel
from trials import ROOT, read_row, run_script, trial_job, trial_options

BUILD = """
import torch
from torch import nn
def build(width, batch_size):
    return nn.Linear(8, width), torch.randn(batch_size, 8), torch.randn(batch_size, width)
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialJob:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "net.py").write_text(BUILD)
    cell = Cell("s", "model", "resident", 4, "fp32", "eager", 3, "cpu", model=Model(str(folder / "net.py"), "build"))
    made = trial_job("", folder / "row.parquet", cell=cell)
    return replace(made, dataset=None, output="row.parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["process", "server"])
def test_a_trial_imports_no_files_named_like_modules_of_python_and_leaves_no_temporary_files(
    job: TrialJob, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch makes a temporary folder for its compiler as soon as an optimizer is built."""
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that it follows the variable
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in ("statistics", "queue", "resource", "platform", "profile", "types", "random", "logging", "torch"):
        Path(f"{name}.py").write_text("raise RuntimeError('imported')")
    measure(replace(job, isolation=isolation))
    row = read_row(Path("row.parquet"))
    assert (row["status"], row["isolation"], row["parameters"]) == ("ok", isolation, 3 * 8 + 3)
    assert list((tmp_path / "temporary").iterdir()) == []


ASSERTION = """CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError(ASSERTION), "net.py:build: an assertion failed on the GPU: usually labels lie outside"),
        (SystemExit(4), "net.py:build: its step ends the program (SystemExit: 4); remove the call that ends it"),
        (ZeroDivisionError("a bug"), "a bug"),
    ],
)
def test_an_error_is_reported_and_a_users_mistake_is_one_line(
    job: TrialJob, error: BaseException, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: Any) -> None:
        raise error

    monkeypatch.setattr(child, "do", work)
    monkeypatch.setattr(child, "end_with_parent", lambda _: None)
    monkeypatch.setattr(child, "KILLED_FIRST", Path("/proc/self/oom_score_adj").read_text().strip())
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    reader, writer = os.pipe()
    with pytest.raises(type(error) if isinstance(error, ZeroDivisionError) else UserError) as raised:
        run_child(job, 0, writer)
    os.close(writer)
    assert Inbox(reader).next(0) == {"failed": True}
    os.close(reader)
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must refuse a large file")
def test_a_file_that_another_process_writes_while_the_model_is_built_is_recorded(
    tmp_path: Path, job: TrialJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_trial(job: TrialJob, tell: Tell) -> None:
        UserModel(job.cell, tell).build_model(8)
        tell({"known": {}})

    monkeypatch.setattr(trial, "run_trial", run_trial)
    file = Path(str(job.cell.model and job.cell.model.file))
    file.write_text(
        BUILD.replace("    return", "    __import__('os').system('date > ' + 'written.parquet')\n    return")
    )
    record = tmp_path / "written_files.json"
    imported = dict(sys.modules)
    child.do(replace(job, written_files=str(record)))
    for name in set(sys.modules) - set(imported):
        if getattr(sys.modules[name], "__file__", None) == str(file):
            del sys.modules[name]
    assert json.loads(record.read_text())["written.parquet"]["before"] is None


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """A limit of 2 kB on the size of files, which a row exceeds, stands for a full disk."""
    cell = Cell("s", "matmul", "resident", 1, "fp32", "eager", 16, "cpu")
    output = tmp_path / "row.parquet"
    options = [*trial_options(cell, isolation="process"), f"--output={output}"]
    # Python would leave truncated bytecode of what it imports.
    done = run_script(options, "bash", "-c", 'ulimit -f 2; exec "$@"', "limited", PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 1
    assert done.stderr.startswith("error: no space left on the disk ([Errno 27] ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


SHARED_HEAP = """
import os
from pathlib import Path
from crossover.measurement import Tell, trial
from crossover.measurement.process import child

def shared_kib():
    of_heap = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        of_heap = line.endswith("[heap]") if "-" in line.split()[0] else of_heap
        if of_heap and line.startswith("Shared_Dirty:"):
            return int(line.split()[1])

class OldKernel:
    def madvise(self, *_):
        return -1

objects = [dict.fromkeys(range(50)) for _ in range(2_000)]
for old in (False, True):
    if not (pid := os.fork()):
        if old:
            child.ctypes.CDLL = lambda _: OldKernel()
        before = shared_kib()
        child.copy_heap()
        print(before, shared_kib(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_a_fork_shares_no_page_of_its_copied_heap() -> None:
    """A step that writes to a shared page would wait for the page's copy, and so would all other threads."""
    command = [sys.executable, "-c", SHARED_HEAP]
    printed = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=True).stdout
    new, old = (tuple(map(int, line.split())) for line in printed.splitlines())
    assert min(new[0], old[0]) > 2_000
    assert max(new[1], old[1]) < 100


QUIET = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from crossover.measurement.process.child import keep_torch_quiet
keep_torch_quiet()
import torch
from torch import nn
"""
INTERNAL = """
nn.LazyLinear(3)
torch.eye(3).to_sparse_csr()
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as profile:
    for _ in range(4):
        torch.ones(3)
        profile.step()
torch.compiler.config.force_disable_caches = True
torch.compile(lambda x: x * 2, backend="eager")(torch.ones(3))
"""
OF_THE_USER = """
nn.MSELoss()(torch.ones(3, 1), torch.ones(3))
torch.cuda.amp.autocast(enabled=False)
warnings.warn("of the user's own", FutureWarning)
"""


def test_only_warnings_that_a_user_can_act_on_are_shown() -> None:
    command = [sys.executable, "-c", QUIET + INTERNAL + OF_THE_USER, str(ROOT / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    shown = [line.partition("Warning: ")[2][:50] for line in done.stderr.splitlines() if "Warning: " in line]
    assert shown == [
        "Using a target size (torch.Size([3])) that is diff",
        "`torch.cuda.amp.autocast(args...)` is deprecated. ",
        "of the user's own",
    ]
